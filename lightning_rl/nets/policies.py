"""Policies: a network and the action distribution that reads its output. They know no environment.

Networks without commands are here, those that take one in ``command``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.types import FloatArray
from lightning_rl.functional.distributions import Distribution
from lightning_rl.nets.layers import Backward, by_hand


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

    def executed_log_prob(self, obs: Tensor, command: Tensor | None, action: Tensor) -> Tensor:
        """Log-probability (density) ``[...]`` of what the environment made of sampled actions: what is learned from.

        A sample outside the box is an action on its edge. Learned as it was sampled, it would widen a distribution whose
        mean cannot leave the box, the more the better that edge is.
        """
        return self.distribution(obs, command).log_prob(self.distribution_class.executed(action))

    def negative_log_likelihood(
        self, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Backward | None]:
        """The mean of ``-weight * executed_log_prob`` over a batch ``[B]``."""
        weight = torch.full_like(obs[:, 0], 1 / len(obs)) if weight is None else weight / len(obs)
        found = by_hand(self.net, obs, command)
        if found is None:
            return -(weight @ self.executed_log_prob(obs, command, action)), None
        output, pullback = found
        log_prob, score = self.distribution_class(output).score(self.distribution_class.executed(action))
        return -(weight @ log_prob), lambda: pullback(score * -weight.unsqueeze(-1))

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


def relu_layers(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers between ``sizes`` in torch's default initialisation, each followed by a ReLU."""
    pairs = itertools.pairwise(sizes)
    return nn.Sequential(*(module for a, b in pairs for module in (nn.Linear(a, b), nn.ReLU())))


class ValueNet(nn.Module):
    """State values ``[...]`` of obs ``[..., O]``: the trailing 1 of the last layer is gone before anyone can broadcast it."""

    def __init__(self, body: nn.Module, features: int):
        super().__init__()
        self.body = body
        self.head = nn.Linear(features, 1)

    def forward(self, obs: Tensor) -> Tensor:
        return self.head(self.body(obs)).squeeze(-1)


def actor_critic(obs_size: int, hidden: Sequence[int], output_size: int, shared: bool) -> tuple[nn.Sequential, ValueNet]:
    """What a policy's distribution reads, and a critic: two networks, or two linear heads on one (``shared``)."""
    body = relu_layers([obs_size, *hidden])
    actor = nn.Sequential(body, nn.Linear(hidden[-1], output_size))
    return actor, ValueNet(body if shared else relu_layers([obs_size, *hidden]), hidden[-1])
