"""Forward and backward passes of stacked MLPs, written by hand: far fewer and cheaper operations than autograd's.

What makes them fast on a CPU: activations lie feature by feature, ``[N, H, B]``, as the library multiplies few rows several
times faster than few columns; its results are dense, or it would multiply member by member; everything elementwise is done in
place, right after the product that it follows. ``benchmarks/bench_members.py`` has the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Layer = tuple[Tensor, Tensor]
"""weight ``[N, I, O]``, bias ``[N, 1, O]``."""

Pullback = Callable[..., tuple[Tensor, Tensor | None]]
"""``(grad [N, B, O], want_x=False) -> (gradient to params [N, D], that to x [N, B, I] or None)``."""

_NARROW = 16  # rows below which the library multiplies faster the other way round
_VECTOR = 64
_LEAK = 0.01


class Activation(NamedTuple):
    """``forward``: in place, of ``scale`` times the input. ``backward``: the gradient, in place, from that and the output."""

    forward: Callable[[Tensor], object]
    backward: Callable[[Tensor, Tensor], object]
    scale: float = 1.0


def _tanh_of_half(z: Tensor) -> None:
    """``tanh x = 2 sigmoid(2 x) - 1``, within 2e-7: about as fast as ``torch.tanh`` or, on some CPUs, four times as fast."""
    z.sigmoid_()
    torch.add(torch.full((), -1.0, dtype=z.dtype, device=z.device), z, alpha=2, out=z)


_aten = torch.ops.aten
ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(torch.relu_, lambda g, out: _aten.threshold_backward.grad_input(g, out, 0, grad_input=g)),
    "leakyrelu": Activation(
        lambda z: torch.nn.functional.leaky_relu_(z, _LEAK),
        lambda g, out: _aten.leaky_relu_backward.grad_input(g, out, _LEAK, True, grad_input=g),
    ),
    "tanh": Activation(_tanh_of_half, lambda g, out: _aten.tanh_backward.grad_input(g, out, grad_input=g), scale=2.0),
}
"""Those with a hand-written derivative."""


def _room(count: int, features: int, batch: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Room for ``[N, H, B]``, and the same flat, filled up to whole vectors of the processor.

    Elements that do not fill a vector take another path through elementwise kernels, which may round differently; the last
    member of a stack shall get what any other gets.
    """
    size = count * features * batch
    flat = like.new_empty(size + -size % _VECTOR)
    flat[size:] = 0
    if batch < _NARROW:
        return flat[:size].view(count, batch, features).mT, flat
    return flat[:size].view(count, features, batch), flat


def forward(layers: Sequence[Layer], activation: Activation, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """x ``[N, I, B]``: the output ``[N, O, B]``, and each hidden layer's ``[N, H, B]`` and flat."""
    hidden: list[Tensor] = []
    for weight, bias in layers[:-1]:
        z, flat = _room(len(weight), weight.shape[2], x.shape[2], x)
        torch.baddbmm(bias.mT, weight.mT, x, beta=activation.scale, alpha=activation.scale, out=z)
        activation.forward(flat)
        hidden += [z, flat]
        x = z
    weight, bias = layers[-1]
    return torch.baddbmm(bias.mT, weight.mT, x), hidden


def backward(
    layers: Sequence[Layer], activation: Activation, x: Tensor, hidden: Sequence[Tensor], grad: Tensor,
    want_params: bool, want_x: bool,
) -> tuple[Tensor | None, Tensor | None]:  # fmt: skip
    """From the gradient ``[N, O, B]`` to the output: those to the parameters ``[N, D]`` and to x ``[N, I, B]``, if wanted."""
    pieces: list[Tensor] = []
    for place in reversed(range(len(layers))):
        weight, _ = layers[place]
        below = hidden[2 * place - 2] if place else x
        if want_params:
            few = grad.shape[1] < _NARROW
            to_weight = torch.bmm(grad, below.mT).mT if few else torch.bmm(below, grad.mT)
            pieces += [grad.sum(2), to_weight.reshape(len(grad), -1)]
        if place:
            through, flat = _room(len(weight), weight.shape[1], grad.shape[2], grad)
            grad = torch.bmm(weight, grad, out=through)
            activation.backward(flat, hidden[2 * place - 1])
        elif want_x:
            grad = torch.bmm(weight, grad)
    return torch.cat(pieces[::-1], dim=1) if want_params else None, grad if want_x else None


class MLPFunction(torch.autograd.Function):
    """``forward`` and ``backward`` for autograd: params ``[N, D]``, x ``[N, B, I]`` -> ``[N, B, O]``."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, x: Tensor, split: Callable[[Tensor], list[Layer]], activation: Activation) -> Tensor:
        """``split`` makes the layers of params."""
        out, hidden = forward(split(params), activation, x.mT)
        ctx.split, ctx.activation = split, activation
        ctx.save_for_backward(params, x, *hidden)
        return out.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        params, x, *hidden = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        layers = ctx.split(params)
        to_params, to_x = backward(layers, ctx.activation, x.mT, hidden, grads[0].mT, wanted[0], wanted[1])
        return to_params, None if to_x is None else to_x.mT, None, None


def vjp_by_autograd(net: Callable[[Tensor, Tensor], Tensor], params: Tensor, x: Tensor) -> tuple[Tensor, Pullback]:
    """The output of any ``net`` and its pullback."""
    leaves = params.detach().requires_grad_(), x.detach().requires_grad_()
    with torch.enable_grad():
        out = net(*leaves)

    def pullback(grad: Tensor, want_x: bool = False) -> tuple[Tensor, Tensor | None]:
        to_params, *to_x = torch.autograd.grad(out, leaves[: 1 + want_x], grad)
        return to_params, to_x[0] if want_x else None

    return out.detach(), pullback
