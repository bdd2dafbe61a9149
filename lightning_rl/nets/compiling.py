"""When a policy that acts, or the updates of a network, can be compiled; else torch does it."""

from __future__ import annotations

from typing import Any

from torch import nn

from lightning_rl.core.checks import has_numba
from lightning_rl.core.parts import is_ours
from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.nets.command import CommandPolicy, ScaledCommand
from lightning_rl.nets.layers import LayeredNet
from lightning_rl.nets.normalised import Normalised, ObsNormaliser
from lightning_rl.nets.policies import Actor, Policy


def may_compile(actor: Actor) -> bool:
    """Whether it is one of our policies, with a network as built."""
    if type(actor) not in (Policy, CommandPolicy):
        return False
    if actor.distribution_class not in (Categorical, Gaussian):  # of several actions at once
        return False
    *_, net = unwrapped(actor.net)
    return as_built(net) and has_numba()


def unwrapped(net: Any) -> tuple[ScaledCommand | None, ObsNormaliser | None, Any]:
    """What scales a network's commands, its observations (or None), and the network itself."""
    scaled = normaliser = None
    if isinstance(net, ScaledCommand):
        scaled, net = net, net.net
    if isinstance(net, Normalised):
        normaliser, net = net.normaliser, net.net
    return scaled, normaliser, net


def as_built(net: nn.Module) -> bool:
    """Whether it is one of our networks of layers, with its original ones alone, without hooks."""
    if not isinstance(net, LayeredNet):
        return False
    for module in net.modules():
        original = type(module) in (nn.Linear, nn.ReLU, nn.ModuleList, nn.Sequential)
        ours = isinstance(module, LayeredNet) and is_ours(type(module))
        if not original and not ours:
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
