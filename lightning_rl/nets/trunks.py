"""Multi-layer perceptrons with a member axis: what world models and the value network over them are made of.

Parameters are blocks ``[N, D]``, as in ``members``. Forward and backward passes are written by hand: the layers are views that
are made once, and gradients are written where they are wanted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

TrunkActivation = Literal["elu", "relu"]

_ALIGN = 64  # numbers: rows of a block start at whole vectors of the processor, which round alike
_NORMAL_2 = 0.9772498680518208  # P(standard normal < 2)


_ONE = torch.ones(())  # a number would be made into a tensor at every call


def _elu(x: Tensor) -> Tensor:
    """ELU by ``exp``: half the time of ``torch.nn.functional.elu`` on a CPU, within 6e-8 of it."""
    below = x.clamp(max=0).exp_().sub_(_ONE)
    return torch.maximum(x, below, out=below)  # exp(x) - 1 >= x


_aten = torch.ops.aten

# The function, and from the gradient of its output and that output the gradient of its input, in place.
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "elu": (_elu, lambda g, out: _aten.elu_backward.grad_input(g, 1, 1, 1, True, out, grad_input=g)),
    "relu": (torch.relu, lambda g, out: _aten.threshold_backward.grad_input(g, out, 0, grad_input=g)),
}


class Layer(NamedTuple):
    """weight ``[N, I, O]`` and bias ``[N, 1, O]``."""

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


Layers = tuple[Layer, ...]


@dataclass(frozen=True)
class TrunkNet:
    """A perceptron with hidden layers ``hidden`` and a linear output.

    Weights start as ``1 / sqrt(fan_in)`` times a standard normal number cut off at 2, biases as 0, as in the paper's code (the
    default of Haiku's linear layers, without its usual rescaling for the cut).
    """

    in_size: int
    hidden: tuple[int, ...]
    out_size: int
    activation: TrunkActivation = "elu"

    @cached_property
    def _shapes(self) -> list[tuple[int, int]]:
        """Of weights and biases in turn."""
        sizes = [self.in_size, *self.hidden, self.out_size]
        return [shape for fan_in, out in itertools.pairwise(sizes) for shape in ((fan_in, out), (1, out))]

    @cached_property
    def _sizes(self) -> list[int]:
        """Columns of each, and of the padding that aligns the rows of a block."""
        sizes = [math.prod(shape) for shape in self._shapes]
        return [*sizes, -sum(sizes) % _ALIGN]

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return sum(self._sizes)

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``; member ``n`` draws from ``generators[n]`` alone."""
        uniform = torch.stack([torch.rand(self.size, generator=g, dtype=torch.float64) for g in generators])
        normal = torch.special.ndtri(1 - _NORMAL_2 + (2 * _NORMAL_2 - 1) * uniform)
        scale = [0.0 if rows == 1 else rows**-0.5 for rows, _ in self._shapes]
        columns = [torch.full((size,), s) for size, s in zip(self._sizes, [*scale, 0.0], strict=True)]
        return (normal * torch.cat(columns)).float()

    def layers(self, params: Tensor) -> Layers:
        """The layers in ``params`` ``[N, D]``, as views."""
        pieces = params.split(self._sizes, dim=-1)
        shaped = [piece.unflatten(-1, shape) for piece, shape in zip(pieces, self._shapes, strict=False)]
        return tuple(Layer(weight, bias) for weight, bias in zip(shaped[::2], shaped[1::2], strict=True))

    def __call__(self, layers: Layers, x: Tensor) -> Tensor:
        """Outputs ``[N, B, O]`` for x ``[N, B, I]``; no gradient passes."""
        activate = _ACTIVATIONS[self.activation][0]
        for layer in layers[:-1]:
            x = activate(layer(x))  # what is not kept makes room in the cache
        return layers[-1](x)

    def forward(self, layers: Layers, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Outputs ``[N, B, O]`` for x ``[N, B, I]``, and what ``backward`` wants: the input of each layer."""
        activate = _ACTIVATIONS[self.activation][0]
        inputs = [x]
        for layer in layers[:-1]:
            inputs.append(activate(layer(inputs[-1])))
        return layers[-1](inputs[-1]), inputs

    def backward(self, layers: Layers, inputs: Sequence[Tensor], grad: Tensor, into: Layers) -> Tensor:
        """Writes the parameters' gradient ``into`` for that of the outputs ``[N, B, O]``; the gradient of x ``[N, B, I]``."""
        grad = self.parameter_gradient(layers, inputs, grad, into)
        return torch.bmm(grad, layers[0].weight.mT)

    def parameter_gradient(self, layers: Layers, inputs: Sequence[Tensor], grad: Tensor, into: Layers) -> Tensor:
        """``backward`` where that of x is not wanted: the gradient ``[N, B, H]`` of what the first layer gives."""
        slope = _ACTIVATIONS[self.activation][1]
        for number in range(len(layers) - 1, -1, -1):
            torch.bmm(inputs[number].mT, grad, out=into[number].weight)
            torch.sum(grad, dim=1, keepdim=True, out=into[number].bias)
            if number:
                grad = slope(torch.bmm(grad, layers[number].weight.mT), inputs[number])
        return grad


class RecordedPass:
    """Forward passes of a network with the parameters ``layers``, kept for a single backward pass over all of them.

    A roll-out asks for the values of its states one after the other; the update then needs the gradient at those same
    values, and pays for no second forward pass.
    """

    def __init__(self, net: TrunkNet, layers: Layers):
        self.net, self.layers = net, layers
        self._pieces: list[list[Tensor]] = []

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs ``[N, b, O]`` for x ``[N, b, I]``."""
        out, inputs = self.net.forward(self.layers, x)
        self._pieces.append(inputs)
        return out

    def gradient(self, grad: Tensor, into: Layers) -> None:
        """Writes the parameters' gradient ``into`` for that of the outputs ``[N, B, O]``, B the rows of all passes in order."""
        inputs = [torch.cat(rows, dim=1) if len(rows) > 1 else rows[0] for rows in zip(*self._pieces, strict=True)]
        self.net.parameter_gradient(self.layers, inputs, grad, into)
