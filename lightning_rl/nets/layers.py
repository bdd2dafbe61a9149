"""Networks of linear layers, moving averages of networks, and how layers begin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class LayeredNet(nn.Module):
    """Hidden layers ``activation(W x + b)``, the first ``len(gate_sizes)`` of them multiplied by a
    gate, then a linear output.

    All gates are slices of one function of the command, ``gate_scale * sigmoid(U c + p)``. Updates
    of such a network can be compiled, see ``nets.fused``.
    """

    activations: Sequence[str] = ()  # of the hidden layers: relu or tanh
    gate_sizes: Sequence[int] = ()  # of the hidden layers that have a gate
    gate_scale = 1.0

    def linears(self) -> list[nn.Linear]:
        """The layers from the first to the output, then that of the gates, if there are any."""
        raise NotImplementedError


class ReLUNet(LayeredNet, nn.Sequential):
    """Linear layers with ReLUs between them; some may be together in a ``Sequential``."""

    def __init__(self, *modules: Any):
        nn.Sequential.__init__(self, *modules)
        self.activations = ["relu"] * (len(self.linears()) - 1)

    def linears(self) -> list[nn.Linear]:
        return [module for module in self.modules() if isinstance(module, nn.Linear)]


@contextmanager
def evaluating(*nets: nn.Module) -> Iterator[None]:
    """Without gradients, and with the networks in evaluation mode: a user's may have dropout."""
    training = [module for net in nets for module in net.modules() if module.training]
    for module in training:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


class MovingAverage:
    """Exponential moving average: ``average``, a copy of ``learned`` that acts, moves by ``tau`` of
    their difference a step.

    Buffers, e.g. the statistics of a batch norm, are copied. Where both are the same network
    nothing is done.
    """

    def __init__(self, average: nn.Module, learned: nn.Module, tau: float):
        self.average, self.learned, self.tau = average, learned, tau
        self._parameters = tuple(average.parameters()), tuple(learned.parameters())
        self._has_buffers = bool(list(average.buffers()))

    @torch.no_grad()
    def update(self) -> None:
        """Moves the average; called after each optimizer step."""
        if self.average is self.learned:
            return
        torch._foreach_lerp_(*self._parameters, self.tau)
        if self._has_buffers:
            # looked up each time: a module that moves to another device gets new buffers
            for own, learned in zip(self.average.buffers(), self.learned.buffers(), strict=True):
                own.copy_(learned)


def orthogonal_linear(in_size: int, out_size: int, gain: float = 1.0) -> nn.Linear:
    """A linear layer with orthogonal weights; the bias keeps the framework's default."""
    layer = nn.Linear(in_size, out_size)
    nn.init.orthogonal_(layer.weight, gain)
    return layer


def relu_mlp(in_size: int, hidden: Sequence[int], out_size: int) -> ReLUNet:
    """ReLU layers of the ``hidden`` sizes (orthogonal, gain sqrt 2), and a linear output."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [orthogonal_linear(in_size, size, math.sqrt(2)), nn.ReLU()]
        in_size = size
    return ReLUNet(*layers, nn.Linear(in_size, out_size))
