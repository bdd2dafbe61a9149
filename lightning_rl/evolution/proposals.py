"""What a strategy proposes, as small plain data: it travels to wherever candidates are evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lightning_rl.core.seeding import derive_seed
from lightning_rl.functional.evolution import standard_noise

Vector = npt.NDArray[np.float32]


class Item(NamedTuple):
    """One evaluation: of the candidate ``mean + sign * noise(member)``, with the random numbers ``agent`` of the generation.

    sign 0: of the mean itself. turn: where several kinds of agents take turns, whose it is; both signs of a member get the same.
    """

    member: int
    sign: int
    agent: int
    turn: int


@dataclass(frozen=True)
class Proposal(ABC):
    """All that is needed to evaluate the items of a generation: small and plain, so that it can travel. mean ``[D]``."""

    run_seed: int
    generation: int
    mean: Vector

    def seed(self, item: Item) -> int:
        """Of all randomness of an evaluation."""
        return derive_seed(self.run_seed, "inner agent", self.generation, item.agent)

    @abstractmethod
    def rows(self, items: Sequence[Item]) -> Tensor:
        """The candidates' parameters ``[len(items), D]``."""


@dataclass(frozen=True)
class GaussianProposal(Proposal):
    """std ``[D]`` of the noise, which is drawn again wherever it is needed: seeds travel instead of it."""

    std: Vector

    def rows(self, items: Sequence[Item]) -> Tensor:
        mean, std = torch.from_numpy(self.mean), torch.from_numpy(self.std)
        members = sorted({item.member for item in items if item.sign})
        noise = dict(zip(members, standard_noise(self.run_seed, self.generation, members, len(mean)), strict=True))
        return torch.stack([mean + i.sign * std * noise[i.member] if i.sign else mean for i in items])


@dataclass(frozen=True)
class SampledProposal(Proposal):
    """The candidates themselves ``[P, D]``."""

    samples: npt.NDArray[np.float32]

    def rows(self, items: Sequence[Item]) -> Tensor:
        return torch.stack([torch.from_numpy(self.samples[i.member] if i.sign else self.mean) for i in items])
