"""Multi-layer perceptrons with a member axis, with forward and backward passes written by hand.

A network is an architecture; its parameters live outside of it, as one block ``[N, D]`` whose row
``n`` is the whole network of member ``n``. Slicing, stacking, perturbing, averaging and optimizing
members are then plain tensor operations on that block, and a target network is a second block.

By hand a step takes about half of autograd's time. What makes it fast on a CPU: hidden layers lie
feature by feature, ``[N, H, B]``, as the library multiplies few rows several times faster than few
columns; everything elementwise is done in place, right after the product that it follows; gradients
are written to where they belong. ``make peers`` has the numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lightning_rl.nets.one_hot_inputs import linear_of_ones, write_weight_gradient, written_out

ActivationName = Literal["relu", "leakyrelu", "tanh", "elu", "prelu"]

_NARROW = 16  # rows or columns below which the library multiplies faster the other way round
# numbers above which a matrix is written straight into a block, for which the library goes member
# by member
_LARGE = 4096
PRELU_SLOPE = 0.25
_NORM_EPS = 1e-5
LEAK = 0.01
_MOST_KEPT = 32
# A block whose views are kept stays in memory, so no other can lie at its place.
_KEPT: dict[tuple[Any, ...], Any] = {}
_ONE = torch.ones(())  # a number would be made into a tensor at every call


class Activation(NamedTuple):
    """``forward``: in place, of ``scale`` times the input.

    ``backward``: the gradient, in place, from that and the output.

    Each maps 0 to 0: see ``embedding.embed``.
    """

    forward: Callable[[Tensor], object]
    backward: Callable[[Tensor, Tensor], object]
    module: Callable[[], nn.Module]
    scale: float = 1.0


def _tanh_of_half(z: Tensor) -> None:
    """``tanh x = 2 sigmoid(2 x) - 1``, within 2e-7.

    About as fast as ``torch.tanh`` or, on some CPUs, four times as fast.
    """
    z.sigmoid_()
    torch.add(_minus_one(z.dtype, z.device), z, alpha=2, out=z)


@cache
def _minus_one(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full((), -1.0, dtype=dtype, device=device)


def _elu(z: Tensor) -> None:
    """ELU by ``exp``: half the time of ``torch.nn.functional.elu_`` on a CPU, within 6e-8 of it."""
    torch.maximum(z, z.clamp(max=0).exp_().sub_(_ONE), out=z)  # exp(z) - 1 >= z


_aten = torch.ops.aten
IN_PLACE: dict[str, Activation] = {
    "relu": Activation(
        torch.relu_,
        lambda g, out: _aten.threshold_backward.grad_input(g, out, 0, grad_input=g),
        nn.ReLU,
    ),
    "leakyrelu": Activation(
        lambda z: nn.functional.leaky_relu_(z, LEAK),
        lambda g, out: _aten.leaky_relu_backward.grad_input(g, out, LEAK, True, grad_input=g),
        nn.LeakyReLU,
    ),
    "tanh": Activation(
        _tanh_of_half,
        lambda g, out: _aten.tanh_backward.grad_input(g, out, grad_input=g),
        nn.Tanh,
        scale=2.0,
    ),
    "elu": Activation(
        _elu,
        lambda g, out: _aten.elu_backward.grad_input(g, 1, 1, 1, True, out, grad_input=g),
        nn.ELU,
    ),
}
ACTIVATIONS = (*IN_PLACE, "prelu")
"""The PReLU has a slope to learn for each hidden layer."""


class Layer(NamedTuple):
    """Views of a block that are the tensors of a layer.

    weight ``[N, I, O]``, bias ``[N, 1, O]``, and both transposed, as a view costs a tenth of a
    small product; gain and shift ``[N, 1, O]`` of the layer norm; slope ``[N, 1, 1]`` of the PReLU.
    """

    weight: Tensor
    bias: Tensor
    weight_t: Tensor
    bias_t: Tensor
    gain: Tensor | None = None
    shift: Tensor | None = None
    slope: Tensor | None = None

    def named(self) -> dict[str, Tensor]:
        """The tensors that the layer has, in the order of their columns."""
        return {
            name: value
            for name, value in self._asdict().items()
            if value is not None and not name.endswith("_t")
        }


Layers = tuple[Layer, ...]

MemberPullback = Callable[..., Tensor | None]
"""``(grad [N, B, O], into [N, D], want_x=False)``: writes the gradient to params ``into`` a block;
gives that to x ``[N, B, I]``, if wanted.
"""


class _Piece(NamedTuple):
    """A run of columns of the block: one tensor of a layer.

    bound: of a weight or bias, ``1 / sqrt(fan_in)``.
    """

    layer: int
    name: str
    shape: tuple[int, int]
    bound: float = 0.0
    offset: float = 0.0


class Architecture:
    """What is computed with a block of parameters ``[N, D]``, by views of it."""

    def layers(self, params: Tensor) -> Any:
        """The layers, as views of ``params`` ``[N, D]``."""
        raise NotImplementedError

    def kept_layers(self, params: Tensor) -> Any:
        """``layers`` without a gradient, made once for the blocks used last.

        Views cost more than the products of a small net.
        """
        key = (self, params.data_ptr(), params.shape, params.stride(0), params.dtype, params.device)
        if key not in _KEPT:
            if len(_KEPT) == _MOST_KEPT:
                _KEPT.clear()
            _KEPT[key] = self.layers(params.detach())
        return _KEPT[key]


@dataclass(frozen=True)
class MemberMLP(Architecture):
    """``hidden`` layers with an activation after each, then a linear output.

    layer_norm: normalise each hidden layer before its activation (Ba et al. 2016), with learnable
    gain and shift.
    Weights and biases start uniform in ``-/+ 1 / sqrt(fan_in)``, as those of ``torch.nn.Linear``.
    """

    in_size: int
    hidden: tuple[int, ...]
    out_size: int
    activation: ActivationName = "relu"
    layer_norm: bool = False

    @property
    def compilable(self) -> bool:
        """Whether ``nets.fused`` computes such networks."""
        return self.activation in ("tanh", "relu", "leakyrelu") and not self.layer_norm

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        pieces: list[_Piece] = []
        sizes = itertools.pairwise([self.in_size, *self.hidden, self.out_size])
        for i, (fan_in, out) in enumerate(sizes):
            bound = 1 / math.sqrt(fan_in)
            pieces.append(_Piece(i, "weight", (fan_in, out), bound))
            pieces.append(_Piece(i, "bias", (1, out), bound))
            hidden = i < len(self.hidden)
            if hidden and self.layer_norm:
                pieces.append(_Piece(i, "gain", (1, out), offset=1.0))
                pieces.append(_Piece(i, "shift", (1, out)))
            if hidden and self.activation == "prelu":
                pieces.append(_Piece(i, "slope", (1, 1), offset=PRELU_SLOPE))
        return tuple(pieces)

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(piece.shape) for piece in self._pieces]

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return sum(self._sizes)

    def init(
        self, generators: Sequence[torch.Generator], widths: Sequence[int] | None = None
    ) -> Tensor:
        """Fresh parameters ``[N, D]``; member ``n`` draws from ``generators[n]`` alone.

        widths: member ``n`` is initialised as a network with ``widths[n]`` units in each hidden
        layer, embedded in this one.
        """
        if widths is not None:
            from lightning_rl.nets.embedding import init_narrow  # which is built on this module

            return init_narrow(self, generators, widths)
        offset = self._per_column([piece.offset for piece in self._pieces])
        bound = self._per_column([piece.bound for piece in self._pieces])
        uniform = torch.stack([torch.rand(self.size, generator=g) for g in generators])
        return (2 * uniform - 1) * bound + offset

    def _per_column(self, values: Sequence[float | bool]) -> Tensor:
        """``[D]`` of one value for each piece."""
        return torch.cat(
            [torch.full((size,), value) for size, value in zip(self._sizes, values, strict=True)]
        )

    def columns(self, *names: str) -> Tensor:
        """Mask ``[D]``, bool, of the columns that hold tensors of these names.

        Names are ``weight``, ``bias``, ``slope``, ..
        """
        return self._per_column([piece.name in names for piece in self._pieces])

    def layers(self, params: Tensor) -> Layers:
        found: list[dict[str, Tensor]] = [{} for _ in range(len(self.hidden) + 1)]
        for piece, columns in zip(self._pieces, params.split(self._sizes, dim=-1), strict=True):
            found[piece.layer][piece.name] = columns.view(len(params), *piece.shape)
        return tuple(
            Layer(**each, weight_t=each["weight"].mT, bias_t=each["bias"].mT) for each in found
        )

    def __call__(self, params: Tensor, x: Tensor) -> Tensor:
        """Member ``n`` applied to its own inputs.

        params ``[N, D]``, x ``[N, B, in_size]`` -> ``[N, B, out_size]``.
        """
        if torch.is_grad_enabled() and (params.requires_grad or x.requires_grad):
            return cast(Tensor, _MLPFunction.apply(params, x, self))
        return self.forward(self.kept_layers(params), x)[0]

    @torch.no_grad()
    def vjp(self, params: Tensor, x: Tensor) -> tuple[Tensor, MemberPullback]:
        """The output, and what gives the gradients to params and x (vector-Jacobian product).

        See ``MemberPullback``.
        """
        layers = self.kept_layers(params)
        out, saved = self.forward(layers, x)

        def pullback(grad: Tensor, into: Tensor, want_x: bool = False) -> Tensor | None:
            return self.backward(layers, saved, grad, self.kept_layers(into), want_x)

        return out, pullback

    def forward(self, layers: Layers, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Outputs ``[N, B, O]`` for x ``[N, B, I]``, and what ``backward`` wants.

        No gradient passes.

        x int64 ``[N, B, K]``: which of the inputs are 1, where all others are 0. What is saved has
        the batch as the last dimension of every tensor, so that passes of the same layers can be
        joined.
        """
        if not x.is_floating_point() and x.device.type != "cpu":
            x = written_out(x, self.in_size)
        below = x.mT
        saved = [below]
        for layer in layers[:-1]:
            below = self._activate(layer, below, saved)
        rows = x.shape[1] < _NARROW or self.out_size >= _NARROW
        return _linear(layers[-1], below, 1.0, rows).mT, saved

    def _activate(self, layer: Layer, x: Tensor, saved: list[Tensor]) -> Tensor:
        """A hidden layer of x ``[N, I, B]``: ``[N, H, B]``."""
        activation = IN_PLACE.get(self.activation)
        scale = activation.scale if activation else 1.0
        z = _linear(layer, x, 1.0 if self.layer_norm else scale, x.shape[2] < _NARROW)
        if layer.gain is not None and layer.shift is not None:
            z -= z.mean(1, keepdim=True)
            inverse_std = (z.square().mean(1, keepdim=True) + _NORM_EPS).rsqrt()
            z *= inverse_std
            saved += [z, inverse_std]
            z = torch.addcmul(layer.shift.mT, z, layer.gain.mT).mul_(scale)
        if activation:
            activation.forward(z)
        elif layer.slope is not None:
            saved.append(z)
            z = torch.where(z > 0, z, z * layer.slope)
        saved.append(z)
        return z

    def backward(
        self,
        layers: Layers,
        saved: Sequence[Tensor],
        grad: Tensor,
        into: Layers | None,
        want_x: bool = False,
    ) -> Tensor | None:
        """From the gradient ``[N, B, O]`` to the outputs to those to parameters and inputs.

        Writes that to the parameters ``into`` layers, where there are any.

        saved: what ``forward`` gave.

        Returns:
            The gradient ``[N, B, I]`` to x, if wanted.
        """
        saved, grad = list(saved), grad.mT
        for number in range(len(layers) - 1, 0, -1):
            if into is not None:
                _write_gradient(grad, saved[-1], into[number])
            grad = torch.bmm(layers[number].weight, grad)
            into_below = None if into is None else into[number - 1]
            grad = self._deactivate(layers[number - 1], grad, saved, into_below)
        if into is not None:
            _write_gradient(grad, saved[0], into[0])
        return torch.bmm(layers[0].weight, grad).mT if want_x else None

    def _deactivate(
        self, layer: Layer, grad: Tensor, saved: list[Tensor], into: Layer | None
    ) -> Tensor:
        """The gradient ``[N, H, B]`` to the pre-activations ``x W + b`` of a hidden layer.

        grad: that to its output.
        """
        out = saved.pop()
        if layer.slope is None:
            IN_PLACE[self.activation].backward(grad, out)
        else:
            z = saved.pop()
            if into is not None:
                cast(Tensor, into.slope).copy_((grad * z.clamp(max=0)).sum((1, 2), keepdim=True))
            grad = torch.where(z > 0, grad, grad * layer.slope)
        if layer.gain is None:
            return grad
        inverse_std, normal = saved.pop(), saved.pop()
        if into is not None:
            cast(Tensor, into.shift).copy_(grad.sum(2).unsqueeze(1))
            cast(Tensor, into.gain).copy_((grad * normal).sum(2).unsqueeze(1))
        grad = grad * layer.gain.mT
        grad -= grad.mean(1, keepdim=True) + normal * (grad * normal).mean(1, keepdim=True)
        return grad.mul_(inverse_std)

    def module(self, params: Tensor) -> nn.Sequential:
        """Member ``params`` ``[D]`` as a plain module with its own parameters."""
        modules: list[nn.Module] = []
        sizes = [self.in_size, *self.hidden]
        for fan_in, width in itertools.pairwise(sizes):
            modules.append(nn.Linear(fan_in, width))
            if self.layer_norm:
                modules.append(nn.LayerNorm(width, eps=_NORM_EPS))
            if self.activation == "prelu":
                modules.append(nn.PReLU())
            else:
                modules.append(IN_PLACE[self.activation].module())
        module = nn.Sequential(*modules, nn.Linear(sizes[-1], self.out_size))
        row = params.detach().unsqueeze(0)
        with torch.no_grad():
            for (name, value), own in zip(self._tensors(row), module.parameters(), strict=True):
                own.copy_(value.squeeze(0).T if name == "weight" else value.reshape(own.shape))
        return module

    @torch.no_grad()
    def from_modules(self, modules: Sequence[nn.Module]) -> Tensor:
        """The block ``[N, D]`` of plain modules laid out as ``module`` lays them out."""
        rows = torch.empty(len(modules), self.size)
        for row, module in zip(rows.split(1), modules, strict=True):
            for (name, value), own in zip(self._tensors(row), module.parameters(), strict=True):
                value.copy_(own.T if name == "weight" else own.reshape(value.shape))
        return rows

    def _tensors(self, params: Tensor) -> list[tuple[str, Tensor]]:
        """(name, tensor) of all layers, in the order in which a plain module has its parameters."""
        return [pair for layer in self.layers(params) for pair in layer.named().items()]


class _MLPFunction(torch.autograd.Function):
    """``MemberMLP.forward`` and ``backward`` for autograd."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, x: Tensor, net: MemberMLP) -> Tensor:
        out, saved = net.forward(net.kept_layers(params), x)
        ctx.net = net
        ctx.save_for_backward(params, *saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        params, *saved = ctx.saved_tensors
        want_params, want_x, _ = ctx.needs_input_grad
        to_params = into = None
        if want_params:
            to_params = torch.empty_like(params)
            into = ctx.net.layers(to_params)
        layers = ctx.net.kept_layers(params)
        to_x = ctx.net.backward(layers, saved, grads[0], into, want_x)
        return to_params, to_x, None


def _linear(layer: Layer, x: Tensor, scale: float, rows: bool) -> Tensor:
    """``scale (x W + b)`` ``[N, O, B]`` of x ``[N, I, B]``.

    rows: in memory, the outputs of one sample lie together.
    """
    if not x.is_floating_point():
        return linear_of_ones(layer, x, scale)
    if rows:
        return torch.baddbmm(layer.bias, x.mT, layer.weight, beta=scale, alpha=scale).mT
    if scale == 1:  # numbers among the arguments take a fifth of the time of a small product
        return torch.baddbmm(layer.bias_t, layer.weight_t, x)
    return torch.baddbmm(layer.bias_t, layer.weight_t, x, beta=scale, alpha=scale)


def _write_gradient(grad: Tensor, below: Tensor, into: Layer) -> None:
    """Writes the gradients of weight and bias.

    grad ``[N, O, B]``: that to the layer's output. below ``[N, I, B]``: its input.
    """
    torch.sum(grad, dim=2, keepdim=True, out=into.bias_t)
    if not below.is_floating_point():
        write_weight_gradient(grad, below, into)
    elif into.weight.shape[1] * into.weight.shape[2] >= _LARGE:
        torch.bmm(below, grad.mT, out=into.weight)
    elif grad.shape[1] < _NARROW:
        into.weight.copy_(torch.bmm(grad, below.mT).mT)
    else:
        into.weight.copy_(torch.bmm(below, grad.mT))
