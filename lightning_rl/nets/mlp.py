"""Plain multi-layer perceptrons."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn


def orthogonal_linear(in_size: int, out_size: int, gain: float = 1.0) -> nn.Linear:
    """A linear layer with orthogonal weights; the bias keeps the framework's default."""
    layer = nn.Linear(in_size, out_size)
    nn.init.orthogonal_(layer.weight, gain)
    return layer


def relu_mlp(in_size: int, hidden: Sequence[int], out_size: int) -> nn.Sequential:
    """ReLU layers of the ``hidden`` sizes (orthogonal, gain sqrt 2) and a linear output (default initialisation)."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [orthogonal_linear(in_size, size, math.sqrt(2)), nn.ReLU()]
        in_size = size
    return nn.Sequential(*layers, nn.Linear(in_size, out_size))
