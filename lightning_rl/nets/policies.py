"""Policies: a network and the action distribution that reads its output. They know no environment."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from lightning_rl.functional.distributions import Distribution
from lightning_rl.types import FloatArray


class Policy(nn.Module):
    """``distribution(obs, command)`` over actions; ``net`` takes obs, or obs and command."""

    def __init__(self, net: nn.Module, distribution_class: type[Distribution], action_size: int):
        super().__init__()
        self.net = net
        self.distribution_class = distribution_class
        self.action_size = action_size

    def distribution(self, obs: Tensor, command: Tensor | None = None) -> Distribution:
        """Distribution of the action for obs ``[..., O]`` and command ``[..., C]``."""
        return self.distribution_class(self.net(obs) if command is None else self.net(obs, command))

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        """Actions for noise ``[..., A]``; zero noise gives the greedy action."""
        return self.distribution(obs, command).sample(noise)

    @property
    def noise_size(self) -> int:
        """Numbers of noise that ``act`` takes for one action."""
        return self.action_size

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise for ``act``; ``shape`` ends with ``noise_size``."""
        return self.distribution_class.draw_noise(rng, shape)
