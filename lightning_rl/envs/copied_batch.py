"""Environments that only the CPU can play, for agents on another device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightning_rl.envs.batch import BatchStep, EnvBatch


class CopiedBatch(EnvBatch):
    """Environments on the CPU for agents on ``device``: a step of all members is one copy there and one back."""

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

    def snapshot(self) -> dict[str, Tensor]:
        return self.real.snapshot()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.real.restore(state)
        self.obs = self.real.obs.to(self.device)

    def layout(self, members: int | str) -> Any:
        return self.real.layout(members)

    def to(self, device: torch.device) -> EnvBatch:
        return self.real.to(device)


def copied(step: BatchStep, device: torch.device) -> BatchStep:
    """The step on another device, in a single copy; whole numbers up to 2**24 stay what they are."""
    there = {name: value for name, value in step._asdict().items() if value is not None}
    rows = torch.cat([value.reshape(len(value), -1).float() for value in there.values()], dim=1).to(device)
    columns = rows.split([value[0].numel() for value in there.values()], dim=1)
    pairs = zip(there.items(), columns, strict=True)
    return step._replace(**{name: column.reshape(value.shape).to(value.dtype) for (name, value), column in pairs})
