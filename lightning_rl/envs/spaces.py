"""What networks see of Gymnasium's spaces: an observation is one vector of numbers, an action an index or a vector in a box."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import WIDTH, shown
from lightning_rl.core.types import Array

_FLAT = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def _parts(space: Space[Any]) -> list[Space[Any]]:
    """The spaces within a Dict or Tuple, else the space itself."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [space]
    inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
    return [part for each in inner for part in _parts(each)]


def _is_image(space: Space[Any]) -> bool:
    """A Box of three dimensions, or of two dimensions of bytes."""
    return isinstance(space, spaces.Box) and (len(space.shape) >= 3 or (len(space.shape) == 2 and space.dtype == np.uint8))


def check_observations(env_id: str, space: Space[Any]) -> None:
    """UserError where observations cannot be made vectors of a size that networks take: images, sequences, graphs, texts."""
    if any(_is_image(part) for part in _parts(space)):
        raise UserError(
            f"the observations of {env_id} are an image, {shown(space)}; networks here take vectors: wrap it to give those"
        )
    if not all(isinstance(part, _FLAT) for part in _parts(space)):
        raise UserError(
            f"the observation space of {env_id} is {shown(space)}, which no network here takes; those that do: Box, Discrete, "
            "MultiDiscrete, MultiBinary, and Dict and Tuple of these. Wrap the environment"
        )
    if not 1 <= (size := spaces.flatdim(space)) <= WIDTH:
        raise UserError(f"the observations of {env_id} are {size:,} numbers; networks here take 1 to {WIDTH:,}: wrap it")


def check_actions(env_id: str, space: Space[Any]) -> None:
    """UserError where no policy here fits the actions."""
    box = isinstance(space, spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating)
    if not box and not isinstance(space, spaces.Discrete):
        raise UserError(
            f"the action space of {env_id} is {shown(space)}, which no policy here fits; those that do: "
            "Discrete (categorical policy) and Box of shape (n,) (Gaussian policy). Wrap the environment"
        )
    if isinstance(space, spaces.Box) and not (space.is_bounded() and (space.low < space.high).all()):
        raise UserError(
            f"the action space of {env_id} is {shown(space)}, a box without bounds or width; policies act in [-1, 1], which is "
            "scaled to the box: give it finite bounds"
        )
    if not 1 <= (size := spaces.flatdim(space)) <= WIDTH:
        raise UserError(f"the actions of {env_id} are {size:,}; policies here have 1 to {WIDTH:,}: wrap it")


def is_vector(space: Space[Any]) -> bool:
    """Whether observations are vectors of numbers as they are."""
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def flat_space(space: Space[Any]) -> spaces.Box:
    """The box of the flattened observations, single precision."""
    flat: Any = spaces.flatten_space(space)
    return spaces.Box(flat.low.astype(np.float32), flat.high.astype(np.float32), dtype=np.float32)


def flattened(space: Space[Any], obs: Any) -> Array:
    """An observation as a vector: Discrete one-hot from the start of its space, the parts of Dict and Tuple one after the other.

    ValueError where it is none of the space.
    """
    try:
        if not _inside(space, obs):
            raise ValueError("not in the space")
        return np.asarray(spaces.flatten(space, obs), dtype=np.float32)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("not in the space") from error


def _inside(space: Space[Any], obs: Any) -> bool:
    """Whether all parts of an observation are of the space, but for the bounds of boxes, which few environments keep."""
    if isinstance(space, spaces.Dict):
        return all(_inside(part, obs[name]) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return len(obs) == len(space.spaces) and all(map(_inside, space.spaces, obs))
    return np.shape(obs) == space.shape if isinstance(space, spaces.Box | spaces.MultiBinary) else space.contains(obs)
