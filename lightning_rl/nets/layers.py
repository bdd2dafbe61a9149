"""Networks of linear layers that take gradients back to their parameters by hand.

There is no graph; activations lie feature by feature, ``[H, B]``; the gates of all layers are one
product; what is elementwise is done in place, which leaves the processor's cache to weights and
code. ``benchmarks/bench_updates.py`` has the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

Pullback = Callable[[Tensor], None]
"""Takes the gradient to an output ``[B, A]``, once, and sets each parameter's ``grad``."""

Backward = Callable[[], None]
"""Writes the gradients of a loss to the parameters. Where there is None in its place, the loss
has a graph for autograd.
"""

_aten = torch.ops.aten

# inputs below which the library multiplies the gradient of a weight faster the other way round
_NARROW = 16


class LayeredNet(nn.Module):
    """Hidden layers ``activation(W x + b)``, the first ``len(gate_sizes)`` of them multiplied by a
    gate, then a linear output.

    All gates are slices of one function of the command, ``gate_scale * sigmoid(U c + p)``.
    """

    activations: Sequence[str] = ()  # of the hidden layers: relu or tanh
    gate_sizes: Sequence[int] = ()  # of the hidden layers that have a gate
    gate_scale = 1.0
    unchanged: bool | None = None  # see ``note_changes``

    def linears(self) -> list[nn.Linear]:
        """The layers from the first to the output, then that of the gates, if there are any."""
        raise NotImplementedError

    @torch.no_grad()
    def vjp(self, obs: Tensor, command: Tensor | None = None) -> tuple[Tensor, Pullback]:
        """The output ``[B, A]`` for obs ``[B, O]`` and command ``[B, C]``, and its pullback."""
        layers = self.linears()
        gates = obs.new_empty(0, len(obs))
        if command is not None:
            gates = _affine(layers[-1], command.T).sigmoid_().mul_(self.gate_scale)
        factors = gates.split(self.gate_sizes)  # of each gated layer
        inputs = [obs.T]  # of each layer
        active = []  # what the activation of each hidden layer gave
        for number, activation in enumerate(self.activations):
            x = _affine(layers[number], inputs[-1])
            if activation == "relu":
                # a gate leaves the signs, and they are all that the derivative needs
                active.append(x.relu_())
            else:
                x.mul_(2).sigmoid_().mul_(2).sub_(1)  # several times faster than torch.tanh
                active.append(x.clone())
            if number < len(factors):
                x *= factors[number]
            inputs.append(x)

        @torch.no_grad()
        def pullback(grad: Tensor) -> None:
            grad = grad.T
            to_gates = torch.empty_like(gates)
            to_factors = to_gates.split(self.gate_sizes)
            for number in reversed(range(len(active))):
                _write_gradients(layers[number + 1], grad, inputs[number + 1])
                grad = layers[number + 1].weight.T @ grad
                if number < len(factors):
                    torch.mul(grad, inputs[number + 1], out=to_factors[number])
                    grad *= factors[number]
                x = active[number]
                if self.activations[number] == "relu":
                    _aten.threshold_backward.grad_input(grad, x, 0, grad_input=grad)
                else:
                    _aten.tanh_backward.grad_input(grad, x, grad_input=grad)
            _write_gradients(layers[0], grad, inputs[0])
            if command is not None:
                # the derivative of a sigmoid s is s - s s
                to_gates.addcmul_(to_gates, gates, value=-1 / self.gate_scale)
                _write_gradients(layers[-1], to_gates, command.T)

        return _affine(layers[len(active)], inputs[-1]).T, pullback


def as_built(net: LayeredNet) -> bool:
    """Whether it has its original layers alone, without hooks; what a user adds needs autograd."""
    for module in net.modules():
        original = type(module) in (nn.Linear, nn.ReLU, nn.ModuleList)
        if not original and not isinstance(module, LayeredNet):
            return False  # a layer with a parametrization has a class of its own, too
        if (
            module._forward_hooks
            or module._forward_pre_hooks
            or module._backward_hooks
            or module._backward_pre_hooks
        ):
            return False
    return not any(
        parameter._backward_hooks or parameter._post_accumulate_grad_hooks
        for parameter in net.parameters()
    )


def note_changes(module: nn.Module) -> None:
    """Notes for each network in ``module`` whether it is ``as_built``; slow, so once an epoch."""
    for net in module.modules():
        if isinstance(net, LayeredNet):
            net.unchanged = as_built(net)


def by_hand(net: nn.Module, *inputs: Tensor) -> tuple[Tensor, Pullback] | None:
    """A network's output and its pullback; None where autograd has to, as in mixed precision."""
    if not hasattr(net, "vjp") or torch.is_autocast_enabled(inputs[0].device.type):
        return None
    if isinstance(net, LayeredNet):
        unchanged = as_built(net) if net.unchanged is None else net.unchanged
        if not unchanged:
            return None
    vjp = cast(Callable[..., tuple[Tensor, Pullback] | None], net.vjp)
    return vjp(*inputs)


def loss_of(
    net: nn.Module, x: Tensor, error: Callable[[Tensor], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Backward | None]:
    """A loss of ``net``'s output, and what writes its gradients.

    error: gives the loss of an output and the gradient to it.
    """
    found = by_hand(net, x)
    if found is None:
        return error(net(x))[0], None
    output, pullback = found
    loss, grad = error(output)
    return loss, lambda: pullback(grad)


class ReLUNet(LayeredNet, nn.Sequential):
    """Linear layers with ReLUs between them."""

    def __init__(self, *modules: Any):
        nn.Sequential.__init__(self, *modules)
        self.activations = ["relu"] * (len(self) // 2)

    def linears(self) -> list[nn.Linear]:
        return [module for module in self if isinstance(module, nn.Linear)]


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


def _affine(layer: nn.Linear, x: Tensor) -> Tensor:
    """``W x + b`` ``[O, B]`` of x ``[I, B]``."""
    return torch.addmm(layer.bias.unsqueeze(1), layer.weight, x)


def _write_gradients(layer: nn.Linear, grad: Tensor, below: Tensor) -> None:
    """From the gradient to what the layer gave ``[O, B]``, and its input ``[I, B]``."""
    narrow = layer.in_features < _NARROW
    if layer.weight.requires_grad:
        layer.weight.grad = (below @ grad.T).T.contiguous() if narrow else grad @ below.T
    if layer.bias.requires_grad:
        layer.bias.grad = grad.sum(1)
