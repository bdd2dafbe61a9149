"""Networks of torch as the flat arrays that compiled functions work on, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.types import FloatArray
from lightning_rl.nets.compiling import unwrapped
from lightning_rl.nets.fused import TANH, Learner, Shape
from lightning_rl.nets.layers import LayeredNet, MovingAverage
from lightning_rl.nets.members import LEAK, MemberMLP

Pair = tuple[Tensor, Tensor]
"""Weight ``[O, I]`` and bias ``[O]`` of a layer, or what an optimizer keeps of them."""


def shape_of(net: LayeredNet) -> Shape:
    """What the network computes."""
    *layers, last = net.linears()
    command_size = 0
    if net.gate_sizes:
        command_size = last.in_features
    else:
        layers.append(last)
    return Shape(
        widths=(layers[0].in_features, *(layer.out_features for layer in layers)),
        slopes=tuple(TANH if each == "tanh" else 0.0 for each in net.activations),
        num_gated=len(net.gate_sizes),
        command_size=command_size,
        gate_scale=net.gate_scale,
    )


_SLOPES = {"tanh": TANH, "relu": 0.0, "leakyrelu": LEAK}


def shape_of_members(net: MemberMLP) -> Shape:
    """What a network of members computes, which must be ``compilable``.

    A row of its block ``[N, D]`` is flat as it is.
    """
    slopes = (_SLOPES[net.activation],) * len(net.hidden)
    return Shape((net.in_size, *net.hidden, net.out_size), slopes)


@torch.no_grad()
def flat(pairs: Sequence[Pair]) -> FloatArray:
    """``[D]``: of each layer ``[I + 1, O]``, the bias last."""
    blocks = [torch.cat([weight.T, bias.unsqueeze(0)]).flatten() for weight, bias in pairs]
    return torch.cat(blocks).numpy()


@torch.no_grad()
def write_back(array: FloatArray, pairs: Sequence[Pair]) -> None:
    """The inverse of ``flat``, into the tensors."""
    sizes = [weight.numel() + bias.numel() for weight, bias in pairs]
    for block, (weight, bias) in zip(torch.from_numpy(array).split(sizes), pairs, strict=True):
        rows = block.view(-1, len(bias))
        weight.copy_(rows[:-1].T)
        bias.copy_(rows[-1])


def weights_of(net: LayeredNet) -> list[Pair]:
    """Weight and bias of each layer."""
    return [(layer.weight, layer.bias) for layer in net.linears()]


class FlatTraining:
    """A network, its optimizer and its moving average as compiled updates take and change them.

    Attributes:
        learner: copies as arrays; ``finish`` writes them back.
        step: how many steps Adam has taken.
    """

    def __init__(
        self,
        net: LayeredNet,
        optimizer: torch.optim.Optimizer,
        max_grad_norm: float | None,
        average: MovingAverage | None = None,
    ):
        self._weights = weights_of(net)
        self._optimizer: Any = optimizer
        self._states = [optimizer.state[parameter] for pair in self._weights for parameter in pair]
        for parameter, state in zip(itertools.chain(*self._weights), self._states, strict=True):
            if not state:
                state["step"] = torch.zeros(())
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        self.step = int(self._states[0]["step"])
        self._average: list[Pair] = []
        params = flat(self._weights)
        following, tau = params, 0.0
        if average is not None and average.average is not average.learned:
            self._average = weights_of(unwrapped(average.average)[-1])
            following, tau = flat(self._average), average.tau
        group = optimizer.param_groups[0]
        self.learner = Learner(
            params=params,
            average=following,
            exp_avg=flat(self._moments("exp_avg")),
            exp_avg_sq=flat(self._moments("exp_avg_sq")),
            rate=float(group["lr"]),
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            eps=group["eps"],
            max_grad_norm=math.inf if max_grad_norm is None else max_grad_norm,
            tau=tau,
        )

    def _moments(self, name: str) -> list[Pair]:
        found = [state[name] for state in self._states]
        return list(zip(found[::2], found[1::2], strict=True))

    def finish(self, updates: int) -> None:
        """Writes back what so many updates have changed."""
        write_back(self.learner.params, self._weights)
        write_back(self.learner.exp_avg, self._moments("exp_avg"))
        write_back(self.learner.exp_avg_sq, self._moments("exp_avg_sq"))
        if self._average:
            write_back(self.learner.average, self._average)
        for state in self._states:
            state["step"] += updates
        self._optimizer._opt_called = True  # or schedulers warn that it has made no step
