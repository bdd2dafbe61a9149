"""A batch of environments whose resets are costly."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.func_env import FuncEnv


class PooledBatch(FuncBatch):
    """A ``FuncBatch`` without time limit that makes the first states of many steps at once: for
    costly resets, e.g. of mazes.

    The states are those that a ``FuncBatch`` would make one by one.
    """

    def __init__(self, env: FuncEnv, seeds: Sequence[int]):
        self._number, self._pool = -1, torch.empty(0)
        super().__init__(env, sys.maxsize, seeds)

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self._number = -1  # the pool is of all members

    def to(self, device: torch.device) -> PooledBatch:
        super().to(device)
        self._pool = self._pool.to(device)
        return self

    def _fresh(self) -> Tensor:
        number, place = divmod(self._clock, self._reset_noise.block)
        if number != self._number:
            self._pool, self._number = self.env.reset(self._reset_noise.whole(number)), number
        return self._pool[place]
