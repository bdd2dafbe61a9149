"""Networks of policy-gradient methods: plain ReLU layers in the framework's default initialisation, without commands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import Tensor, nn


def relu_layers(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers between ``sizes``, each followed by a ReLU."""
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


def actor(obs_size: int, hidden: Sequence[int], output_size: int) -> nn.Sequential:
    """obs ``[..., O]`` to the output ``[..., output_size]`` that a distribution reads."""
    return nn.Sequential(relu_layers([obs_size, *hidden]), nn.Linear(hidden[-1], output_size))


def separate(obs_size: int, hidden: Sequence[int], output_size: int) -> tuple[nn.Module, ValueNet]:
    """An actor and a critic that share nothing."""
    return actor(obs_size, hidden, output_size), ValueNet(relu_layers([obs_size, *hidden]), hidden[-1])


def shared(obs_size: int, hidden: Sequence[int], output_size: int) -> tuple[nn.Module, ValueNet]:
    """An actor and a critic that are two linear heads on one trunk."""
    trunk = relu_layers([obs_size, *hidden])
    return nn.Sequential(trunk, nn.Linear(hidden[-1], output_size)), ValueNet(trunk, hidden[-1])


ACTOR_CRITICS = {"separate": separate, "shared": shared}
