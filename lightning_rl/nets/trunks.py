"""Multi-layer perceptrons side by side, with a member axis: what world models and the value network over them are made of.

Parameters are blocks ``[N, D]``, as in ``members``. Several networks of one input and equal hidden sizes are one batch of
matrix products, which matters where batches are small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

TrunkActivation = Literal["elu", "relu"]

_ALIGN = 64  # numbers: rows of a block start at whole vectors of the processor, which round alike
_NORMAL_2 = 0.9772498680518208  # P(standard normal < 2)


def _elu(x: Tensor) -> Tensor:
    """ELU by ``exp``: half the time of ``torch.nn.functional.elu`` on a CPU, within 6e-8 of it."""
    below = x.clamp(max=0).exp_().sub_(1)
    return torch.maximum(x, below, out=below)  # exp(x) - 1 >= x


def _elu_slope(grad: Tensor, out: Tensor) -> Tensor:
    return torch.ops.aten.elu_backward(grad, 1, 1, 1, True, out)


def _relu_slope(grad: Tensor, out: Tensor) -> Tensor:
    return torch.ops.aten.threshold_backward(grad, out, 0)


# The function, and the gradient of its input from that of its output and its output.
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "elu": (_elu, _elu_slope),
    "relu": (torch.relu, _relu_slope),
}


class _Activation(torch.autograd.Function):
    """Differentiates through the output, which the next layer keeps anyway."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        out = _ACTIVATIONS[name][0](x)
        ctx.save_for_backward(out)
        ctx.name = name
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return _ACTIVATIONS[ctx.name][1](grad, *ctx.saved_tensors), None


class Layer(NamedTuple):
    """weight ``[M, I, O]`` and bias ``[M, 1, O]``."""

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class Layers(NamedTuple):
    """Parameters laid out for use; weights are ``first [N, I, K H]``, ``hidden [N K, H, H]`` each, and heads ``[N, H, O_k]``."""

    first: Layer
    hidden: tuple[Layer, ...]
    heads: tuple[Layer, ...]


@dataclass(frozen=True)
class TrunkNet:
    """``K = len(heads)`` perceptrons of one input, each with hidden layers ``hidden`` and a linear head of ``heads[k]`` outputs.

    The input is ``[x, one-hot action]`` where there are ``action_size`` actions, else x.
    Weights start as ``1 / sqrt(fan_in)`` times a standard normal number cut off at 2, biases as 0, as in the paper's code (the
    default of Haiku's linear layers, without its usual rescaling for the cut).
    """

    in_size: int
    hidden: tuple[int, ...]
    heads: tuple[int, ...]
    action_size: int = 0
    activation: TrunkActivation = "elu"

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Of weights and biases in turn: first layer, hidden layers, heads."""
        trunks, wide = len(self.heads), self.hidden[0] * len(self.heads)
        shapes: list[tuple[int, ...]] = [(self.in_size + self.action_size, wide), (1, wide)]
        for fan_in, out in zip(self.hidden[:-1], self.hidden[1:], strict=True):
            shapes += [(trunks, fan_in, out), (trunks, 1, out)]
        for out in self.heads:
            shapes += [(self.hidden[-1], out), (1, out)]
        return shapes

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
        scale = [0.0 if shape[-2] == 1 else shape[-2] ** -0.5 for shape in self._shapes]
        columns = [torch.full((size,), s) for size, s in zip(self._sizes, [*scale, 0.0], strict=True)]
        return (normal * torch.cat(columns)).float()

    def layers(self, params: Tensor) -> Layers:
        """The layers in ``params`` ``[N, D]``: views, but copies of the hidden layers of several trunks of several members."""
        pieces = params.split(self._sizes, dim=-1)
        shaped = [piece.view(-1, *shape) for piece, shape in zip(pieces, self._shapes, strict=False)]
        pairs = [Layer(weight, bias) for weight, bias in zip(shaped[::2], shaped[1::2], strict=True)]
        inner = pairs[1 : len(self.hidden)]
        hidden = tuple(Layer(weight.flatten(0, 1), bias.flatten(0, 1)) for weight, bias in inner)
        return Layers(pairs[0], hidden, tuple(pairs[len(self.hidden) :]))

    def __call__(self, layers: Layers, x: Tensor, action: Tensor | None = None) -> list[Tensor]:
        """Outputs ``[N, B, heads[k]]`` of each trunk for x ``[N, B, I]`` and action ``[N, B]`` int64; differentiable."""
        trunks = len(self.heads)
        h = self._activate(layers.first(self.join(x, action)))
        if trunks > 1:
            h = h.unflatten(-1, (trunks, -1)).transpose(1, 2).flatten(0, 1)
        for layer in layers.hidden:
            h = self._activate(layer(h))
        return [head(h[k::trunks]) for k, head in enumerate(layers.heads)]

    def join(self, x: Tensor, action: Tensor | None) -> Tensor:
        """The input ``[N, B, I + A]``."""
        if action is None:
            return x
        one_hot = torch.eye(self.action_size, device=x.device).index_select(0, action.flatten())
        return torch.cat([x, one_hot.unflatten(0, action.shape)], dim=-1)

    def _activate(self, x: Tensor) -> Tensor:
        return _Activation.apply(x, self.activation) if x.requires_grad else _ACTIVATIONS[self.activation][0](x)


class RecordedPass:
    """Forward passes of a network of one trunk with the parameters ``layers``, kept for a single backward pass over all of them.

    A roll-out asks for the values of its states one after the other; the update then needs the gradient at those same
    values, and pays for no second forward pass.
    """

    def __init__(self, net: TrunkNet, layers: Layers):
        self.net, self.layers = net, layers
        self._pieces: list[list[Tensor]] = []

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs ``[N, b, O]`` for x ``[N, b, I]``."""
        piece = [x]
        activate = _ACTIVATIONS[self.net.activation][0]
        for layer in (self.layers.first, *self.layers.hidden):
            piece.append(activate(layer(piece[-1])))
        self._pieces.append(piece)
        return self.layers.heads[0](piece[-1])

    def gradient(self, grad: Tensor, into: Layers) -> None:
        """Writes the parameters' gradient ``into`` for that of the outputs ``[N, B, O]``, B the rows of all passes in order."""
        inputs = [torch.cat(rows, dim=1) if len(rows) > 1 else rows[0] for rows in zip(*self._pieces, strict=True)]
        slope = _ACTIVATIONS[self.net.activation][1]
        layers = [(self.layers.first, into.first), *zip(self.layers.hidden, into.hidden, strict=True)]
        layers.append((self.layers.heads[0], into.heads[0]))
        for number in range(len(layers) - 1, -1, -1):
            (weight, _), target = layers[number]
            torch.bmm(inputs[number].mT, grad, out=target.weight)
            torch.sum(grad, dim=1, keepdim=True, out=target.bias)
            if number:
                grad = slope(torch.bmm(grad, weight.mT), inputs[number])
