"""Episodes that others have played, to learn from without playing."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lightning_rl.core.checks import one_number, whole_number
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown, within
from lightning_rl.core.types import Array, Episode, FloatArray
from lightning_rl.envs.checked import REWARDS, reward_number
from lightning_rl.envs.spec import EnvSpec

_REMEDY = "give another dataset, or the --gamename that it was recorded in"


@dataclass(frozen=True)
class Dataset:
    """Episodes of one environment; ``checked_dataset`` makes one.

    name: for people, e.g. the folder that they were read from.
    """

    name: str
    episodes: Sequence[Episode]

    @cached_property
    def digest(self) -> bytes:
        """Of all that can be learned from: equal for equal episodes, wherever they were read."""
        whole = hashlib.sha256()
        for episode in self.episodes:
            whole.update(_digest(episode))
        return whole.digest()

    def __str__(self) -> str:
        returns = np.array([episode.ret for episode in self.episodes])
        steps = sum(episode.length for episode in self.episodes)
        spread = within(float(returns.min()), float(returns.max()))
        return (
            f"dataset '{self.name}': {len(returns):,} episodes, {steps:,} steps, returns {spread}, "
            f"mean {returns.mean():.4g}"
        )


def checked_dataset(name: str, episodes: Iterable[Any], spec: EnvSpec) -> Dataset:
    """The episodes in the form and types of those that are played here.

    Where the environment pays at the end of an episode only, so do they.

    Raises:
        UserError: there are none, or one is none of the environment's, with its number.
    """
    checked = []
    for number, episode in enumerate(episodes):
        if not isinstance(episode, Episode):
            raise UserError(
                f"dataset: {shown(episode)} is no episode; give a list of lightning_rl.Episode, or "
                "the path of a dataset or run"
            )
        try:
            checked.append(_checked(episode, spec))
        except ValueError as error:
            raise UserError(f"dataset '{name}', episode {number}: {error}") from error
    if not checked:
        raise UserError(f"dataset '{name}' has no episodes; give another")
    return Dataset(name, checked)


def distinct(episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes without those that are there already."""
    return list({_digest(episode): episode for episode in episodes}.values())


def best_episodes(episodes: Sequence[Episode], share: float) -> list[Episode]:
    """The share of the episodes that has the highest returns, one at least, in their order."""
    count = max(1, round(share * len(episodes)))
    ranked = sorted(range(len(episodes)), key=lambda place: -episodes[place].ret)
    return [episodes[place] for place in sorted(ranked[:count])]


def _digest(episode: Episode) -> bytes:
    arrays = (episode.obs, episode.action, episode.reward)
    content = hashlib.sha256(repr([array.shape for array in arrays]).encode())
    for array in arrays:
        content.update(np.ascontiguousarray(array).data)
    content.update(bytes([episode.terminated]))
    return content.digest()


def _checked(episode: Episode, spec: EnvSpec) -> Episode:
    """The episode in our types; ValueError says what is wrong with it."""
    reward = _numbers("rewards", episode.reward)
    if reward.ndim != 1 or reward.size == 0:
        raise ValueError(f"its rewards have the shape {list(reward.shape)}, expected one a step")
    steps = len(reward)
    if reward_number(np.abs(reward).max()) is None:
        raise ValueError(f"a reward is {np.abs(reward).max():g}, expected {REWARDS}")
    obs = _numbers("observations", episode.obs) if spec.frames is None else _frames(episode.obs)
    if obs.shape != (steps + 1, spec.stored_size):
        raise ValueError(
            f"its observations have the shape {list(obs.shape)}, expected "
            f"{[steps + 1, spec.stored_size]} of its {steps} steps in '{spec.gamename}', with the "
            f"final one; {_REMEDY}"
        )
    if spec.sparse:
        total = reward.sum(dtype=np.float64)
        reward = np.zeros_like(reward)
        reward[-1] = total
    terminated = _truth("terminated", episode.terminated)
    return dataclasses.replace(
        episode,
        obs=obs,
        action=_actions(episode.action, steps, spec),
        reward=reward,
        terminated=terminated,
        truncated=_truth("truncated", episode.truncated) or not terminated,
        env_steps=max(whole_number("env_steps", episode.env_steps, 0), steps),
        stack=spec.stack,
    )


def _truth(what: str, given: Any) -> bool:
    number = one_number(given)
    if number not in (0, 1):
        raise ValueError(f"its {what} is {shown(given)}, expected True or False")
    return bool(number)


def _array(what: str, given: Any) -> Array:
    try:
        return np.asarray(given)
    except Exception as error:  # of ragged lists, or whatever a class of the user's raises
        raise ValueError(f"its {what} are no array, but {shown(given)}; {_REMEDY}") from error


def _numbers(what: str, given: Any) -> FloatArray:
    """Finite numbers in single precision."""
    found = _array(what, given)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"its {what} are no numbers, but {found.dtype}; {_REMEDY}")
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(found, dtype=np.float32)
    finite = np.isfinite(numbers)
    if not finite.all():
        raise ValueError(
            f"{(~finite).sum():,} of the {numbers.size:,} numbers of its {what} are not finite in "
            "single precision; leave it out"
        )
    return numbers


def _frames(given: Any) -> Array:
    """Single frames of images, as bytes."""
    found = _array("observations", given)
    if found.dtype != np.uint8:
        raise ValueError(f"its frames are {found.dtype}, expected uint8; {_REMEDY}")
    return np.ascontiguousarray(found)


def _actions(given: Any, steps: int, spec: EnvSpec) -> Array:
    """Actions as policies give them: indices, or numbers in units of the box."""
    found = _array("actions", given)
    if spec.continuous:
        numbers = _numbers("actions", found)
        if found.shape != (steps, spec.action_size):
            raise ValueError(
                f"its actions have the shape {list(found.shape)}, expected "
                f"{[steps, spec.action_size]} of '{spec.gamename}'; {_REMEDY}"
            )
        return numbers
    shape, counts = spec.actions(steps).shape, spec.factors or spec.action_size
    if found.shape != shape or found.dtype.kind not in "biu":
        expected = " x ".join(map(str, shape))
        raise ValueError(
            f"its actions are {found.dtype} {list(found.shape)}, expected {expected} whole "
            f"numbers, as '{spec.gamename}' has {counts} discrete actions; {_REMEDY}"
        )
    indices = found.astype(np.int64)
    if not spec.allows(indices):
        raise ValueError(
            f"its actions go from {indices.min(0)} to {indices.max(0)}, those of "
            f"'{spec.gamename}' from 0 to {np.subtract(counts, 1)}; {_REMEDY}"
        )
    return indices
