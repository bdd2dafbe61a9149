"""Gymnasium environments played in lock-step, one per member."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from torch import Tensor

from lightning_rl.core.seeding import (
    States,
    derive_seed,
    drawn_between,
    generator_states,
    kept_generators,
    seed_generators,
    set_generators,
)
from lightning_rl.core.types import Array
from lightning_rl.core.workers import check_may_start, leave_with_parent
from lightning_rl.envs.batch import BatchStep, EnvBatch
from lightning_rl.envs.gym import RepeatAction, doubled, rollout_env, stacked
from lightning_rl.envs.spaces import STEPS, Env, ResetOutcome, StepOutcome, Wrapper
from lightning_rl.envs.spec import EnvSpec

RECORD = "lightning_rl/record"
_LOG_STEPS = 1024  # of actions that there is room for at first: a time limit may be as good as none


class _Idle(Wrapper):
    """Replaces an environment whose steps are no longer needed: a step of it costs nothing."""

    def __init__(self, env: Env):
        super().__init__(env)
        self._obs = np.zeros(env.observation_space.shape or (), dtype=env.observation_space.dtype)

    def step(self, action: Any) -> StepOutcome:
        return self._obs, 0.0, False, False, {STEPS: 1}

    def reset(self, **_: Any) -> ResetOutcome:
        return self._obs, {}


class _Apart(Wrapper):
    """Keeps an environment apart from others in its process, and from what a vector environment
    cannot put together.

    Of ``info`` it leaves what is used. Where the environment draws from the global generators of
    Python, numpy or torch, it has states of its own there, seeded at each reset. To exchange them
    takes most of a millisecond, so it is looked at in its first calls whether that is needed.
    alone: in a process of its own, where seeding is enough.
    """

    def __init__(self, env: Env, gamename: str, alone: bool):
        super().__init__(env)
        self.gamename, self.alone = gamename, alone
        self.kind = type(env.unwrapped)
        self._states: States | None = None
        self._exchanges = not alone

    def reset(self, **kwargs: Any) -> ResetOutcome:
        seed = kwargs.get("seed")
        if self.alone and seed is not None:
            seed_generators(seed)
        with self._own_states(seed):
            return self.env.reset(**kwargs)[0], {}

    def step(self, action: Any) -> StepOutcome:
        if self._exchanges:
            with self._own_states():
                outcome = self.env.step(action)
        else:
            outcome = self.env.step(action)
        *rest, info = outcome
        return (*rest, {key: info[key] for key in (STEPS, RECORD) if key in info})

    @contextlib.contextmanager
    def _own_states(self, seed: int | None = None) -> Iterator[None]:
        self._exchanges = self._exchanges and _DRAWS.get(self.kind, True)
        if not self._exchanges:
            yield
            return
        with kept_generators():
            if seed is not None:
                seed_generators(seed)
            elif self._states is not None:
                set_generators(self._states)
            before = generator_states()
            yield
            self._states = generator_states()
        if self.kind not in _DRAWS:
            self._look(before, self._states)

    def _look(self, before: States, after: States) -> None:
        _LOOKED[self.kind] += 1
        if drawn_between(before, after):
            _DRAWS[self.kind] = True
            warnings.warn(
                f"'{self.gamename}' draws from a global generator (random, numpy.random or torch): "
                "its state is exchanged at every step, which is slow; draw from self.np_random",
                stacklevel=2,
            )
        elif _LOOKED[self.kind] == _LOOKS:
            _DRAWS[self.kind] = False


_LOOKS = 100  # calls
_LOOKED: Counter[type] = Counter()
_DRAWS: dict[type, bool] = {}
"""Whether an environment draws from a global generator, where that is known by now."""


class GymBatch(EnvBatch):
    """Gymnasium environments of one ``EnvSpec`` through ``gymnasium.vector``.

    processes: one process per environment instead of all in this one; pays where a step takes
    longer than about 0.1 ms. A vector environment cannot shrink: with processes, the environments
    of finished members play on.
    wrapper: of each environment; its ``info`` has ``STEPS``, and maybe ``RECORD``, which a step of
    the batch then gives as its info.
    """

    def __init__(
        self,
        spec: EnvSpec,
        seeds: Sequence[int],
        processes: bool = False,
        wrapper: Callable[[Env], Env] = RepeatAction,
    ):
        if processes:
            check_may_start("simulator processes", "use simulator=serial")
        here = os.getpid()

        def make() -> Env:
            if os.getpid() != here:
                # an inherited handler would survive being terminated
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                leave_with_parent()
            env = stacked(wrapper(rollout_env(spec)), spec)
            return _Apart(env, spec.gamename, processes)

        kind: Any = AsyncVectorEnv if processes else SyncVectorEnv
        self.envs = kind([make] * len(seeds), autoreset_mode=AutoresetMode.DISABLED)
        self._is_of_images = spec.frames is not None
        self._seeds, self._episodes = list(seeds), [0] * len(seeds)
        self._slot, self._waiting = np.arange(len(seeds)), np.zeros(len(seeds), dtype=bool)
        shape = self.envs.action_space.shape
        self._action = np.zeros(shape, dtype=self.envs.action_space.dtype)
        room = min(spec.horizon, _LOG_STEPS)
        self._since = np.zeros((room, *shape), dtype=self._action.dtype)  # actions since the reset
        self._length = np.zeros(len(seeds), dtype=np.int64)  # decisions since the reset
        self._still = np.zeros(len(seeds), dtype=bool)  # environments that are no longer played
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
        self.obs = self._seen(self._begin(mask, seeds))
        return self.obs

    def retire(self, where: Tensor) -> Tensor:
        self._stand_still(self._slot[where.numpy()])
        return self.reset(where)

    def _stand_still(self, slots: Array) -> None:
        self._still[slots] = True
        if isinstance(self.envs, SyncVectorEnv):
            for slot in slots.tolist():
                self.envs.envs[slot] = _Idle(self.envs.envs[slot])

    def _begin(self, mask: Array, seeds: Sequence[int | None]) -> Any:
        """Starts the episodes ``seeds`` where the mask says so; the observations of all slots."""
        obs, _ = self.envs.reset(seed=list(seeds), options={"reset_mask": mask})
        self._waiting[mask] = False
        return obs

    def step(self, action: Tensor) -> BatchStep:
        if self._abandoned().any():
            self.reset(torch.zeros(len(self._slot), dtype=torch.bool))
        now = self._length[self._slot]
        if now.max(initial=0) == len(self._since):
            self._since = doubled(self._since)
        self._action[self._slot] = action.numpy()
        self._since[now, self._slot] = self._action[self._slot]
        self._length[self._slot] += ~self._still[self._slot]
        obs, reward, terminated, truncated, info = self.envs.step(self._action)
        self._waiting = terminated | truncated
        ended = torch.from_numpy(terminated[self._slot].copy())
        cut = torch.from_numpy(truncated[self._slot].copy()) & ~ended
        length = torch.from_numpy(np.asarray(info[STEPS])[self._slot].astype(np.int64))
        self.obs = self._seen(obs)
        record = self._rows(info[RECORD]) if RECORD in info else None
        return BatchStep(self.obs, self._rows(reward), ended, cut, length, info=record)

    def _episode_seed(self, slot: int) -> int:
        return derive_seed(self._seeds[slot], "reset", self._episodes[slot]) % 2**31

    def _abandoned(self) -> Array:
        """Environments of finished members whose episode has ended: the vector environment needs
        them reset like all others.
        """
        mask = self._waiting.copy()
        mask[self._slot] = False
        return mask

    def _seen(self, obs: Any) -> Tensor:
        """The observations ``[N, O]``; images stay bytes."""
        if self._is_of_images:
            return torch.from_numpy(obs[self._slot]).flatten(1)
        return self._rows(obs)

    def _rows(self, values: Any) -> Tensor:
        return torch.from_numpy(values[self._slot].astype(np.float32))

    def keep(self, rows: Tensor) -> None:
        gone = np.setdiff1d(self._slot, self._slot[rows.numpy()])
        self._slot, self.obs = self._slot[rows.numpy()], self.obs[rows]
        self._stand_still(gone)

    def snapshot(self) -> dict[str, Tensor]:
        """Number of the episode and its actions so far: replaying these from the episode's seed
        restores the environment.
        """
        length = self._length[self._slot]
        actions = np.moveaxis(self._since[: length.max(initial=0), self._slot], 1, 0).copy()
        actions[np.arange(actions.shape[1]) >= length[:, None]] = 0  # of earlier episodes
        episodes = np.array(self._episodes)[self._slot]
        return {
            "episodes": torch.from_numpy(episodes),
            "length": torch.from_numpy(length),
            "actions": torch.from_numpy(actions),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Plays the episodes under way again, each begun so late that all reach their present
        step together.
        """
        if (state["length"] < 0).any() or (state["length"] > state["actions"].shape[1]).any():
            raise ValueError(f"episodes of {state['length'].tolist()} actions, not all are there")
        self._length[:] = 0
        self._length[self._slot] = state["length"].numpy()
        actions = np.moveaxis(state["actions"].numpy(), 0, 1)[: self._length.max()]
        while len(self._since) < len(actions):
            self._since = doubled(self._since)
        self._since[: len(actions), self._slot] = actions
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
        self.obs = self._seen(obs)

    def close(self) -> None:
        if isinstance(self.envs, AsyncVectorEnv):
            self.envs.close(timeout=1)  # of a step that it is in
        else:
            self.envs.close()
