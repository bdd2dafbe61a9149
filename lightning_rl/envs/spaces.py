"""What networks see of Gymnasium's spaces: an observation is one vector of numbers, or an image
(``envs.images``), an action an index or a vector in a box.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import Space, spaces
from gymnasium.wrappers.utils import rescale_box

from lightning_rl.core.checks import NOT_RESET, episode_seed, reset_options, whole_number
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import WIDTH, shown
from lightning_rl.core.types import Array

Env = gymnasium.Env[Any, Any]
Wrapper = gymnasium.Wrapper[Any, Any, Any, Any]
ObsWrapper = gymnasium.ObservationWrapper[Any, Any, Any]
ResetOutcome = tuple[Any, dict[str, Any]]
StepOutcome = tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]

STEPS = "lightning_rl/steps"
"""Where ``info`` says how many steps a repeated action took: a name that no environment has for
something of its own.
"""


class OwnEnv(Env):
    """An environment of this package. A subclass says in ``begin`` how episodes begin."""

    _begun = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> ResetOutcome:
        super().reset(seed=episode_seed(seed), options=reset_options(options))
        self._begun = True
        return self.begin(), {}

    def begin(self) -> Array:
        """Begins an episode; its first observation."""
        raise NotImplementedError

    def require_begun(self) -> None:
        """UserError before the first episode."""
        if not self._begun:
            raise UserError(NOT_RESET)


_FLAT = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def _parts(space: Space[Any]) -> list[Space[Any]]:
    """The spaces within a Dict or Tuple, else the space itself."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [space]
    inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
    return [part for each in inner for part in _parts(each)]


def is_image(space: Space[Any]) -> bool:
    """A Box of three dimensions, or of two dimensions of bytes."""
    return isinstance(space, spaces.Box) and (
        len(space.shape) >= 3 or (len(space.shape) == 2 and space.dtype == np.uint8)
    )


def image_key(space: Space[Any]) -> str | None:
    """The name of the only image of a Dict; None where there is none, or more."""
    if not isinstance(space, spaces.Dict):
        return None
    keys = [key for key, part in space.spaces.items() if is_image(part)]
    return keys[0] if len(keys) == 1 else None


def image_space(space: Space[Any]) -> spaces.Box | None:
    """The space of an environment's pictures; None where its observations are no images."""
    key = image_key(space)
    if key is not None:
        space = space[key]  # type: ignore[index]
    return space if isinstance(space, spaces.Box) and is_image(space) else None


def check_observations(env_id: str, space: Space[Any]) -> None:
    """UserError where observations cannot be made vectors of a size that networks take: sequences,
    graphs, texts, images with something else.
    """
    if any(is_image(part) for part in _parts(space)):
        raise UserError(
            f"the observations of {env_id} are images and more, {shown(space)}; networks here take "
            "one image, also as the only one of a Dict, or vectors: wrap the environment"
        )
    if not all(isinstance(part, _FLAT) for part in _parts(space)):
        raise UserError(
            f"the observation space of {env_id} is {shown(space)}, which no network here takes; "
            "those that do: Box, Discrete, "
            "MultiDiscrete, MultiBinary, and Dict and Tuple of these. Wrap the environment"
        )
    if not 1 <= (size := spaces.flatdim(space)) <= WIDTH:
        raise UserError(
            f"the observations of {env_id} are {size:,} numbers; networks here take 1 to "
            f"{WIDTH:,}: wrap it"
        )


_NARROWEST = 1e-30
"""Width of a box of actions: what is scaled to a narrower one is no number in single precision."""


def check_actions(env_id: str, space: Space[Any]) -> None:
    """UserError where no policy here fits the actions."""
    box = (
        isinstance(space, spaces.Box)
        and len(space.shape) == 1
        and np.issubdtype(space.dtype, np.floating)
    )
    several = isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1
    if not (box or several or isinstance(space, spaces.Discrete)):
        raise UserError(
            f"the action space of {env_id} is {shown(space)}, which no policy here fits; those "
            "that do: Discrete and MultiDiscrete of shape (n,) (categorical policy), Box of shape "
            "(n,) (Gaussian policy). Wrap the environment"
        )
    if isinstance(space, spaces.Box) and not (
        space.is_bounded() and (space.high - space.low >= _NARROWEST).all()
    ):
        raise UserError(
            f"the action space of {env_id} is {shown(space)}, a box without bounds or width; "
            "policies act in [-1, 1], which is scaled to the box: give it finite bounds"
        )
    if not 1 <= (size := spaces.flatdim(space)) <= WIDTH:
        raise UserError(
            f"the actions of {env_id} are {size:,}; policies here have 1 to {WIDTH:,}: wrap it"
        )


def is_vector(space: Space[Any]) -> bool:
    """Whether observations are vectors of numbers as they are."""
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def finite_box(low: Sequence[float], high: Sequence[float]) -> spaces.Box:
    """A box in single precision that has room: without bounds it goes to the largest number, as
    Gymnasium recommends.
    """
    most = float(np.finfo(np.float32).max)
    lower = np.clip(np.array(low, np.float64), -most, most).astype(np.float32)
    upper = np.clip(np.array(high, np.float64), -most, most).astype(np.float32)
    return spaces.Box(np.where(lower < upper, lower, upper - 1), upper, dtype=np.float32)


def flat_space(space: Space[Any]) -> spaces.Box:
    """The box of the flattened observations, single precision."""
    flat: Any = spaces.flatten_space(space)
    with np.errstate(over="ignore"):  # what single precision does not hold is unbounded
        return spaces.Box(flat.low.astype(np.float32), flat.high.astype(np.float32))


def flattened(space: Space[Any], obs: Any) -> Array:
    """An observation as a vector: Discrete one-hot from the start of its space, the parts of Dict
    and Tuple one after the other.

    ValueError where it is none of the space.
    """
    try:
        if not _inside(space, obs):
            raise ValueError("not in the space")
        with np.errstate(over="ignore"):
            return np.asarray(spaces.flatten(space, obs), dtype=np.float32)
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError("not in the space") from error


def _inside(space: Space[Any], obs: Any) -> bool:
    """Whether all parts of an observation are of the space, but for the bounds of boxes, which
    few environments keep.
    """
    if isinstance(space, spaces.Dict):
        return all(_inside(part, obs[name]) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return len(obs) == len(space.spaces) and all(map(_inside, space.spaces, obs))
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return is_numbers(np.asarray(obs), space.shape)
    return space.contains(obs)


def is_numbers(found: Array, shape: tuple[int, ...] | None) -> bool:
    """Whether an array has this shape, and numbers that a network can read: no texts, dates or
    complex ones.
    """
    return found.shape == shape and found.dtype.kind in "biuf"


def checked_action(space: Space[Any], action: Any) -> Any:
    """A user's action: an index, or a vector of its box's type that may leave the box; UserError
    for anything else.
    """
    if isinstance(space, spaces.Box):
        try:
            vector = np.asarray(action)
        except Exception:  # whatever a class of the user's raises
            vector = np.asarray(None)
        if is_numbers(vector, space.shape) and all(map(math.isfinite, vector.tolist())):
            return vector.astype(space.dtype)
    elif isinstance(space, spaces.Discrete):
        start = int(space.start)
        index = int(action) if isinstance(action, bool | np.bool_) else action
        with contextlib.suppress(UserError):
            return whole_number("action", index, start, start + int(space.n) - 1)
    raise UserError(f"action {shown(action)}: it must be one of {space}")


def acting_space(space: Space[Any]) -> Space[Any]:
    """The actions of policies in an environment with this space: from 0 up, or in the box [-1,
    1].
    """
    if isinstance(space, spaces.Box):
        return spaces.Box(-1, 1, space.shape, space.dtype)
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec)
    assert isinstance(space, spaces.Discrete)
    return spaces.Discrete(int(space.n))


class OwnAction:
    """Makes a policy's action, of ``acting_space``, one of the environment's own space.

    Continuous actions are clipped to [-1, 1] and scaled to the box. Where the box does not contain
    what is scaled, as its edges are rounded or its numbers are of another type, that is clipped to
    it and cast.
    """

    def __init__(self, space: Space[Any]):
        self.space = space
        if isinstance(space, spaces.Box):
            low, high = (np.full(space.shape, edge, space.dtype) for edge in (-1, 1))
            self._unit, _, self._scaled = rescale_box(space, low, high)
            edges = [self._in_units(np.full(space.shape, edge, np.float32)) for edge in (-1, 1)]
            self._fits = all(space.contains(edge) for edge in edges)

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnAction, (self.space,)

    def __call__(self, action: Any) -> Any:
        if isinstance(self.space, spaces.MultiDiscrete):
            return (action + self.space.start).astype(self.space.dtype)
        if not isinstance(self.space, spaces.Box):
            return action + int(self.space.start)  # type: ignore[attr-defined]
        own = self._in_units(action)
        if self._fits:
            return own
        return np.clip(own, self.space.low, self.space.high).astype(self.space.dtype)

    def _in_units(self, action: Array) -> Array:
        return self._scaled(np.clip(action, self._unit.low, self._unit.high))


def factors_of(space: Space[Any]) -> tuple[int, ...]:
    """How many actions each of several discrete ones has; none of other actions."""
    return tuple(space.nvec.tolist()) if isinstance(space, spaces.MultiDiscrete) else ()


def action_box_of(space: Space[Any] | None) -> list[list[float]] | None:
    """The lower and the upper bounds of actions that are vectors, as a checkpoint records them;
    None of others.
    """
    if isinstance(space, spaces.MultiDiscrete):
        start = space.start.astype(float)
        return [start.tolist(), (start + space.nvec - 1).tolist()]
    return [space.low.tolist(), space.high.tolist()] if isinstance(space, spaces.Box) else None


def other_box(before: Any, now: Any, gamename: str) -> str | None:
    """Why a policy that learned in the box ``before`` cannot act in ``now``; None where it can,
    or no checkpoint says.
    """
    if before is None or (isinstance(before, list) and before == now):
        return None
    return (
        f"its actions are within {shown(before)} (lower, upper bounds), those of gamename "
        f"'{gamename}' are within {shown(now)} here; give the environment that box, or train anew"
    )
