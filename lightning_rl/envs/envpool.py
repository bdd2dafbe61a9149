"""Gymnasium's environments as EnvPool has them: in C++, an optional backend (``pip install
'lightning_rl[envpool]'``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.checks import optional_module
from lightning_rl.core.errors import UserError
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import Array
from lightning_rl.envs.batch import BatchStep, EnvBatch
from lightning_rl.envs.spec import EnvSpec


class EnvPoolBatch(EnvBatch):
    """The environments of one ``EnvSpec`` in EnvPool's threads. Members that are gone cost nothing.

    What a member meets depends on its seed and actions alone, but its random numbers are not
    Gymnasium's, so runs differ from those with other simulators. EnvPool does not give its state
    away: such a run cannot be resumed.
    """

    def __init__(self, spec: EnvSpec, seeds: Sequence[int]):
        envpool = optional_module(
            "envpool", "simulator 'envpool'", "pip install 'lightning_rl[envpool]', or use serial"
        )
        plain = not (spec.sparse or spec.kwargs or spec.repeat > 1)
        if not plain or spec.env not in envpool.list_all_envs():
            options = "" if plain else " with these options"
            raise UserError(
                f"EnvPool does not have '{spec.gamename}'{options}; use simulator=serial or "
                "processes"
            )
        self.envs: Any = envpool.make_gymnasium(
            spec.env,
            num_envs=len(seeds),
            env_seed=[derive_seed(seed, "reset") % 2**31 for seed in seeds],
            max_episode_steps=min(spec.horizon, 2**31 - 1),
        )
        if self.envs.observation_space.shape != (spec.obs_size,):
            raise UserError(
                f"EnvPool does not flatten the observations of '{spec.gamename}'; use "
                "simulator=serial or processes"
            )
        space = self.envs.action_space
        self._box = (space.low, space.high) if spec.continuous else None
        self._slot = np.arange(len(seeds), dtype=np.int32)
        self.obs = torch.from_numpy(self.envs.reset()[0].astype(np.float32))

    def reset(self, where: Tensor) -> Tensor:
        rows = where.nonzero().squeeze(1)
        if len(rows):
            self.obs = self.obs.clone()
            self.obs[rows] = torch.from_numpy(
                self.envs.reset(self._slot[rows.numpy()])[0].astype(np.float32)
            )
        return self.obs

    def step(self, action: Tensor) -> BatchStep:
        obs, reward, terminated, truncated, _ = self.envs.step(
            self._task_units(action.numpy()), self._slot
        )
        self.obs = torch.from_numpy(obs.astype(np.float32))
        ended = torch.from_numpy(terminated.copy())
        cut = torch.from_numpy(truncated.copy()) & ~ended
        gained, length = (
            torch.from_numpy(reward.astype(np.float32)),
            torch.ones(len(obs), dtype=torch.int64),
        )
        return BatchStep(self.obs, gained, ended, cut, length)

    def _task_units(self, action: Array) -> Array:
        """From the box [-1, 1], clipped to it, to the task's own."""
        if self._box is None:
            return action.astype(np.int32)
        low, high = self._box
        return low + (action.clip(-1, 1) + 1) / 2 * (high - low)

    def keep(self, rows: Tensor) -> None:
        self._slot, self.obs = self._slot[rows.numpy()], self.obs[rows]

    def snapshot(self) -> dict[str, Tensor]:
        """No state to resume from: EnvPool has none to give. One row per member, which the
        checkpoint's layout needs.
        """
        return {"slot": torch.from_numpy(self._slot.astype(np.int64))}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        raise UserError(
            "a run with simulator=envpool cannot be resumed; start it anew, with serial or "
            "processes to be resumable"
        )
