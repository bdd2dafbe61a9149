"""Policies without randomness, in the form of distributions: noise changes nothing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import FloatArray
from lightning_rl.functional.distributions import Distribution


class _Point(Distribution):
    """All probability on one action."""

    @staticmethod
    def output_size(action_size: int) -> int:
        return action_size

    @staticmethod
    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.zeros(shape, dtype=np.float32)

    @staticmethod
    def max_entropy(action_size: int) -> float:
        """0, the entropy of a single discrete action; that of a point density is -inf."""
        return 0.0


class BestAction(_Point):
    """The action ``[...]`` of highest value; the output are values ``[..., A]``, ties go to the lowest index."""

    def sample(self, noise: Tensor) -> Tensor:
        return self.output.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return torch.where(action == self.output.argmax(-1), 0.0, -torch.inf)

    def entropy(self) -> Tensor:
        return torch.zeros_like(self.output[..., 0])


class TanhAction(_Point):
    """The action ``tanh(output)`` ``[..., A]``; its density is infinite there and 0 elsewhere."""

    def sample(self, noise: Tensor) -> Tensor:
        return self.output.tanh()

    def log_prob(self, action: Tensor) -> Tensor:
        return torch.where((action == self.output.tanh()).all(-1), torch.inf, -torch.inf)

    def entropy(self) -> Tensor:
        return torch.full_like(self.output[..., 0], -torch.inf)
