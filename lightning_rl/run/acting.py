"""Trained policies that act step by step."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.checks import EPISODE_SEED, check_weights, truth, user_path, whole_number
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.seeding import generator
from lightning_rl.core.types import ActionMode, Array, FloatArray, Request
from lightning_rl.envs.checked import REWARDS, reward_number
from lightning_rl.envs.spaces import OwnAction, flattened, is_vector
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.player import ActionNoise
from lightning_rl.run.asking import RAW, asked_names, full_command
from lightning_rl.run.loading import load_method

if TYPE_CHECKING:
    from lightning_rl.run.train import Run

_NO_NUMBERS = "obs is no array of numbers; give what env.reset()[0] or env.step(action)[0] is"


class LoadedAgent:
    """A trained policy that acts in its environment, one episode after another.

    The environment is ``lightning_rl.make_env(agent.gamename)``, the one that ``gymnasium.make``
    makes, or another with the same
    spaces: observations are its own or flattened, actions are those of its own ``action_space``.
    For an agent that repeats its actions (``agent.method.spec.repeat``), sees images or the mask of
    its actions it is ``make_env(agent.method.spec)``.

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
        self.method, self.gamename = method, method.gamename
        self.command_names = method.command_names
        spec = method.spec
        assert spec.action_space is not None
        self._space, self._own_action = spec.seen_space, OwnAction(spec.action_space)
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
        self._asked = asked = full_command(self.method, {} if command is None else command)
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
        self._batch_rng = generator(number, "predict", 0)
        self._rewards: Any = None
        self._step, self._episodes = 0, self._episodes + 1

    def act(
        self, obs: Any, reward: SupportsFloat | Array | None = None, *, action_mask: Any = None
    ) -> int | Array:
        """The next action.

        Args:
            obs: observation, flattened ``[O]`` as ``make_env`` gives it, or as the environment
                itself does, e.g. a Dict.
            reward: of the step before. UDRL subtracts it from the command's return; without it, the
                command stays as it is. Of a task of several objectives their vector, which is also
                ``info["reward_vector"]`` of ``make_env``.
            action_mask: of an agent of masked actions, ``info["action_mask"]`` of the environment;
                None: obs ends with it, as those of ``make_env(agent.method.spec)`` do.

        Returns:
            An action of the environment's own space: a number, or a vector ``[A]``.

        Raises:
            UserError: no observation of the agent's environment, or no reward.
        """
        if action_mask is not None:
            obs = self._with_mask(obs, action_mask)
        row = torch.from_numpy(self._checked(obs)).reshape(1, -1)
        if reward is not None:
            gained = self._gained(reward)
            if self._step and self._rule is not None and self._command is not None:
                self._command = self._rule(self._command, gained)
        noise = torch.from_numpy(self._noise.at(self._step, np.zeros(1, dtype=np.int64)))
        self._step += 1
        with torch.inference_mode():
            command = None if self._command is None else torch.from_numpy(self._command)
            action = self.method.policy.act(row, command, noise, **self._guidance)[0].numpy()
        own = np.asarray(self._own_action(action))
        return own if own.ndim else int(own)

    def predict(
        self,
        obs: Any,
        state: tuple[Array, ...] | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
        *,
        command: Mapping[str, Any] | None = None,
        reward: Any = None,
        action_mask: Any = None,
    ) -> tuple[Any, tuple[Array, ...] | None]:
        """Actions for one observation or for a batch, in the sense of Stable-Baselines3, whose
        ``evaluate_policy`` takes this agent.

        Args:
            obs: as for ``act``, or a batch of such: an array ``[B, ..]``, or a dict of these.
            state: what the call before gave: where the commands of the episodes stand. None: all
                begin.
            episode_start: where an episode begins ``[B]``: there the command is again what is asked
                for. None: nowhere, after the first call.
            deterministic: the most likely actions, instead of drawn ones.
            command: what is asked for, by name, each a number or one for each row ``[B]``; None:
                what ``reset`` was given.
            reward: of the step before ``[B]``. A command that goes on step by step subtracts it;
                without it, it stays as it is. ``evaluate_policy(agent, env,
                callback=agent.take_rewards)`` gives it.
            action_mask: as for ``act``, of a batch one for each row ``[B, A]``.

        Returns:
            The actions, of the environment's own space, and the state, which only commands that go
            on step by step have.

        Raises:
            UserError: as ``act`` and ``reset``.
        """
        if action_mask is not None:
            obs = self._with_mask(obs, action_mask)
        rows, is_batch = self._rows(obs)
        asked, guidance = self._commands(command, len(rows))
        inputs: list[Any] = [torch.from_numpy(rows), None, None]
        if asked is not None and self._rule is not None:
            if reward is None:
                reward = self._rewards
            if state is not None:
                asked = self._going_on(asked, state, episode_start, reward)
            state, self._rewards = (asked,), None
        if asked is not None:
            inputs[1] = torch.from_numpy(asked)
        policy = self.method.policy
        if not truth("deterministic", deterministic):
            shape = (len(rows), policy.noise_size)
            inputs[2] = torch.from_numpy(policy.draw_noise(self._batch_rng, shape))
        with torch.inference_mode():
            actions = self._own_action(policy(*inputs, **guidance).numpy())
        return (actions if is_batch else actions[0]), state

    def take_rewards(self, local: Mapping[str, Any], _: Any = None) -> None:
        """The ``callback`` of ``evaluate_policy``: the rewards of the step before, for
        ``predict``.
        """
        self._rewards = local["rewards"]

    def _commands(
        self, command: Mapping[str, Any] | None, count: int
    ) -> tuple[FloatArray | None, dict[str, Tensor]]:
        """What is asked of ``count`` episodes ``[B, C]``, and with which guidance."""
        asked = [self._asked] * count
        if command is not None:
            if not isinstance(command, Mapping):
                raise UserError(f"command {shown(command)}: give numbers by name")
            columns = {name: _of_rows(name, value, count) for name, value in command.items()}
            rows = [{name: column[row] for name, column in columns.items()} for row in range(count)]
            asked = [full_command(self.method, row) for row in rows]
        if asked[0].command is None:
            return None, {}
        numbers = np.array([each.command for each in asked], dtype=np.float32)
        if asked[0].guidance is None:
            return numbers, {}
        return numbers, {"guidance": torch.tensor([[each.guidance] for each in asked])}

    def _going_on(
        self, asked: FloatArray, state: tuple[Array, ...], start: Any, reward: Any
    ) -> FloatArray:
        """The commands ``[B, C]`` of a step, which begin with what is asked for."""
        assert self._rule is not None
        command = np.asarray(state[0], dtype=np.float32)
        if command.shape != asked.shape:
            raise UserError(
                f"state is of commands {list(command.shape)}, these are {list(asked.shape)}; give "
                "what predict gave for the same environments"
            )
        if reward is not None:
            command = self._rule(command, self._paid(reward, len(asked)))
        if start is None:
            return command
        begins = _of_rows("episode_start", start, len(asked)).astype(bool)
        return np.where(begins[:, np.newaxis], asked, command)

    def _gained(self, reward: Any) -> FloatArray:
        """The reward of a step as the rule takes it."""
        if self.method.objectives:
            return self._paid(reward, 1)
        number = reward_number(reward)
        if number is None:
            raise UserError(
                f"reward {shown(reward)}: it must be {REWARDS}; see what the environment gives"
            )
        return np.array([number], dtype=np.float32)

    def _paid(self, reward: Any, count: int) -> FloatArray:
        """The rewards of ``count`` episodes, ``[B]``, or ``[B, K]`` of objectives."""
        objectives = self.method.objectives
        if not objectives:
            return _of_rows("reward", reward, count)
        shape = (count, len(objectives))
        try:
            found = np.asarray(reward, dtype=np.float32).reshape(shape)
            if np.isfinite(found).all():
                return found
        except (TypeError, ValueError):
            pass
        raise UserError(
            f"reward {shown(reward)}: give a finite number for each of {', '.join(objectives)}, as "
            "info['reward_vector'] has them"
        )

    def _rows(self, obs: Any) -> tuple[Array, bool]:
        """Observations ``[B, O]``, and whether they were given as a batch."""
        if not _is_batch(self._space, obs):
            return self._checked(obs).reshape(1, -1), False
        rows = _one_by_one(obs)
        if not rows:
            raise UserError("obs is an empty batch; give at least one observation")
        return np.stack([self._checked(row) for row in rows]), True

    def export(
        self,
        folder: str | Path,
        report: Mapping[str, Any] | None = None,
        *,
        licence: str = "mit",
        force: bool = False,
    ) -> None:
        """Writes the policy as a folder that others use, in the layout of a model hub's
        repository; ``lightning_rl.load(folder)`` reads it back.

        ``policy.onnx`` and ``policy.pt2`` hold all that acts, from observations and commands to
        actions of the environment's own space; ``model.safetensors`` and ``config.json`` the
        weights and settings; ``README.md`` is the card, ``results.json`` the score.

        Args:
            folder: made if need be; files that are not as an export left them are not replaced.
            report: what ``lightning_rl.evaluate`` gave of this agent; None: the card says that it
                was not evaluated.
            licence: of the policy, by its SPDX name.
            force: replace other files of these names, too.

        Raises:
            UserError: a package of the extra ``export`` is missing, the folder has other files, or
                no graph can hold the policy.
        """
        from lightning_rl.run.export import begin_export, export

        check_weights(self.method)
        export(self.method, begin_export(folder, force), report, licence)

    def _with_mask(self, obs: Any, mask: Any) -> Array:
        """An environment's own observation, or a batch of them, with the masks beside it."""
        if not self.method.spec.masked:
            raise UserError(
                "action_mask: this agent was trained without; leave it out, or train with "
                "action_masks=true"
            )
        from lightning_rl.envs.action_masks import with_mask

        spec = self.method.spec
        if not _is_batch(spec.observation_space, obs):
            return with_mask(spec, obs, mask)
        rows = _one_by_one(obs)
        if len(mask) != len(rows):
            raise UserError(f"action_mask has {len(mask)} rows, obs {len(rows)}; give one for each")
        return np.stack([with_mask(spec, *each) for each in zip(rows, mask, strict=True)])

    def _checked(self, obs: Any) -> Array:
        """An observation as a vector, in memory of its own."""
        frames = self.method.spec.frames
        if frames is not None:
            image = np.array(obs)
            if image.shape != frames.shape or image.dtype != np.uint8:
                raise UserError(
                    f"obs is {image.dtype} {list(image.shape)}; an observation of "
                    f"'{self.gamename}' is uint8 {list(frames.shape)}, the newest frames: take "
                    "those of make_env(agent.method.spec)"
                )
            return image.reshape(-1)
        if not is_vector(self._space):
            with suppress(ValueError):
                return self._finite(flattened(self._space, obs))
        found = _as_numbers(obs)
        size = self.method.spec.obs_size
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


def _of_rows(name: str, value: Any, count: int) -> FloatArray:
    """A number for each of ``count`` rows; UserError where there are none."""
    try:
        found = np.asarray(value, dtype=np.float32)
        if np.isfinite(found).all():
            return np.broadcast_to(found.reshape(-1), count)
    except (TypeError, ValueError):
        pass
    raise UserError(f"{name} {shown(value)}: give a finite number for each of {count} observations")


def _as_numbers(obs: Any) -> Array:
    """An array of numbers; UserError for anything else."""
    try:
        found = np.asarray(obs)
    # a tensor that has a gradient, or whatever a class of the user's raises
    except Exception as error:
        raise UserError(_NO_NUMBERS) from error
    if found.dtype.kind not in "biuf":
        raise UserError(_NO_NUMBERS)
    return found


def _is_batch(space: Any, obs: Any) -> bool:
    """Whether there are several observations, of a space or flattened."""
    while isinstance(obs, Mapping | tuple) and getattr(space, "spaces", None):
        name = next(iter(space)) if isinstance(obs, Mapping) else 0
        space, obs = space[name], obs[name]
    found = _as_numbers(obs)
    if space.shape == () and found.dtype.kind in "iu":  # indices, not a flattened one
        return found.ndim == 1
    own = 1 if space.shape is None else max(len(space.shape), 1)
    return found.ndim == own + 1


def _one_by_one(obs: Any) -> list[Any]:
    """The observations of a batch, those of a Dict space as dictionaries."""
    if not isinstance(obs, Mapping):
        return list(_as_numbers(obs))
    return [dict(zip(obs, each, strict=True)) for each in zip(*obs.values(), strict=True)]


def load(path: str | Path | Run, networks: Mapping[str, nn.Module] | None = None) -> LoadedAgent:
    """The agent of a checkpoint.

    Args:
        path: of a checkpoint, or of a run directory, whose last one is taken; or the name of an
            agent that comes with the package, e.g. ``"RCP-A-lunarlander"`` (``lightning-rl agents``
            lists them); or a folder that an agent was exported to; or a ``Run``.
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
