"""Actors, which play episodes, and policies: actors with a network and a distribution."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.types import FloatArray
from lightning_rl.functional.distributions import Distribution


class Actor(nn.Module):
    """Turns observations into actions.

    noise_size: how many numbers of noise one action takes.
    """

    noise_size = 0

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise for ``act``; ``shape`` ends with ``noise_size``."""
        return np.zeros(shape, dtype=np.float32)

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        """Actions for obs ``[..., O]`` and command ``[..., C]``; greedy ones for zero noise."""
        raise NotImplementedError

    def forward(
        self,
        obs: Tensor,
        command: Tensor | None = None,
        noise: Tensor | None = None,
        **more: Tensor,
    ) -> Tensor:
        """``act``; without noise the greedy actions."""
        if noise is None:
            noise = torch.zeros(self.noise_size, device=obs.device)
        return self.act(obs, command, noise, **more)


class Policy(Actor):
    """``distribution(obs, command)`` over actions; ``net`` takes obs, or obs and command."""

    def __init__(self, net: nn.Module, distribution_class: type[Distribution], action_size: int):
        super().__init__()
        self.net = net
        self.distribution_class = distribution_class
        self.action_size = self.noise_size = action_size

    def distribution(self, obs: Tensor, command: Tensor | None = None) -> Distribution:
        """Distribution of the action for obs ``[..., O]`` and command ``[..., C]``."""
        if command is None:
            return self.distribution_class(self.net(obs))
        return self.distribution_class(self.net(obs, command))

    def executed_log_prob(self, obs: Tensor, command: Tensor | None, action: Tensor) -> Tensor:
        """Log-probability (density) ``[...]`` of what was executed of sampled actions.

        A sample outside the box is executed as the action on its edge. Supervised losses take that:
        maximising the likelihood of the sample itself would widen the distribution, as its mean
        cannot leave the box: the more, the better that edge is.
        """
        return self.distribution(obs, command).log_prob(self.distribution_class.executed(action))

    def negative_log_likelihood(
        self, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor | None = None
    ) -> Tensor:
        """Mean of ``-weight * executed_log_prob`` over a batch ``[B]``."""
        log_prob = self.executed_log_prob(obs, command, action)
        return -log_prob.mean() if weight is None else -(weight * log_prob).mean()

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return self.distribution_class.draw_noise(rng, shape)

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        return self.distribution(obs, command).sample(noise)
