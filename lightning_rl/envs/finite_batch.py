"""Environments for agents that may have diverged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightning_rl.envs.batch import BatchStep, EnvBatch


class FiniteActions(EnvBatch):
    """Another batch, in which an action that is nan does nothing and is paid nan: physics never sees it, judges do."""

    def __init__(self, real: EnvBatch):
        self.real = real

    @property
    def obs(self) -> Tensor:  # type: ignore[override]
        return self.real.obs

    def reset(self, where: Tensor) -> Tensor:
        return self.real.reset(where)

    def retire(self, where: Tensor) -> Tensor:
        return self.real.retire(where)

    def step(self, action: Tensor) -> BatchStep:
        missing = action.isnan()
        step = self.real.step(action.masked_fill(missing, 0))
        return step._replace(reward=step.reward.masked_fill(missing.any(-1), math.nan))

    def keep(self, rows: Tensor) -> None:
        self.real.keep(rows)

    def snapshot(self) -> dict[str, Tensor]:
        return self.real.snapshot()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.real.restore(state)

    def layout(self, members: int | str) -> Any:
        return self.real.layout(members)

    def to(self, device: torch.device) -> EnvBatch:
        self.real = self.real.to(device)
        return self
