"""The buffer: the episodes nearest to the best ones, spread over all that can be had."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from lightning_rl.core.contents import check_alike
from lightning_rl.core.types import Array, Episode
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.pareto import crowding_distance, in_ranges, non_dominated
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer

_COPY = 1e-5  # less than what any other return is away from the front


def vector_returns(episodes: Sequence[Episode]) -> Array:
    """What each episode obtained of each objective, float64 ``[E, K]``."""
    rewards = [episode.rewards for episode in episodes]
    return np.stack([each.sum(0, dtype=np.float64) for each in rewards if each is not None])


def nearest_to_front(points: Array, count: int, crowding: float) -> Array:
    """Which ``count`` of the points ``[E, K]`` are kept, the best first (PCN, section 4.2).

    They are ranked by the distance to the nearest one that is not dominated, in units of each
    objective's range, which counts double where the crowding distance is at most ``crowding``. Of
    equal points the first ones rank higher: the second copies of all come after the first ones, and
    so on (PCN's code has all copies alike).
    """
    scaled = in_ranges(points)
    front = scaled[non_dominated(points)]
    away = np.linalg.norm(scaled[:, None] - front, axis=-1).min(-1)
    _, place = np.unique(points, axis=0, return_inverse=True)
    order = place.argsort(kind="stable")
    ranked = place[order]
    copy = np.empty(len(points))
    copy[order] = np.arange(len(points)) - np.searchsorted(ranked, ranked)
    away += _COPY * copy
    away[crowding_distance(points) <= crowding] *= 2
    return away.argsort(kind="stable")[:count]


class FrontBuffer(EpisodeBuffer):
    """So many episodes, those that ``nearest_to_front`` ranks best; of equal ones the youngest."""

    def __init__(self, size: int, crowding: float):
        super().__init__(best=size)
        self.crowding = crowding

    def add(self, episodes: Iterable[Episode]) -> None:
        known = [*reversed(list(episodes)), *self._best]
        kept = nearest_to_front(vector_returns(known), self.best, self.crowding)
        self._best = [known[place] for place in kept]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        rewards = [episode.rewards for episode in self._best if episode.rewards is not None]
        return {**state, "rewards": torch.from_numpy(np.concatenate(rewards))} if state else {}

    def load_state_dict(self, state: dict[str, Any], spec: EnvSpec) -> None:
        if not state:
            return
        super().load_state_dict(state, spec)
        example = torch.empty(len(state["reward"]), len(spec.objectives) or 1)
        check_alike(state["rewards"], example, "buffer.rewards")
        parts = state["rewards"].split(state["lengths"])
        self._best = [
            dataclasses.replace(episode, rewards=part.numpy())
            for episode, part in zip(self._best, parts, strict=True)
        ]
