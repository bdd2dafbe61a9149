"""A store of whole episodes: the best, the newest, or both."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.contents import check_alike
from lightning_rl.core.types import Array, Episode
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.returns import discounted_returns


@dataclass
class FlatEpisodes:
    """``E`` episodes behind one another, ``M`` steps in all.

    obs ``[M + E, O]`` has the final observation of each; step ``i`` saw ``obs[row[i]]`` and led to
    ``obs[row[i] + 1]``. Of images these are frames, ``stack`` of which a policy sees at once, see
    ``observed``. action ``[M]`` or ``[M, A]``; reward, terminated, and left (how many steps the
    episode has from this one on) ``[M]``; to_go ``[M + E]``: the undiscounted return from each
    observation on; first ``[E]``: the steps that episodes begin with.
    """

    obs: Tensor
    row: Tensor
    action: Tensor
    reward: Tensor
    to_go: Tensor
    terminated: Tensor
    left: Tensor
    first: Tensor
    stack: int

    def __len__(self) -> int:
        return len(self.row)

    def observed(self, row: Tensor) -> Tensor:
        """What a policy sees at rows ``[...]`` of obs: the newest ``stack``, ``[..., O]``."""
        if self.stack == 1:
            return self.obs[row]
        newest = row.unsqueeze(-1) + torch.arange(1 - self.stack, 1, device=row.device)
        begin = self.row[self.first]
        episode = torch.searchsorted(begin, row, right=True) - 1
        within = torch.maximum(newest, begin[episode].unsqueeze(-1))
        return self.obs[within].flatten(-2)

    @property
    def last(self) -> Tensor:
        """Whether a step is the last of its episode, ``[M]``."""
        return self.left == 1

    @property
    def episode_return(self) -> Tensor:
        """The undiscounted return of the whole episode that a step is of, ``[M]``."""
        # each episode before a step's own has a row more than steps
        episode = self.row - torch.arange(len(self), device=self.row.device)
        return self.to_go[self.row[self.first]][episode]

    def discounted_return(self, gamma: float) -> Tensor:
        """The return from each step to the end of its episode, discounted, ``[M]``."""
        return discounted_returns(self.reward, gamma, self.last)


def flatten(episodes: Sequence[Episode]) -> FlatEpisodes:
    """Lays episodes behind one another."""
    length = np.array([e.length for e in episodes])
    end = np.cumsum(length)
    step = np.arange(end[-1])
    terminated = np.zeros(end[-1], dtype=bool)
    terminated[end - 1] = [e.terminated for e in episodes]
    arrays = {
        "obs": np.concatenate([e.obs for e in episodes]),
        "row": step + np.repeat(np.arange(len(length)), length),
        "action": np.concatenate([e.action for e in episodes]),
        "reward": np.concatenate([e.reward for e in episodes]),
        "to_go": np.concatenate([e.to_go for e in episodes]),
        "terminated": terminated,
        "left": np.repeat(end, length) - step,
        "first": end - length,
    }
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return FlatEpisodes(**tensors, stack=episodes[0].stack)


class EpisodeBuffer:
    """The episodes of highest return and the newest ones, whole; an episode that is both counts
    twice.

    Args:
        best: how many of the highest return (UDRL paper, section 2.2.1). Episodes of equal return
            are all kept; when the buffer is full, the oldest of the worst gives way.
        newest: how many of the newest, whatever their return; None: as many as fit ``steps``.
        steps: how many steps the newest may have in all, but for a single episode that is longer;
            None: any number.
    """

    def __init__(self, best: int = 0, newest: int | None = 0, steps: int | None = None):
        self.best, self.newest, self.steps = best, newest, steps
        self._best: list[Episode] = []  # best first; of equal returns the youngest first
        self._newest: deque[Episode] = deque()  # oldest first
        self._newest_steps = 0

    @property
    def episodes(self) -> list[Episode]:
        """All, in the order of their steps: the best, best first; the newest, oldest first."""
        return [*self._best, *self._newest]

    def __len__(self) -> int:
        return len(self._best) + len(self._newest)

    def add(self, episodes: Iterable[Episode]) -> None:
        """Adds the episodes in order; worse and older ones give way."""
        for episode in episodes:
            if self.best:
                bisect.insort_left(self._best, episode, key=lambda e: -e.ret)
                del self._best[self.best :]
            if self.newest != 0:
                self._newest.append(episode)
                self._newest_steps += episode.length
                while len(self._newest) > 1 and self._too_many():
                    self._newest_steps -= self._newest.popleft().length

    def _too_many(self) -> bool:
        if self.newest is not None and len(self._newest) > self.newest:
            return True
        return self.steps is not None and self._newest_steps > self.steps

    def highest(self, count: int | None = None) -> tuple[Array, Array]:
        """Returns and lengths of the (at most) ``count`` episodes of highest return, best first."""
        ranked = self._best or sorted(self._newest, key=lambda e: -e.ret)
        highest = ranked[:count]
        return np.array([e.ret for e in highest]), np.array([e.length for e in highest])

    def returns(self) -> Array:
        """The returns of all episodes."""
        return np.array([e.ret for e in self.episodes])

    def mean_length(self, count: int) -> float:
        """Mean length of the ``count`` newest episodes; if none are kept, of the best."""
        episodes = list(self._newest)[-count:] or self._best[:count]
        return float(np.mean([e.length for e in episodes]))

    def flat(self) -> FlatEpisodes:
        """All episodes behind one another."""
        return flatten(self.episodes)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], by: str) -> Array:
        """Steps of ``flat``: uniformly by ``transition``; by ``episode``, and a step in it."""
        length = np.array([e.length for e in self.episodes])
        if by == "transition":
            return rng.integers(length.sum(), size=shape)
        episode = rng.integers(len(length), size=shape)
        return (np.cumsum(length) - length)[episode] + rng.integers(length[episode])

    def state_dict(self) -> dict[str, Any]:
        """Plain data; the episodes behind one another, nothing where there are none yet."""
        episodes = self.episodes
        if not episodes:
            return {}
        flat = flatten(episodes)
        return {
            "obs": flat.obs,
            "action": flat.action,
            "reward": flat.reward,
            "lengths": [e.length for e in episodes],
            "terminated": [e.terminated for e in episodes],
            "best": len(self._best),
        }

    def load_state_dict(self, state: dict[str, Any], spec: EnvSpec) -> None:
        """Replaces the contents; the buffer must have the capacities of the one that was saved.

        ValueError for steps that cannot be of ``spec``, or are not those of the episodes.
        """
        if not state:
            return
        lengths: list[int] = state["lengths"]
        steps = len(state["reward"])
        action = torch.from_numpy(spec.actions(steps))
        obs = torch.empty(steps + len(lengths), spec.stored_size)
        if spec.frames is not None:
            obs = obs.byte()
        example = {"obs": obs, "action": action, "reward": torch.empty(steps)}
        check_alike({name: state[name] for name in example}, example, "buffer")
        if min(lengths) < 1:
            raise ValueError("buffer: an episode without a step")
        if not spec.allows(state["action"].numpy()):
            raise ValueError(f"buffer: an action that is none of {spec.action_space}")
        parts = zip(
            state["obs"].split([length + 1 for length in lengths]),
            state["action"].split(lengths),
            state["reward"].split(lengths),
            state["terminated"],
            strict=True,
        )
        episodes = [
            Episode(
                obs=obs.numpy(),
                action=action.numpy(),
                reward=reward.numpy(),
                terminated=terminated,
                truncated=not terminated,
                env_steps=len(reward),
                stack=spec.stack,
            )
            for obs, action, reward, terminated in parts
        ]
        self._best = episodes[: state["best"]]
        self._newest = deque(episodes[state["best"] :])
        self._newest_steps = sum(e.length for e in self._newest)
