"""Multi-layer perceptrons with a member axis.

A network is an architecture; its parameters live outside of it, as one block ``[N, D]`` whose row ``n`` is the whole
network of member ``n``. Slicing, stacking, perturbing, averaging and optimising members are then plain tensor
operations on that block, and a target network is a second block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_rl.nets.member_passes import ACTIVATIONS as HAND_WRITTEN
from lightning_rl.nets.member_passes import Activation, Layer, MLPFunction, Pullback, backward, forward, vjp_by_autograd


class _Tanh(torch.autograd.Function):
    """``tanh x = 2 sigmoid(2 x) - 1``: a quarter of the time of ``torch.tanh`` on a CPU, within 2e-7 of it.

    Elements that do not fill the processor's vectors take another path through ``sigmoid``, which rounds differently. The
    tensor is filled up to whole vectors, so that the last member of a stack gets what any other gets.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        count = x.numel()
        filled = x.new_empty(count + -count % _VECTOR)
        filled[count:] = 0
        out = filled[:count].view(x.shape)
        torch.mul(x, 2, out=out)
        filled.sigmoid_()
        out.mul_(2).sub_(1)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(grad, out)


def _tanh(x: Tensor) -> Tensor:
    return _Tanh.apply(x)


def _linear(layer: dict[str, Tensor], x: Tensor) -> Tensor:
    """``x W + b`` of each member: weight ``[N, I, O]``, bias ``[N, 1, O]``, x ``[N, B, I]`` -> ``[N, B, O]``."""
    weight, bias = layer["weight"], layer["bias"]
    if weight.shape[-1] < _NARROW:
        # The library is slow at few columns, forwards and backwards (measured: five times), but not at few rows.
        return torch.bmm(weight.mT, x.mT).mT + bias
    return torch.baddbmm(bias, x, weight)


_NARROW = 16
_VECTOR = 64

ActivationName = Literal["relu", "leakyrelu", "tanh", "prelu"]

# Each maps 0 to 0: see ``MemberMLP.embed``. The PReLU has a slope to learn for each hidden layer.
_ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[], nn.Module]]] = {
    "relu": (torch.relu, nn.ReLU),
    "leakyrelu": (F.leaky_relu, nn.LeakyReLU),
    "tanh": (_tanh, nn.Tanh),
}
ACTIVATIONS = (*_ACTIVATIONS, "prelu")
_PRELU_SLOPE = 0.25


class _Piece(NamedTuple):
    """A run of columns of the block: one parameter tensor of a layer. It starts uniform in offset -/+ bound."""

    layer: int
    name: str
    shape: tuple[int, int]
    bound: float = 0.0
    offset: float = 0.0


@dataclass(frozen=True)
class MemberMLP:
    """``hidden`` layers with an activation after each, then a linear output.

    layer_norm: normalise each hidden layer before its activation (Ba et al. 2016), with learnable gain and shift.
    skippable: members may leave out hidden layers from the second on (all then have one width). Whether a member
    has a layer is a column of the block, which no gradient reaches.

    The initialisation is that of ``torch.nn.Linear``: weights and biases uniform in ``-/+ 1 / sqrt(fan_in)``.
    """

    in_size: int
    hidden: tuple[int, ...]
    out_size: int
    activation: ActivationName = "relu"
    layer_norm: bool = False
    skippable: bool = False

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation '{self.activation}' is unknown; choose one of: {', '.join(ACTIVATIONS)}")
        if self.skippable and len(set(self.hidden)) > 1:
            raise ValueError(f"layers can be left out only where all have one width, got {self.hidden}")

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        pieces: list[_Piece] = []
        sizes = [self.in_size, *self.hidden, self.out_size]
        for i, (fan_in, out) in enumerate(itertools.pairwise(sizes)):
            bound = 1 / math.sqrt(fan_in)
            pieces += [_Piece(i, "weight", (fan_in, out), bound), _Piece(i, "bias", (1, out), bound)]
            if i == len(self.hidden):
                break
            if self.layer_norm:
                pieces += [_Piece(i, "gain", (1, out), offset=1.0), _Piece(i, "shift", (1, out))]
            if self.activation == "prelu":
                pieces.append(_Piece(i, "slope", (1, 1), offset=_PRELU_SLOPE))
            if self.skippable and i > 0:
                pieces.append(_Piece(i, "present", (1, 1), offset=1.0))
        return tuple(pieces)

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(piece.shape) for piece in self._pieces]

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return sum(self._sizes)

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``; member ``n`` draws from ``generators[n]`` alone."""
        uniform = torch.stack([torch.rand(self.size, generator=g) for g in generators])
        bound = torch.cat([torch.full((size,), p.bound) for p, size in zip(self._pieces, self._sizes, strict=True)])
        offset = torch.cat([torch.full((size,), p.offset) for p, size in zip(self._pieces, self._sizes, strict=True)])
        return (2 * uniform - 1) * bound + offset

    def columns(self, *names: str) -> Tensor:
        """Which columns of the block ``[D]`` hold tensors of these names (``weight``, ``bias``, ``slope``, ..)."""
        return torch.cat([torch.full((size,), p.name in names) for p, size in zip(self._pieces, self._sizes, strict=True)])

    def layers(self, params: Tensor) -> Iterator[dict[str, Tensor]]:
        """The tensors ``[N, rows, columns]`` of each layer, as views of ``params`` ``[N, D]``."""
        layer: dict[str, Tensor] = {}
        number = 0
        # One split: its backward is one concatenation, where slices would each fill a whole block with zeros.
        for piece, columns in zip(self._pieces, params.split(self._sizes, dim=-1), strict=True):
            if piece.layer != number:
                yield layer
                layer, number = {}, piece.layer
            layer[piece.name] = columns.unflatten(-1, piece.shape)
        yield layer

    @cached_property
    def _activation(self) -> Activation | None:
        """Where forward and backward pass are written by hand; None where autograd has to do it."""
        special = self.layer_norm or self.skippable
        return None if special else HAND_WRITTEN.get(self.activation)

    def _plain_layers(self, params: Tensor) -> list[Layer]:
        """``layers`` where each has a weight and a bias alone."""
        pieces = params.split(self._sizes, dim=1)
        shaped = [piece.unflatten(1, p.shape) for piece, p in zip(pieces, self._pieces, strict=True)]
        return list(zip(shaped[::2], shaped[1::2], strict=True))

    def __call__(self, params: Tensor, x: Tensor) -> Tensor:
        """Member ``n`` applied to its own inputs: params ``[N, D]``, x ``[N, B, in_size]`` -> ``[N, B, out_size]``."""
        if self._activation is None:
            return self._by_autograd(params, x)
        if torch.is_grad_enabled() and (params.requires_grad or x.requires_grad):
            return cast(Tensor, MLPFunction.apply(params, x, self._plain_layers, self._activation))
        return forward(self._plain_layers(params), self._activation, x.mT)[0].mT

    @torch.no_grad()
    def vjp(self, params: Tensor, x: Tensor) -> tuple[Tensor, Pullback]:
        """The output, and what turns the gradient to it into those to params and to x (vector-Jacobian product)."""
        activation = self._activation
        if activation is None:
            return vjp_by_autograd(self._by_autograd, params, x)
        layers = self._plain_layers(params)
        out, hidden = forward(layers, activation, x.mT)

        def pullback(grad: Tensor, want_x: bool = False) -> tuple[Tensor, Tensor | None]:
            to_params, to_x = backward(layers, activation, x.mT, hidden, grad.mT, True, want_x)
            return cast(Tensor, to_params), None if to_x is None else to_x.mT

        return out.mT, pullback

    def _by_autograd(self, params: Tensor, x: Tensor) -> Tensor:
        *hidden, last = self.layers(params)
        for layer in hidden:
            x = self._hidden(layer, x)
        return _linear(last, x)

    def _hidden(self, layer: dict[str, Tensor], x: Tensor) -> Tensor:
        z = _linear(layer, x)
        if self.layer_norm:
            z = F.layer_norm(z, z.shape[-1:]) * layer["gain"] + layer["shift"]
        # Not F.prelu, which takes one slope for all members.
        out = torch.where(z > 0, z, z * layer["slope"]) if "slope" in layer else _ACTIVATIONS[self.activation][0](z)
        return torch.where(layer["present"].detach() > 0, out, x) if "present" in layer else out

    def embed(self, other: MemberMLP, params: Tensor) -> Tensor:
        """Parameters ``[N, self.size]`` of this architecture that compute what ``other`` computes with ``params``.

        ``other`` may be narrower, and shallower if this one is skippable. Missing units get zero weights in both
        directions. As activations map 0 to 0, such units give 0 and receive no gradient: a padded member stays exactly
        the small network all through training, and no mask is needed.
        """
        inner = (self.in_size, self.out_size, self.activation, self.layer_norm)
        fits = inner == (other.in_size, other.out_size, other.activation, other.layer_norm)
        depth = len(other.hidden)
        narrow = all(small <= big for small, big in zip(other.hidden, self.hidden, strict=False))
        if not fits or not narrow or not (depth == len(self.hidden) or (self.skippable and 0 < depth < len(self.hidden))):
            raise ValueError(f"{other} cannot be embedded in {self}")
        if self.layer_norm and other.hidden != self.hidden[:depth]:
            raise ValueError("layer_norm averages over the units of a layer: members need one width; group them by width")
        target = params.new_zeros(len(params), self.size)
        layers = list(self.layers(target))
        for i, source in enumerate(other.layers(params)):
            into = layers[i] if i < depth else layers[-1]
            for name, value in source.items():
                into[name][:, : value.shape[1], : value.shape[2]] = value
            if "present" in into:
                into["present"].fill_(1)
        return target

    def module(self, params: Tensor) -> nn.Sequential:
        """Member ``params`` ``[D]`` as a plain module with its own parameters."""
        modules: list[nn.Module] = []
        layers = [x for x in self.layers(params.detach().unsqueeze(0)) if "present" not in x or x["present"].item() > 0]
        for layer in layers:
            modules.append(nn.Linear(*layer["weight"].shape[1:]))
            if layer is layers[-1]:
                break
            if self.layer_norm:
                modules.append(nn.LayerNorm(layer["bias"].shape[-1]))
            modules.append(nn.PReLU() if self.activation == "prelu" else _ACTIVATIONS[self.activation][1]())
        module = nn.Sequential(*modules)
        parameters = module.parameters()
        with torch.no_grad():
            for layer in layers:
                for name, value in _learned(layer):
                    parameter = next(parameters)
                    parameter.copy_(value.squeeze(0).T if name == "weight" else value.reshape(parameter.shape))
        return module

    @torch.no_grad()
    def from_modules(self, modules: Sequence[nn.Module]) -> Tensor:
        """The block ``[N, D]`` of plain modules laid out as ``module`` lays them out."""
        rows = torch.ones(len(modules), self.size)
        for row, module in zip(rows.split(1), modules, strict=True):
            parameters = module.parameters()
            for layer in self.layers(row):
                for name, value in _learned(layer):
                    parameter = next(parameters)
                    value.copy_(parameter.T if name == "weight" else parameter.reshape(value.shape))
        return rows


def _learned(layer: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    """The tensors of a layer in the order in which a plain module has its parameters."""
    return [(name, value) for name, value in layer.items() if name != "present"]


def varied_params(net: MemberMLP, widths: Sequence[int], depths: Sequence[int], generators: Sequence[torch.Generator]) -> Tensor:
    """Fresh parameters ``[N, net.size]`` of members with ``widths[n]`` units in each of ``depths[n]`` hidden layers.

    Each member is initialised as the small network that it is, then embedded in ``net``.
    """
    rows = []
    for width, depth, generator in zip(widths, depths, generators, strict=True):
        small = replace(net, hidden=(width,) * depth, skippable=False)
        rows.append(net.embed(small, small.init([generator])))
    return torch.cat(rows)
