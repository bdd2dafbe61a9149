"""Several discrete actions at once, independent of each other given the observation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lightning_rl.functional.distributions import Categorical


class Factored(Categorical):
    """Vectors of ``K`` discrete actions ``[..., K]`` int64, each of a categorical distribution.

    The output ``[..., A]`` are the logits of all of them, one behind another; sizes: how many each
    has, ``A`` in all. Log-probability and entropy are sums over the factors.
    """

    def __init__(self, output: Tensor, sizes: Sequence[int]):
        super().__init__(output)
        self.sizes = list(sizes)
        self.factors = [Categorical(part) for part in output.split(self.sizes, dim=-1)]

    def sample(self, noise: Tensor) -> Tensor:
        pairs = zip(self.factors, noise.split(self.sizes, dim=-1), strict=True)
        return torch.stack([factor.sample(part) for factor, part in pairs], dim=-1)

    def log_prob(self, action: Tensor) -> Tensor:
        pairs = zip(self.factors, action.unbind(-1), strict=True)
        return torch.stack([factor.log_prob(part) for factor, part in pairs]).sum(0)

    def entropy(self) -> Tensor:
        return torch.stack([factor.entropy() for factor in self.factors]).sum(0)


class Factors:
    """Stands for a class of distributions, ``Factored`` with these sizes."""

    draw_noise = staticmethod(Categorical.draw_noise)
    executed = staticmethod(Categorical.executed)
    guided = staticmethod(Categorical.guided)
    output_size = Categorical.output_size

    def __init__(self, sizes: Sequence[int]):
        self.sizes = tuple(sizes)

    def __call__(self, output: Tensor) -> Factored:
        return Factored(output, self.sizes)

    def max_entropy(self, action_size: int) -> float:
        """The highest entropy (nats): all factors uniform."""
        return sum(map(math.log, self.sizes))
