"""Trained policies out of checkpoints: the method, or an agent that acts step by step."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, cast

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.checks import (
    EPISODE_SEED,
    check_weights,
    one_number,
    truth,
    user_path,
    whole_number,
)
from lightning_rl.core.config import OFFLINE
from lightning_rl.core.errors import UnknownNameError, UserError
from lightning_rl.core.limits import WHOLE, did_you_mean, shorten, shown, within
from lightning_rl.core.modules import from_file
from lightning_rl.core.types import ActionMode, Array, FloatArray, Request
from lightning_rl.envs.checked import REWARDS, reward_number
from lightning_rl.envs.spaces import OwnAction, flattened, is_vector
from lightning_rl.methods.base import Method
from lightning_rl.methods.own_networks import named_networks, require_given
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.restoring import load_state, refused, require_stored
from lightning_rl.nets.command import Calibration
from lightning_rl.rollouts.player import ActionNoise
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.state import checkpoint_at

if TYPE_CHECKING:
    from lightning_rl.run.train import Run

ACTING_ONLY = "acting_only"
TRAINING_ONLY = ("learner.", "critic.", "agent.")
"""Prefixes of weights that acting does not need; checkpoints with the key ``acting_only`` have
none of them.
"""
_NO_NUMBERS = "obs is no array of numbers; give what env.reset()[0] or env.step(action)[0] is"
RAW = "raw_"
"""Before the name of a command's number: what the network takes, calibrated or not."""


class Asked(NamedTuple):
    """What is asked of a policy.

    command: in the order of ``method.command_names``; None: the policy takes none. guidance: how
    much its effect is amplified; None: as the policy has it.
    """

    command: tuple[float, ...] | None = None
    guidance: float | None = None

    def by_name(self, names: Sequence[str]) -> dict[str, float]:
        """The numbers by name, with the guidance if there is one."""
        numbers = dict(zip(names, self.command or (), strict=True))
        return numbers if self.guidance is None else {**numbers, "guidance": self.guidance}


def load_method(path: Path, networks: Mapping[str, nn.Module] | None = None) -> Method:
    """The method of a checkpoint in evaluation mode, with its weights and counters; of a run
    directory that of its last one.

    networks: those that a user gave to the training, by name.
    """
    if networks is not None:
        networks = named_networks(networks)
    path = checkpoint_at(path)
    checkpoint = read_checkpoint(path)
    hparams = dict(checkpoint["hyper_parameters"])
    try:
        cls = implementation(hparams["implementation"])
    except UserError as error:
        raise UserError(f"checkpoint '{path}': {error}") from error
    require_given(hparams, networks or (), path)
    hparams["networks"] = networks
    own = {
        cls.network_names.get(name) for name in networks or ()
    }  # keys of ours that are not built
    require_stored({key: value for key, value in hparams["config"].items() if key not in own}, path)
    try:
        with from_file():
            method = cls(**hparams)
    except UnknownNameError as error:
        raise UserError(f"checkpoint '{path}': {error}") from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RuntimeError,
        TypeError,
        UserError,
        ValueError,
    ) as error:
        reason = (
            str(error)
            if isinstance(error, UserError)
            else shorten(f"{type(error).__name__}: {error}", 200)
        )
        raise UserError(
            f"checkpoint '{path}' does not fit this version's {hparams['implementation']}: {reason}"
        ) from error
    absent = TRAINING_ONLY if checkpoint.get(ACTING_ONLY) is True else ()
    remedy = "use another, or give the networks that it was trained with (networks={...})"
    with refused(path, remedy):
        load_state(method, checkpoint["state_dict"], absent)
    return method.eval()


def asked_names(method: Method) -> tuple[str, ...]:
    """What a command may be given by: the names of its numbers, ``return`` of a calibrated policy,
    and the names of the numbers after ``raw_``.
    """
    names = list(method.command_names)
    if method.calibrated() is not None and "return" not in names:
        names.append("return")
    return (*names, *(RAW + name for name in method.command_names))


def unknown_name(name: str, known: Sequence[str]) -> str:
    """What is wrong with a value of a command that a policy of the names ``known`` does not
    know, with the remedy.
    """
    if not known:
        return f"unknown name '{shorten(name)}'; its policy takes no command"
    if not name.startswith(RAW):
        known = [each for each in known if not each.startswith(RAW)]
    remedy = did_you_mean(name, known, "this checkpoint knows")
    if name == "return":
        remedy += "; it can be asked for returns after eval CKPT --calibrate"
    return f"unknown name '{shorten(name)}'; {remedy}"


def full_command(method: Method, given: Mapping[str, float]) -> Asked:
    """The command with the numbers that are ``given``; the others are the checkpoint's.

    ``{"return": 150}`` is the return that the episode is to obtain. A calibrated policy translates
    it to the command that obtains it on average; another, whose commands are returns, takes it as
    it is. ``raw_return`` and the like are what the network takes, of every policy.
    """
    numbers: dict[Any, Any] = {"": None}
    if isinstance(given, Mapping):
        numbers = {name: one_number(value) for name, value in given.items()}
    if not all(isinstance(name, str) and number is not None for name, number in numbers.items()):
        raise UserError(f"command {shown(given)}: give numbers by name, e.g. {{'return': 150}}")
    known_names = asked_names(method)
    for name in numbers:
        if name not in known_names:
            raise UserError(f"command: {unknown_name(name, known_names)}")
    values = dict(zip(method.command_names, method.first_command() or (), strict=True))
    calibration = method.calibrated()
    if "return" in numbers and calibration is not None:
        return _calibrated_command(calibration, numbers, list(values.values()))
    for name, value in numbers.items():
        if not abs(value) <= WHOLE:
            first = name.removeprefix(RAW) == method.command_names[0]
            seen = method.command_limits() if first else None
            remedy = f"e.g. {name}=100" if seen is None else f"training saw {within(*seen)}"
            raise UserError(
                f"command {name}={shown(value)}: it is not within {-WHOLE:,} .. {WHOLE:,}; {remedy}"
            )
        if RAW + name in numbers:
            raise UserError(f"command: {name} and {RAW}{name} are the same here; leave one out")
        values[name.removeprefix(RAW)] = value
    if numbers and getattr(method.cfg, OFFLINE, False):
        _warn_beyond_data(method, values)
    return Asked(tuple(values.values()) or None)


def _warn_beyond_data(method: Method, values: Mapping[str, float]) -> None:
    """Says that a dataset has no example of a command: nothing that was played since corrects what
    a policy makes of it.
    """
    name, limits = method.command_names[0], method.command_limits()
    if limits is not None and not limits[0] <= values[name] <= limits[1]:
        warnings.warn(
            f"command {name}={values[name]:g} is beyond the data that was learned from, which has "
            f"{within(*limits)}: what the policy does then is a guess",
            stacklevel=4,
        )


def _calibrated_command(
    calibration: Calibration, numbers: Mapping[str, float], usual: Sequence[float]
) -> Asked:
    """The command that obtains a return on average; usual: the numbers of the checkpoint's."""
    if len(numbers) > 1:
        others = ", ".join(name for name in numbers if name != "return")
        raise UserError(
            f"command: return goes without {others}; leave one out, or give {RAW}return if the "
            "network takes one"
        )
    asked, (low, high) = numbers["return"], calibration.limits or (0.0, 0.0)
    if not low <= asked <= high:
        raise UserError(
            f"command return={asked:g}: this policy obtains {within(low, high)} on average; ask "
            "for one of these"
        )
    first, guidance = calibration.command(asked)
    return Asked((first, *usual[1:]), guidance)


class LoadedAgent:
    """A trained policy that acts in its environment, one episode after another.

    The environment is ``lightning_rl.make_env(agent.gamename)``, the one that ``gymnasium.make``
    makes, or another with the same
    spaces: observations are its own or flattened, actions are those of its own ``action_space``.
    For an agent that repeats its actions (``agent.method.spec.repeat``) it is
    ``make_env(agent.method.spec)``.

    Example::

        agent = lightning_rl.load("exp_dir/lunarlander/default/RCP-A/seed_25")
        obs, _ = env.reset(seed=0)
        agent.reset(seed=0)
        action = agent.act(obs)
        obs, reward, terminated, truncated, _ = env.step(action)
        action = agent.act(obs, reward)

    Attributes:
        method: the LightningModule.
        gamename: of its environment.
        command_names: what ``reset`` takes in ``command``.
    """

    def __init__(self, method: Method):
        if not isinstance(method, Method):
            raise UserError(
                f"LoadedAgent({shown(method)}): give a method; lightning_rl.load takes checkpoints"
            )
        self.method, self.gamename, self.command_names = (
            method,
            method.gamename,
            method.command_names,
        )
        spec = method.spec
        assert spec.observation_space is not None
        assert spec.action_space is not None
        self._space, self._own_action = spec.observation_space, OwnAction(spec.action_space)
        self._rule = method.command_rule()
        self._episodes = 0
        self.reset()

    def __repr__(self) -> str:
        takes = "no command"
        if self.command_names:
            names = [name for name in asked_names(self.method) if not name.startswith(RAW)]
            takes = f"commands {', '.join(names)}"
        return (
            f"LoadedAgent({self.method.implementation} on {self.gamename}, actions "
            f"{self._own_action.space}, {takes})"
        )

    def reset(
        self,
        command: Mapping[str, float] | None = None,
        *,
        seed: int | None = None,
        greedy: bool | None = None,
    ) -> None:
        """Begins an episode.

        Args:
            command: what is asked of the policy, by name, e.g. ``{"return": 150}``; values that are
                left out are those that the training ended with.
            seed: of the actions; None: another one for each episode. An episode is a function of
                the environment's seed and this.
            greedy: take the most likely action instead of drawing one; None: as the method's
                policies are meant to play, greedily where drawing is for exploration alone
                (model-based, agents of proxies), else drawn.

        Raises:
            UserError: a command that the policy does not know, or weights that are not float32.
        """
        check_weights(self.method)
        asked = full_command(self.method, {} if command is None else command)
        self._command: FloatArray | None = None
        if asked.command is not None:
            self._command = np.array([asked.command], dtype=np.float32)
        self._guidance: dict[str, Tensor] = {}
        if asked.guidance is not None:
            self._guidance = {"guidance": torch.tensor([[asked.guidance]])}
        number = self._episodes if seed is None else whole_number("seed", seed, 0, EPISODE_SEED)
        mode: ActionMode = self.method.action_mode
        if greedy is not None:
            mode = "greedy" if truth("greedy", greedy) else "sampled"
        request = Request("an episode", number, mode)
        self._noise = ActionNoise([request], self.method.policy)
        self._step, self._episodes = 0, self._episodes + 1

    def act(self, obs: Any, reward: SupportsFloat | None = None) -> int | Array:
        """The next action.

        Args:
            obs: observation, flattened ``[O]`` as ``make_env`` gives it, or as the environment
                itself does, e.g. a Dict.
            reward: of the step before. UDRL subtracts it from the command's return; without it, the
                command stays as it is.

        Returns:
            An action of the environment's own space: a number, or ``[A]`` within its box.

        Raises:
            UserError: no observation of the agent's environment, or no reward.
        """
        row = torch.from_numpy(self._checked(obs)).reshape(1, -1)
        gained = None if reward is None else reward_number(reward)
        if reward is not None and gained is None:
            raise UserError(
                f"reward {shown(reward)}: it must be {REWARDS}; see what the environment gives"
            )
        if (
            gained is not None
            and self._step
            and self._rule is not None
            and self._command is not None
        ):
            self._command = self._rule(self._command, np.array([gained], dtype=np.float32))
        noise = torch.from_numpy(self._noise.at(self._step, np.zeros(1, dtype=np.int64)))
        self._step += 1
        with torch.inference_mode():
            command = None if self._command is None else torch.from_numpy(self._command)
            action = self.method.policy.act(row, command, noise, **self._guidance)[0].numpy()
        return (
            cast(Array, self._own_action(action))
            if self.method.spec.continuous
            else int(self._own_action(action))
        )

    def _checked(self, obs: Any) -> FloatArray:
        """An observation as a vector, in memory of its own."""
        if not is_vector(self._space):
            with contextlib.suppress(ValueError):
                return self._finite(flattened(self._space, obs))
        try:
            found = np.asarray(obs)
        except (
            Exception
        ) as error:  # a tensor that has a gradient, or whatever a class of the user's raises
            raise UserError(_NO_NUMBERS) from error
        size = self.method.spec.obs_size
        if found.dtype.kind not in "biuf":
            raise UserError(_NO_NUMBERS)
        if found.size != size:
            raise UserError(
                f"obs has {found.size} numbers; an observation of '{self.gamename}' has {size}, "
                "see make_env"
            )
        if found.shape != (size,):
            raise UserError(
                f"obs has the shape {found.shape}; an observation of '{self.gamename}' has "
                f"{(size,)}, see make_env"
            )
        return self._finite(found)

    def _finite(self, found: Array) -> FloatArray:
        with np.errstate(over="ignore"):
            vector = np.array(found, dtype=np.float32, order="C")
        if not np.isfinite(vector).all():
            raise UserError(
                f"obs {shown(vector.tolist())}: every number must be finite; see what the "
                "environment gives"
            )
        return vector


def load(path: str | Path | Run, networks: Mapping[str, nn.Module] | None = None) -> LoadedAgent:
    """The agent of a checkpoint.

    Args:
        path: of a checkpoint, or of a run directory, whose last one is taken; or the name of an
            agent that comes with the package, e.g. ``"RCP-A-lunarlander"`` (``lightning-rl agents``
            lists them); or a ``Run``.
        networks: those that were given to the training, by name.

    Returns:
        The agent, which acts step by step; its ``method`` is the LightningModule.

    Raises:
        UserError: an unknown name, no checkpoint of this version, or one that is damaged.
    """
    try:
        found = getattr(path, "path", path)  # of a run
    except Exception:  # of a class of the user's
        found = None
    example = "give the path of a checkpoint or of a run directory, or the name of an agent"
    method = load_method(user_path("load", found, example), networks)
    method.prepare_evaluation()
    return LoadedAgent(method)
