"""Stores of whole episodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.contents import Also, Count, Flag, ListOf, TensorOf
from lightning_rl.core.types import Array, Episode, FloatArray
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.returns import returns_to_go


def action_layout(spec: EnvSpec, steps: str) -> TensorOf:
    """What the actions of a dimension called ``steps`` look like."""
    if spec.continuous:
        return TensorOf(torch.float32, (steps, spec.action_size))
    return TensorOf(torch.int64, (steps,), 0, spec.action_size - 1)


class SortedEpisodeBuffer:
    """The ``capacity`` episodes of highest return (UDRL paper, section 2.2.1), whole, and the ``recent`` newest.

    Episodes of equal return are all kept; when the buffer is full, the oldest of the worst gives way. The recent
    ones, our addition, are kept whatever their return and may be among the best as well.
    Storage is allocated once, padded to the horizon: adding an episode writes one or two rows.
    """

    def __init__(self, capacity: int, spec: EnvSpec, recent: int = 0):
        self.capacity, self.horizon, self.recent = capacity, spec.horizon, recent
        rows = capacity + recent
        action_shape = (spec.action_size,) if spec.continuous else ()
        self._obs = np.empty((rows, spec.horizon, spec.obs_size), dtype=np.float32)
        self._action: Array = np.empty((rows, spec.horizon, *action_shape), dtype=np.float32 if spec.continuous else np.int64)
        self._to_go = np.empty((rows, spec.horizon + 1), dtype=np.float32)
        self._length = np.zeros(rows, dtype=np.int64)
        self._return = np.zeros(rows)
        self._newest = 0
        self._order = np.zeros(0, dtype=np.int64)  # slots, best first; of equal returns the youngest first

    def __len__(self) -> int:
        return len(self._order)

    def add(self, episodes: Iterable[Episode]) -> None:
        """Adds each episode unless the buffer is full of better ones."""
        for episode in episodes:
            if self.recent:
                self._write(self.capacity + self._newest % self.recent, episode)
                self._newest += 1
            if len(self) < self.capacity:
                slot = len(self)
            elif episode.ret >= self._return[self._order[-1]]:
                slot = int(self._order[-1])
                self._order = self._order[:-1]
            else:
                continue
            self._write(slot, episode)
            place = np.searchsorted(-self._return[self._order], -episode.ret, side="left")
            self._order = np.insert(self._order, place, slot)

    def _write(self, slot: int, episode: Episode) -> None:
        length = episode.length
        self._obs[slot, :length], self._action[slot, :length] = episode.obs[:-1], episode.action
        self._to_go[slot, : length + 1] = returns_to_go(episode.reward)
        self._length[slot], self._return[slot] = length, episode.ret

    @property
    def _slots(self) -> Array:
        """Slots to draw from: the best, then the recent."""
        return np.concatenate([self._order, self.capacity + np.arange(min(self._newest, self.recent))])

    def best(self, count: int) -> tuple[Array, Array]:
        """Returns and lengths ``[n]`` of the ``count`` best episodes (fewer if the buffer holds fewer), best first."""
        top = self._order[:count]
        return self._return[top], self._length[top]

    def draw_episodes(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Slots and steps: an episode uniformly, then a step in it uniformly."""
        slots = self._slots
        slot = slots[rng.integers(len(slots), size=shape)]
        return slot, rng.integers(self._length[slot])

    def draw_transitions(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Slots and steps: a step uniformly among all, so that long episodes count in proportion."""
        slots = self._slots
        ends = np.cumsum(self._length[slots])
        flat = rng.integers(ends[-1], size=shape)
        place = np.searchsorted(ends, flat, side="right")
        slot = slots[place]
        return slot, flat - (ends[place] - self._length[slot])

    def length(self, slot: Array) -> Array:
        return self._length[slot]

    def gather(self, slot: Array, start: Array, end: Array) -> tuple[Array, Array, Array, Array]:
        """Of segments ``start..end`` (end excluded), all of one shape ``[...]``:
        obs ``[..., O]`` and action at the start, return, and number of steps.
        """
        to_go = self._to_go.reshape(-1)
        row = slot * (self.horizon + 1)
        first = slot * self.horizon + start
        obs = self._obs.reshape(-1, self._obs.shape[-1])[first]
        action = self._action.reshape(-1, *self._action.shape[2:])[first]
        return obs, action, to_go[row + start] - to_go[row + end], end - start

    def state_dict(self) -> dict[str, Any]:
        """The episodes without padding: the best, best first, then the recent."""
        steps = [(slot, self._length[slot]) for slot in self._slots]
        parts = {
            "obs": [self._obs[s, :n] for s, n in steps],
            "action": [self._action[s, :n] for s, n in steps],
            "to_go": [self._to_go[s, : n + 1] for s, n in steps],
            "length": [self._length[self._slots]],
            "return": [self._return[self._slots]],
        }
        packed = {key: torch.from_numpy(np.concatenate(value)) for key, value in parts.items() if value}
        return {**packed, "best": len(self), "newest": self._newest}

    def layout(self, spec: EnvSpec) -> Also:
        """What ``state_dict`` may look like in ``spec``, where the buffer is not empty."""
        template = {
            "obs": TensorOf(torch.float32, ("steps", spec.obs_size)),
            "action": action_layout(spec, "steps"),
            "to_go": TensorOf(torch.float32, ("marks",)),
            "length": TensorOf(torch.int64, ("episodes",), 1, self.horizon),
            "return": TensorOf(torch.float64, ("episodes",)),
            "best": Count(1, self.capacity),
            "newest": Count(),
        }
        return Also(template, self._inconsistency)

    def _inconsistency(self, state: dict[str, Any]) -> str | None:
        length, returns = state["length"], state["return"][: state["best"]]
        if len(length) != state["best"] + min(state["newest"], self.recent):
            return f"{len(length)} episodes, expected {state['best']} best and up to {self.recent} recent ones"
        if int(length.sum()) != len(state["obs"]) or len(state["to_go"]) != len(state["obs"]) + len(length):
            return f"the {len(state['obs'])} steps are not those of its {len(length)} episodes"
        return None if bool((returns.diff() <= 0).all()) else "the best episodes are not in the order of their returns"

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replaces the contents; the buffer must have the capacities of the one that was saved."""
        self._newest = state["newest"]
        self._order = np.arange(state["best"])
        if state["best"] > self.capacity or len(state["length"]) != len(self._slots):
            raise ValueError(
                f"{state['best']} best of {len(state['length'])} episodes do not fit {self.capacity} + {self.recent}"
            )
        self._length[self._slots], self._return[self._slots] = state["length"].numpy(), state["return"].numpy()
        start = 0
        for row, (slot, n) in enumerate(zip(self._slots.tolist(), state["length"].tolist(), strict=True)):
            self._obs[slot, :n] = state["obs"][start : start + n].numpy()
            self._action[slot, :n] = state["action"][start : start + n].numpy()
            self._to_go[slot, : n + 1] = state["to_go"][start + row : start + row + n + 1].numpy()
            start += n


class _Stored(NamedTuple):
    """What the window keeps of an episode."""

    obs: FloatArray  # [T+1, O]
    action: Array
    reward: FloatArray
    terminated: bool


@dataclass(frozen=True)
class FlatEpisodes:
    """``E`` episodes behind one another, ``M`` steps in all.

    obs ``[M + E, O]`` has the final observation of each; step ``i`` saw ``obs[row[i]]`` and led to ``obs[row[i] + 1]``.
    action ``[M]`` or ``[M, A]``; reward, terminated, last (the last step of its episode) and episode_return ``[M]``; first
    ``[E]`` are the steps that episodes begin with.
    """

    obs: Tensor
    row: Tensor
    action: Tensor
    reward: Tensor
    terminated: Tensor
    last: Tensor
    episode_return: Tensor
    first: Tensor

    def __len__(self) -> int:
        return len(self.row)

    def to(self, device: torch.device) -> FlatEpisodes:
        return FlatEpisodes(**{name: tensor.to(device) for name, tensor in vars(self).items()})


class EpisodeWindow:
    """The newest episodes, whole, as many as fit ``capacity`` steps; at least one."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._episodes: deque[_Stored] = deque()
        self.num_steps = 0

    def __len__(self) -> int:
        return len(self._episodes)

    def add(self, episodes: Iterable[Episode]) -> None:
        """Adds the episodes in order; the oldest give way."""
        for episode in episodes:
            self._append(_Stored(episode.obs, episode.action, episode.reward, episode.terminated))

    def _append(self, episode: _Stored) -> None:
        self._episodes.append(episode)
        self.num_steps += len(episode.reward)
        while self.num_steps > self.capacity and len(self) > 1:
            self.num_steps -= len(self._episodes.popleft().reward)

    def mean_length(self, newest: int) -> float:
        """Mean number of steps of the ``newest`` last episodes (fewer if there are fewer)."""
        return float(np.mean([len(e.reward) for e in self._episodes][-newest:]))

    def draw_transitions(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Steps of ``flat``: uniformly among all, so that long episodes count in proportion."""
        return rng.integers(self.num_steps, size=shape)

    def draw_episodes(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Steps of ``flat``: an episode uniformly, then a step in it uniformly."""
        length = np.array([len(e.reward) for e in self._episodes])
        episode = rng.integers(len(length), size=shape)
        return (np.cumsum(length) - length)[episode] + rng.integers(length[episode])

    def flat(self) -> FlatEpisodes:
        """All episodes, oldest first."""
        length = np.array([len(e.reward) for e in self._episodes])
        end = np.cumsum(length)
        number = np.repeat(np.arange(len(length)), length)  # episode of each step
        steps = np.arange(end[-1])
        last = np.zeros(end[-1], dtype=bool)
        last[end - 1] = True
        terminated = last & np.array([e.terminated for e in self._episodes])[number]
        total = np.array([e.reward.sum(dtype=np.float64) for e in self._episodes], dtype=np.float32)
        arrays = {
            "obs": np.concatenate([e.obs for e in self._episodes]),
            "row": steps + number,
            "action": np.concatenate([e.action for e in self._episodes]),
            "reward": np.concatenate([e.reward for e in self._episodes]),
            "terminated": terminated,
            "last": last,
            "episode_return": total[number],
            "first": end - length,
        }
        return FlatEpisodes(**{name: torch.from_numpy(array) for name, array in arrays.items()})

    def state_dict(self) -> dict[str, Any]:
        """Plain data; the episodes behind one another."""
        flat = self.flat()
        lengths = [len(e.reward) for e in self._episodes]
        kept = {"obs": flat.obs, "action": flat.action, "reward": flat.reward}
        return {**kept, "lengths": lengths, "terminated": [e.terminated for e in self._episodes]}

    def layout(self, spec: EnvSpec) -> Also:
        """What ``state_dict`` may look like in ``spec``, where the window is not empty."""
        template = {
            "obs": TensorOf(torch.float32, ("rows", spec.obs_size)),
            "action": action_layout(spec, "steps"),
            "reward": TensorOf(torch.float32, ("steps",)),
            "lengths": ListOf(Count(1, spec.horizon), "episodes"),
            "terminated": ListOf(Flag(), "episodes"),
        }
        return Also(template, self._inconsistency)

    def _inconsistency(self, state: dict[str, Any]) -> str | None:
        steps, episodes = len(state["reward"]), len(state["lengths"])
        if not episodes or sum(state["lengths"]) != steps or len(state["obs"]) != steps + episodes:
            return f"the {steps} steps are not those of its {episodes} episodes"
        return f"{steps} steps, more than {self.capacity}" if steps > self.capacity and episodes > 1 else None

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replaces the contents."""
        self._episodes.clear()
        self.num_steps = start = 0
        for number, (length, terminated) in enumerate(zip(state["lengths"], state["terminated"], strict=True)):
            row, end = start + number, start + length
            obs = state["obs"][row : row + length + 1].numpy()
            self._append(_Stored(obs, state["action"][start:end].numpy(), state["reward"][start:end].numpy(), terminated))
            start = end
