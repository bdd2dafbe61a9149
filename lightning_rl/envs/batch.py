"""One environment per member, played in lock-step: what agents learn from."""

from __future__ import annotations

import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsFloat

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from torch import Tensor

from lightning_rl.core.contents import Also, TensorOf, like, rows_like
from lightning_rl.core.limits import WHOLE
from lightning_rl.core.seeding import MemberNoise, derive_seed
from lightning_rl.core.types import Array
from lightning_rl.core.workers import leave_with_parent
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.gym import Env, RepeatAction, make_env
from lightning_rl.envs.spec import EnvSpec


class BatchStep(NamedTuple):
    """One decision of every member: the observation that really followed ``[N, O]`` (the final one where the episode ended),
    reward, terminated, truncated and length (environment steps that the decision took), each ``[N]``.

    continuation ``[N]``: see ``Step``. info ``[N, I]``: the values that a ``GymBatch`` was asked for.
    """

    obs: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    length: Tensor
    continuation: Tensor | None = None
    info: Tensor | None = None


class EnvBatch(ABC):
    """``N`` environments; what member ``n`` meets depends on its seed and its own actions alone.

    obs ``[N, O]``: the current observations.
    """

    obs: Tensor

    @abstractmethod
    def reset(self, where: Tensor) -> Tensor:
        """Starts new episodes in the environments ``where`` ``[N]`` bool; the current observations ``[N, O]`` of all."""

    @abstractmethod
    def step(self, action: Tensor) -> BatchStep:
        """Acts ``[N]`` or ``[N, A]``. An episode that has ended must be reset before the next step."""

    @abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` alone."""

    @abstractmethod
    def snapshot(self) -> dict[str, Tensor]:
        """All that the rest of the episodes under way depends on, ``[N, ...]`` each."""

    @abstractmethod
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from a snapshot of the same members."""

    def layout(self, members: int | str) -> Any:
        """What ``snapshot`` may look like. members: how many, or the name of that dimension."""
        return rows_like(self.snapshot(), members)


class FuncBatch(EnvBatch):
    """A ``FuncEnv`` with a time limit of ``horizon`` steps.

    repeat: each action is taken this many times, rewards summed, until the episode ends; terminated, truncated and
    continuation are those of the last step that was taken.
    """

    def __init__(self, env: FuncEnv, horizon: int, seeds: Sequence[int], repeat: int = 1, device: str = "cpu"):
        self.env, self.horizon, self.repeat = env, horizon, repeat
        self._reset_noise = MemberNoise(seeds, "reset", (env.reset_noise_size,), "uniform", device)
        self._step_noise = MemberNoise(seeds, "step", (env.step_noise_size,), "uniform", device)
        self._clock = 0  # steps taken in lock-step; counts the noise
        self.length = torch.zeros(len(seeds), dtype=torch.int64, device=device)
        self.state = env.reset(self._reset_noise.at(0))
        self.obs = env.observe(self.state)

    def reset(self, where: Tensor) -> Tensor:
        self.state = torch.where(where.unsqueeze(-1), self._fresh(), self.state)
        self.obs = torch.where(where.unsqueeze(-1), self.env.observe(self.state), self.obs)
        self.length = self.length.masked_fill(where, 0)
        return self.obs

    def _fresh(self) -> Tensor:
        """First states ``[N, S]`` for episodes that start now."""
        return self.env.reset(self._reset_noise.at(self._clock))

    def step(self, action: Tensor) -> BatchStep:
        if self.repeat == 1:
            return self._step(action)
        before, step = self.length, self._step(action)
        reward, terminated, over = step.reward, step.terminated, step.terminated | step.truncated
        continuation = step.continuation
        for _ in range(self.repeat - 1):
            state, obs, length = self.state, self.obs, self.length
            step = self._step(action)
            frozen = over.unsqueeze(-1)
            self.state, self.obs = torch.where(frozen, state, self.state), torch.where(frozen, obs, self.obs)
            self.length = torch.where(over, length, self.length)
            reward = reward + step.reward.masked_fill(over, 0)
            terminated = terminated | (step.terminated & ~over)
            if continuation is not None and step.continuation is not None:
                continuation = torch.where(over, continuation, step.continuation)
            over = over | step.terminated | step.truncated
        return BatchStep(self.obs, reward, terminated, over & ~terminated, self.length - before, continuation)

    def _step(self, action: Tensor) -> BatchStep:
        step = self.env.step(self.state, action, self._step_noise.at(self._clock))
        self._clock += 1
        self.state, self.obs, self.length = step.state, step.obs, self.length + 1
        truncated = (self.length >= self.horizon) & ~step.terminated
        return BatchStep(step.obs, step.reward, step.terminated, truncated, torch.ones_like(self.length), step.continuation)

    def keep(self, rows: Tensor) -> None:
        self.env = self.env.keep(rows)
        self.state, self.obs, self.length = self.state[rows], self.obs[rows], self.length[rows]
        self._reset_noise.keep(rows)
        self._step_noise.keep(rows)

    def snapshot(self) -> dict[str, Tensor]:
        clock = torch.full_like(self.length, self._clock)
        return {"state": self.state, "obs": self.obs, "length": self.length, "clock": clock}

    def layout(self, members: int | str) -> Any:
        length = like(self.length, members, high=min(self.horizon, WHOLE))
        return Also({**rows_like(self.snapshot(), members), "length": length}, self._inconsistency)

    def _inconsistency(self, state: Mapping[str, Tensor]) -> str | None:
        if bool((state["clock"] != state["clock"][:1]).any()):
            return "members that are not at the same step"
        return self.env.fault(state["state"], state["obs"])

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.state, self.obs, self.length = (state[name].to(self.obs.device) for name in ("state", "obs", "length"))
        self._clock = int(state["clock"][0])


class PooledBatch(FuncBatch):
    """A ``FuncBatch`` without time limit that makes the first states of many steps at once: for costly resets, e.g. of mazes.

    The states are those that a ``FuncBatch`` would make one by one.
    """

    def __init__(self, env: FuncEnv, seeds: Sequence[int], device: str = "cpu"):
        self._number, self._pool = -1, torch.empty(0)
        super().__init__(env, sys.maxsize, seeds, device=device)

    def _fresh(self) -> Tensor:
        number, place = divmod(self._clock, self._reset_noise.block)
        if number != self._number:
            self._pool, self._number = self.env.reset(self._reset_noise.whole(number)), number
        return self._pool[place]


class _Idle(gymnasium.Wrapper[Any, Any, Any, Any]):
    """In the place of a finished member's environment: a step of it costs nothing."""

    def __init__(self, env: Env):
        super().__init__(env)
        self._obs = np.zeros(env.observation_space.shape or (), dtype=env.observation_space.dtype)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        return self._obs, 0.0, False, False, {"length": 1}


class GymBatch(EnvBatch):
    """Gymnasium environments of one ``EnvSpec`` through ``gymnasium.vector``.

    processes: one process per environment instead of all in this one; pays where a step takes longer than about 0.1 ms.
    A vector environment cannot shrink: with processes, the environments of finished members play on.
    info_keys: entries of Gymnasium's info that each step gives, in this order. repeater: takes each action ``repeat`` times.
    """

    def __init__(
        self, spec: EnvSpec, seeds: Sequence[int], repeat: int = 1, processes: bool = False, info_keys: Sequence[str] = (),
        repeater: Callable[[Env, int], Env] = RepeatAction,
    ):  # fmt: skip
        here = os.getpid()

        def make() -> Env:
            if os.getpid() != here:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)  # an inherited handler would survive being terminated
                leave_with_parent()
            return repeater(make_env(spec), repeat)

        self._info_keys = tuple(info_keys)
        kind: Any = AsyncVectorEnv if processes else SyncVectorEnv
        self.envs = kind([make] * len(seeds), autoreset_mode=AutoresetMode.DISABLED)
        self._seeds, self._episodes = list(seeds), [0] * len(seeds)
        self._slot, self._waiting = np.arange(len(seeds)), np.zeros(len(seeds), dtype=bool)
        shape = self.envs.action_space.shape
        self._action = np.zeros(shape, dtype=self.envs.action_space.dtype)
        self._since = np.zeros((spec.horizon, *shape), dtype=self.envs.action_space.dtype)  # actions since the reset
        self._length = np.zeros(len(seeds), dtype=np.int64)  # decisions since the reset
        self.obs = torch.empty(0)
        self.reset(torch.ones(len(seeds), dtype=torch.bool))

    def reset(self, where: Tensor) -> Tensor:
        mask = self._abandoned()
        mask[self._slot[where.numpy()]] = True
        if not mask.any():
            return self.obs
        seeds: list[int | None] = [None] * len(mask)
        for slot in np.flatnonzero(mask).tolist():
            seeds[slot] = self._episode_seed(slot)
            self._episodes[slot] += 1
            self._length[slot] = 0
        self.obs = self._rows(self._begin(mask, seeds))
        return self.obs

    def _begin(self, mask: Array, seeds: Sequence[int | None]) -> Any:
        """Starts the episodes ``seeds`` where the mask says so; the observations of all slots."""
        obs, _ = self.envs.reset(seed=list(seeds), options={"reset_mask": mask})
        self._waiting[mask] = False
        return obs

    def step(self, action: Tensor) -> BatchStep:
        if self._abandoned().any():
            self.reset(torch.zeros(len(self._slot), dtype=torch.bool))
        self._action[self._slot] = action.numpy()
        self._since[self._length[self._slot], self._slot] = self._action[self._slot]
        self._length[self._slot] += 1
        obs, reward, terminated, truncated, info = self.envs.step(self._action)
        self._waiting = terminated | truncated
        ended = torch.from_numpy(terminated[self._slot].copy())
        cut = torch.from_numpy(truncated[self._slot].copy()) & ~ended
        length = torch.from_numpy(np.asarray(info["length"])[self._slot].astype(np.int64))
        self.obs = self._rows(obs)
        columns = [np.asarray(info[key])[self._slot] for key in self._info_keys]
        values = torch.from_numpy(np.stack(columns, axis=1).astype(np.float32)) if columns else None
        return BatchStep(self.obs, self._rows(reward), ended, cut, length, info=values)

    def _episode_seed(self, slot: int) -> int:
        return derive_seed(self._seeds[slot], "reset", self._episodes[slot]) % 2**31

    def _abandoned(self) -> Array:
        """Environments of finished members whose episode has ended: a vector environment wants them reset like all others."""
        mask = self._waiting.copy()
        mask[self._slot] = False
        return mask

    def _rows(self, obs: Any) -> Tensor:
        return torch.from_numpy(obs[self._slot].astype(np.float32))

    def keep(self, rows: Tensor) -> None:
        gone = np.setdiff1d(self._slot, self._slot[rows.numpy()])
        self._slot, self.obs = self._slot[rows.numpy()], self.obs[rows]
        if isinstance(self.envs, SyncVectorEnv):
            for slot in gone.tolist():
                self.envs.envs[slot] = _Idle(self.envs.envs[slot])

    def snapshot(self) -> dict[str, Tensor]:
        """The number of the episode, and its actions so far: an environment is a function of its seed and its actions."""
        length = self._length[self._slot]
        actions = np.moveaxis(self._since[:, self._slot], 1, 0).copy()
        actions[np.arange(len(self._since)) >= length[:, None]] = 0  # of earlier episodes
        episodes = np.array(self._episodes)[self._slot]
        return {"episodes": torch.from_numpy(episodes), "length": torch.from_numpy(length), "actions": torch.from_numpy(actions)}

    def layout(self, members: int | str) -> Any:
        space, kind = self.envs.single_action_space, torch.from_numpy(self._since[:0]).dtype
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        limits = (int(space.start), int(space.start + space.n) - 1) if discrete else ()
        return {
            "episodes": TensorOf(torch.int64, (members,), 1, WHOLE),
            "length": TensorOf(torch.int64, (members,), 0, len(self._since)),
            "actions": TensorOf(kind, (members, len(self._since), *self._since.shape[2:]), *limits),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Plays the episodes under way again, each begun so late that all reach their present step together."""
        self._length[:] = 0
        self._length[self._slot] = state["length"].numpy()
        self._since[:, self._slot] = np.moveaxis(state["actions"].numpy(), 0, 1)
        for slot, episodes in zip(self._slot.tolist(), state["episodes"].tolist(), strict=True):
            self._episodes[slot] = episodes - 1
        seeds = [self._episode_seed(slot) for slot in range(len(self._episodes))]
        wait = self._length.max() - self._length
        for clock in range(self._length.max() + 1):
            begin = (wait == clock) | self._waiting
            if begin.any():
                obs = self._begin(begin, seeds)
            if clock < self._length.max():
                self._action = self._since[(clock - wait).clip(0), np.arange(len(wait))]
                obs, _, terminated, truncated, _ = self.envs.step(self._action)
                self._waiting = (terminated | truncated) & (wait > clock)
        for slot in self._slot.tolist():
            self._episodes[slot] += 1
        self.obs = self._rows(obs)

    def close(self) -> None:
        """Ends the processes, where there are any."""
        self.envs.close()
