"""Facts of an environment: read from Gymnasium, but for those that ``core/gamenames.py`` states."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec as GymSpec

from lightning_rl.core.checks import checked_gamename
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.gamenames import (
    GAMES,
    Game,
    Images,
    base_name,
    folder_name,
    named_game,
)
from lightning_rl.core.limits import shorten, shown
from lightning_rl.core.lines import say
from lightning_rl.core.modules import MODULES, advice, allow, may_import
from lightning_rl.core.types import Array
from lightning_rl.envs.checked import located
from lightning_rl.envs.func_env import is_func_env
from lightning_rl.envs.func_gym import FuncGymEnv
from lightning_rl.envs.images import Frames, frames_of
from lightning_rl.envs.spaces import (
    Env,
    check_actions,
    check_observations,
    factors_of,
    image_space,
)
from lightning_rl.functional.distributions import Distribution, distribution_for
from lightning_rl.gym import registered  # which registers our own ids, too

DEFAULT_HORIZON = 1000
"""Time limit where none is known; that of Gymnasium's robots."""

_TREASURE = ("treasure", "time")
_OBJECTIVES = {
    "deep-sea-treasure-v0": _TREASURE,
    "deep-sea-treasure-concave-v0": _TREASURE,
    "minecart-v0": ("ore_1", "ore_2", "fuel"),
    "minecart-deterministic-v0": ("ore_1", "ore_2", "fuel"),
    "mo-lunar-lander-v3": ("landing", "shaping", "main_fuel", "side_fuel"),
    "mo-mountaincar-v0": ("time", "reverse", "forward"),
}
"""What MO-Gymnasium's documentation calls the rewards of an id."""


class OwnHorizon:
    """An environment that keeps its own time limit of ``horizon`` steps."""

    horizon: int


@dataclass(frozen=True)
class EnvSpec:
    """Facts of an environment, as the methods see it.

    env: a Gymnasium id, ``module:Id-v0`` imports the module that registers it; or a function that
    makes the environment.
    obs_size: numbers of an observation as a policy sees it, flattened. action_size: number of
    discrete actions, or of action dimensions.
    horizon: time limit in steps.
    max_return: the highest return, above which UDRL draws no commands. Infinite where it is not
    known.
    solved_return: the return that the field calls solved, or None.
    min_return: the lowest return that an episode can have, or None where there is no bound.
    one_hot: exactly one number of an observation is 1, the others are 0.
    sparse: give the sum of the rewards at the last step and 0 before.
    repeat: take each action this many times, rewards summed; horizon counts all steps.
    kwargs: arguments of the environment, e.g. its size.
    observation_space, action_space: its own, as Gymnasium makes it; None where the facts were not
    read from one.
    images: how its observations are seen where they are images, of which frames says the sizes;
    both None where they are vectors. skips_frames: it takes the argument ``frame_skip``.
    objectives: names of what a step pays for, where it pays several rewards.
    factors: how many of each there are, where an action is a vector of discrete ones.
    masked: observations end with the mask of the actions that may be taken, ``[action_size]``.
    """

    gamename: str
    env: str | Callable[..., Any]
    obs_size: int
    action_size: int
    continuous: bool
    horizon: int
    max_return: float = math.inf
    solved_return: float | None = None
    min_return: float | None = None
    one_hot: bool = False
    sparse: bool = False
    repeat: int = 1
    kwargs: tuple[tuple[str, Any], ...] = field(
        default=(), hash=False
    )  # lists among them have no hash
    observation_space: gymnasium.Space[Any] | None = field(default=None, compare=False, repr=False)
    action_space: gymnasium.Space[Any] | None = field(default=None, compare=False, repr=False)
    images: Images | None = None
    frames: Frames | None = None
    skips_frames: bool = False
    objectives: tuple[str, ...] = ()
    factors: tuple[int, ...] = ()
    masked: bool = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Whoever sends a pickle may run code anyway: its module may be imported."""
        self.__dict__.update(state)
        allow(self.gamename)
        allow(self.env)

    @property
    def family(self) -> str:
        """The name under which configs and batched environments know it: without sizes, and one
        for all names of it.
        """
        return base_name(self.gamename)

    @property
    def stack(self) -> int:
        """How many stored observations a policy sees at once."""
        return 1 if self.frames is None else self.frames.stack

    def distribution(self) -> type[Distribution]:
        """What the outputs of a policy say of its actions."""
        if not self.factors:
            return distribution_for(self.continuous)
        from lightning_rl.functional.factors import Factors

        return cast(Any, Factors(self.factors))

    def actions(self, *shape: int) -> Array:
        """Room for so many actions, as policies give them."""
        if self.continuous:
            return np.zeros((*shape, self.action_size), np.float32)
        if self.factors:
            shape = (*shape, len(self.factors))
        return np.zeros(shape, np.int64)

    def allows(self, action: Array) -> bool:
        """Whether there are such actions, of those that ``actions`` has room for."""
        if self.continuous:
            return True
        return bool(((action >= 0) & (action < (self.factors or self.action_size))).all())

    @property
    def decisions(self) -> int:
        """How many actions an episode has at most."""
        skip = 1 if self.images is None else self.images.frame_skip
        return math.ceil(self.horizon / max(self.repeat, skip))

    @property
    def stored_size(self) -> int:
        """Numbers of an observation as episodes keep it: of images, a single frame."""
        return self.obs_size // self.stack

    @property
    def seen_space(self) -> gymnasium.Space[Any]:
        """The space of observations as users give them to an agent: its own, with masks flattened,
        or the newest frames of images.
        """
        if self.masked:
            return gymnasium.spaces.Box(-math.inf, math.inf, (self.obs_size,))
        if self.frames is None:
            assert self.observation_space is not None
            return self.observation_space
        return gymnasium.spaces.Box(0, 255, self.frames.shape, np.uint8)

    def with_masks(self) -> EnvSpec:
        """The facts with the mask of an environment's actions in its observations; UserError where
        it gives none.
        """
        from lightning_rl.envs.action_masks import require_masks

        require_masks(self)
        size = self.obs_size + self.action_size
        return replace(self, obs_size=size, one_hot=False, masked=True)

    def seen_as(self, images: Images) -> EnvSpec:
        """The facts of an environment of images, seen so; its own action repeat is used if it has
        one.
        """
        assert self.observation_space is not None
        space = image_space(self.observation_space)
        assert space is not None
        frames = frames_of(self.gamename, space, images)
        kwargs, repeat = dict(self.kwargs), images.frame_skip
        if self.skips_frames:
            kwargs["frame_skip"], repeat = images.frame_skip, 1
        return replace(
            self,
            obs_size=frames.stack * frames.size,
            repeat=repeat,
            kwargs=tuple(kwargs.items()),
            images=images,
            frames=frames,
        )


def env_spec(gamename: str) -> EnvSpec:
    """The facts of the environment that a gamename means.

    Sizes, horizon and solved return come from Gymnasium's registry and from the spaces of an
    environment that is made for it, once per process. Where neither Gymnasium nor ``register_env``
    knows a horizon it is ``DEFAULT_HORIZON``, with a warning.

    Args:
        gamename: A name of this package (``lunarlander``, ``procmaze-6``) or of ``register_env``,
            or a Gymnasium id (``MountainCar-v0``; ``my_package:MyEnv-v0`` imports ``my_package``
            first, if ``core.modules.may_import`` it).

    Returns:
        The facts; of a raw id that is the environment of a name of this package, e.g.
        ``CartPole-v1``, those of the name.

    Raises:
        UserError: The name is unknown, the environment cannot be made, or its spaces do not fit any
            network here.
    """
    game, entry = _lookup(checked_gamename(gamename))
    sources = (GAMES.get(base_name(gamename)), None if callable(game.env) else entry)
    known = _READ.get(gamename)
    if known is None or any(now is not then for now, then in zip(sources, known[0], strict=True)):
        known = _READ[gamename] = (sources, _read(gamename, game, entry))
    return known[1]


_READ: dict[str, tuple[tuple[Game | None, GymSpec | None], EnvSpec]] = {}
"""What has been read, by gamename, with what it was read from: names and ids can be registered
anew.
"""


def solved_return(gamename: str) -> float | None:
    """The return that the field calls solved, without making the environment; None where there
    is none, and for unknown names.
    """
    try:
        return _solved(*_lookup(gamename))
    except UserError:
        return None


def _solved(game: Game, entry: GymSpec) -> float | None:
    known = entry.reward_threshold if game.solved_return is None else game.solved_return
    return None if known is None else float(known)


def _lookup(gamename: str) -> tuple[Game, GymSpec]:
    """What this package knows of a gamename, and Gymnasium's registry entry; UserError for an
    unknown one.
    """
    _import(gamename)  # may call register_env
    game = named_game(gamename) or Game(gamename)
    return game, _entry(gamename, game.env)


def _import(name: str) -> None:
    """Imports the module of a ``module:Id-v0``; UserError where it cannot be imported, or cannot
    have environments.

    Gamenames come from checkpoints, too: a module that nobody typed is not imported.
    """
    module, where = name.rpartition(":")[0], f"gamename '{shorten(name)}'"
    if not module:
        return
    if module.partition(".")[0] in sys.stdlib_module_names or module.endswith(".__main__"):
        raise UserError(f"{where}: {module} is no module that registers environments; name yours")
    if not may_import(module):
        remedy = f"if you trust it: export {MODULES}={shorten(module)}"
        raise UserError(
            f"{where}: only a file names the module '{shorten(module)}', so it is not imported; "
            f"{remedy}"
        )
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name
            and f"{module}.".startswith(f"{error.name}.")
        ):
            raise UserError(
                f"{where}: there is no module '{error.name}'; install it, or add its folder to "
                "PYTHONPATH"
            ) from error
        raise UserError(f"{where}: importing {module}: {located(error)}{advice(error)}") from error


def _entry(gamename: str, env: str | Callable[..., Any]) -> GymSpec:
    """Gymnasium's registry entry, after the module of a ``module:Id-v0`` is imported; one of its
    own for a function.
    """
    if callable(env):
        return GymSpec(f"{folder_name(gamename)}-v0", functools.partial(_made, env))
    _import(env)
    return registered(env)


def _made(make: Callable[..., Any], render_mode: str | None = None, **kwargs: Any) -> Any:
    """The environment that a user's function makes, in Gymnasium's form."""
    if is_func_env(make):
        return FuncGymEnv(make(**kwargs), render_mode)
    return make(**kwargs) if render_mode is None else make(render_mode=render_mode, **kwargs)


def takes_render_mode(env: str | Callable[..., Any]) -> bool:
    """Whether an environment can be asked for pictures: of functions, those that have the
    argument.
    """
    if not callable(env) or is_func_env(env):
        return True
    parameters = inspect.signature(env).parameters.values()
    return any(each.name == "render_mode" or each.kind == each.VAR_KEYWORD for each in parameters)


def _read(gamename: str, game: Game, entry: GymSpec) -> EnvSpec:
    env = _make(gamename, entry, dict(game.kwargs))
    try:
        _require_spaces(gamename, env)
        has_images = image_space(env.observation_space) is not None
        if not has_images:
            check_observations(entry.id, env.observation_space)
        check_actions(entry.id, env.action_space)
        horizon = game.horizon or entry.max_episode_steps or _time_limit(env)
        one_hot = game.one_hot or isinstance(env.observation_space, gymnasium.spaces.Discrete)
        obs_size = 0 if has_images else gymnasium.spaces.flatdim(env.observation_space)
        skips_frames = "frame_skip" in inspect.signature(type(env.unwrapped).__init__).parameters
        action_size = gymnasium.spaces.flatdim(env.action_space)
        continuous = isinstance(env.action_space, gymnasium.spaces.Box)
        factors = factors_of(env.action_space)
        objectives = _objectives(gamename, env, game.objectives)
    finally:
        try:
            env.close()
        except (Exception, SystemExit) as error:  # of the environment's own code
            raise UserError(
                f"close() of '{entry.id}' for gamename '{gamename}': {located(error)}"
            ) from error
    if horizon is None:
        horizon = DEFAULT_HORIZON
        warnings.warn(
            f"no time limit is known for '{gamename}': its episodes are cut after {horizon} steps; "
            "lightning_rl.register_env(..., horizon=) sets another",
            stacklevel=3,
        )
    spec = EnvSpec(
        gamename,
        game.env,
        obs_size,
        action_size,
        continuous,
        horizon,
        game.max_return,
        _solved(game, entry),
        game.min_return,
        one_hot,
        sparse=game.sparse,
        kwargs=game.kwargs,
        observation_space=env.observation_space,
        action_space=env.action_space,
        skips_frames=skips_frames,
        objectives=objectives,
        factors=factors,
    )
    return spec.seen_as(game.images or Images()) if has_images else spec


def _objectives(gamename: str, env: Env, given: tuple[str, ...]) -> tuple[str, ...]:
    """The names of an environment's objectives, none where each step pays a number.

    given: those that it was registered with. UserError where they are not as many as it pays.
    """
    if not env.has_wrapper_attr("reward_space"):
        return given
    shape = np.shape(env.get_wrapper_attr("reward_space").low)
    if len(shape) != 1 or not shape[0]:
        raise UserError(
            f"gamename '{gamename}': its reward_space has the shape {shape}; give a box of shape "
            "(n,)"
        )
    names = given or _OBJECTIVES.get(gamename.rpartition(":")[2], ())
    if not names:
        names = tuple(f"objective_{number}" for number in range(1, shape[0] + 1))
    if len(names) != shape[0]:
        raise UserError(
            f"gamename '{gamename}': objectives {', '.join(names)} are {len(names)}, its "
            f"reward_space has {shape[0]}; name each"
        )
    return names


def _require_spaces(gamename: str, env: Env) -> None:
    """UserError where the class of an environment forgets its spaces, which ``gymnasium.Env``
    only declares.
    """
    if not isinstance(env.metadata, dict):
        remedy = "give one, e.g. {'render_modes': []}"
        raise UserError(
            f"gamename '{gamename}': its metadata {shown(env.metadata)} is no dict; {remedy}"
        )
    examples = {
        "observation_space": "gymnasium.spaces.Box(-1, 1, (4,))",
        "action_space": "gymnasium.spaces.Discrete(2)",
    }
    missing = [name for name in examples if getattr(env, name, None) is None]
    if missing:
        name = type(env.unwrapped).__name__
        remedy = " and ".join(f"self.{space} = {examples[space]}" for space in missing)
        raise UserError(
            f"{name} (gamename '{gamename}') has no {' and no '.join(missing)}; set in its "
            f"__init__, e.g., {remedy}"
        )


def _time_limit(env: Env) -> int | None:
    """The limit of a ``TimeLimit`` wrapper that the user's own function or class has put around
    it, or that a proxy has.
    """
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            return int(env._max_episode_steps)
        env = env.env
    return env.horizon if isinstance(env, OwnHorizon) else None


def plain_env(spec: EnvSpec, **options: Any) -> Env:
    """The environment of ``spec`` as Gymnasium makes it, without the time limit that Gymnasium has
    for it.

    UserError, with the file and line in a user's code, where it cannot be made. options: further
    arguments.
    """
    return _make(spec.gamename, _entry(spec.gamename, spec.env), {**dict(spec.kwargs), **options})


def _make(gamename: str, entry: GymSpec, kwargs: dict[str, Any]) -> Env:
    entry = copy.deepcopy(entry)
    entry.order_enforce = False  # the roll-out loop resets before it steps
    try:
        with _quiet_mujoco(entry):
            return gymnasium.make(entry, max_episode_steps=-1, disable_env_checker=True, **kwargs)
    except UserError:
        raise
    except (gymnasium.error.Error, ImportError) as error:
        raise UserError(f"cannot make '{entry.id}' for gamename '{gamename}': {error}") from error
    except (Exception, SystemExit) as error:  # of the environment's own code
        raise UserError(
            f"cannot make '{entry.id}' for gamename '{gamename}': {located(error)}"
        ) from error


@contextlib.contextmanager
def _quiet_mujoco(entry: GymSpec) -> Iterator[None]:
    """Silences MuJoCo's warnings on deprecated attributes in Gymnasium's own models, which it
    prints and logs at every start.
    """
    if not str(entry.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    require(f"'{entry.id}'", "mujoco")
    import mujoco  # type: ignore[import-untyped]

    def warn(text: str) -> None:
        if "deprecated" not in text:
            say(f"MuJoCo: {text}", error=True)

    mujoco.set_mju_user_warning(warn)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)
