"""Environments around environments: for agents that may have diverged, or on another device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from lightning_rl.envs.batch import BatchStep, EnvBatch


class WrappedBatch(EnvBatch):
    """Another batch, ``real``; a subclass says what it changes."""

    def __init__(self, real: EnvBatch):
        self.real, self.obs = real, real.obs

    def reset(self, where: Tensor) -> Tensor:
        self.obs = self.real.reset(where)
        return self.obs

    def retire(self, where: Tensor) -> Tensor:
        self.obs = self.real.retire(where)
        return self.obs

    def step(self, action: Tensor) -> BatchStep:
        step = self.real.step(action)
        self.obs = step.obs
        return step

    def keep(self, rows: Tensor) -> None:
        self.real.keep(rows)
        self.obs = self.obs[rows]

    def snapshot(self) -> dict[str, Tensor]:
        return self.real.snapshot()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.real.restore(state)
        self.obs = self.real.obs

    def close(self) -> None:
        self.real.close()


class FiniteActions(WrappedBatch):
    """Another batch, in which a nan action is replaced by 0 and rewarded with nan: no nan
    reaches the simulator.
    """

    def step(self, action: Tensor) -> BatchStep:
        missing = action.isnan()
        step = super().step(action.masked_fill(missing, 0))
        return step._replace(reward=step.reward.masked_fill(missing.any(-1), math.nan))

    def to(self, device: torch.device) -> EnvBatch:
        return FiniteActions(self.real.to(device))


class CopiedBatch(WrappedBatch):
    """Environments on the CPU for agents on ``device``: a step of all members is one copy there
    and one back.
    """

    def __init__(self, real: EnvBatch, device: torch.device):
        self.real, self.device = real, device
        self.obs = real.obs.to(device)

    def reset(self, where: Tensor) -> Tensor:
        self.obs = self.real.reset(where.cpu()).to(self.device)
        return self.obs

    def retire(self, where: Tensor) -> Tensor:
        self.obs = self.real.retire(where.cpu()).to(self.device)
        return self.obs

    def step(self, action: Tensor) -> BatchStep:
        step = copied(self.real.step(action.cpu()), self.device)
        self.obs = step.obs
        return step

    def keep(self, rows: Tensor) -> None:
        self.real.keep(rows.cpu())
        self.obs = self.obs[rows]

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.real.restore(state)
        self.obs = self.real.obs.to(self.device)

    def to(self, device: torch.device) -> EnvBatch:
        return self.real.to(device)


def copied(step: BatchStep, device: torch.device) -> BatchStep:
    """The step on another device, in a single copy through float32: whole numbers are exact up
    to 2**24.
    """
    there = {name: value for name, value in step._asdict().items() if value is not None}
    rows = torch.cat([value.reshape(len(value), -1).float() for value in there.values()], dim=1).to(
        device
    )
    columns = rows.split([value[0].numel() for value in there.values()], dim=1)
    pairs = zip(there.items(), columns, strict=True)
    return step._replace(
        **{name: column.reshape(value.shape).to(value.dtype) for (name, value), column in pairs}
    )
