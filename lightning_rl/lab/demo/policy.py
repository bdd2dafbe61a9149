"""A policy as ``policy.js`` reads it."""

from __future__ import annotations

import base64
from typing import Any

from torch import Tensor, nn

from lightning_rl.core.errors import UserError
from lightning_rl.functional.command_rule import Decrease
from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.methods.agents import GreedyActor
from lightning_rl.methods.base import Method
from lightning_rl.nets.command import CommandPolicy, ScaledCommand
from lightning_rl.nets.compiling import unwrapped
from lightning_rl.nets.layers import LayeredNet
from lightning_rl.nets.normalised import LIMIT
from lightning_rl.nets.policies import Policy

TASKS = {
    "LunarLander-v3": "lander",
    "CartPole-v0": "cartpole",
    "CartPole-v1": "cartpole",
    "Pendulum-v1": "pendulum",
}
"""Environments that the page has, by Gymnasium's id."""
_ACTIVATIONS: dict[type[nn.Module], str] = {nn.ReLU: "relu", nn.Tanh: "tanh"}
_ENDLESS = 1e30  # JSON has no infinity


def exported(method: Method, name: str) -> dict[str, Any]:
    """All that acts of the agent called ``name``; UserError for one that the page cannot play."""
    spec = method.spec
    task = TASKS.get(str(spec.env))
    if task is None or spec.sparse or spec.repeat != 1:
        raise UserError(
            f"demo: '{name}' is of {method.gamename}, the page has lunarlander, cartpole and "
            "pendulum; name agents of these"
        )
    policy = method.policy
    about: dict[str, Any] = {
        "gamename": method.gamename,
        "task": task,
        "horizon": spec.horizon,
        "actions": _kind_of_actions(policy, spec.continuous),
        "asks": False,
    }
    if spec.continuous:
        space: Any = spec.action_space
        about["range"] = [float(space.low[0]), float(space.high[0])]
    scaled, normaliser, net = unwrapped(getattr(policy, "net", None))
    if type(policy) is CommandPolicy and scaled is not None:
        about |= _command(method, policy, scaled, name)
    if normaliser is not None:
        shift, scale = normaliser.shift_and_scale()
        about["seen"] = {"shift": shift.tolist(), "scale": scale.tolist(), "limit": LIMIT}
    layers = None if about["actions"] is None else _layers(net)
    if layers is None:
        raise UserError(
            f"demo: the page cannot play the {method.implementation} of '{name}': it has linear "
            "layers with relu or tanh; try RCP-A-lunarlander"
        )
    return about | layers


def _kind_of_actions(policy: nn.Module, continuous: bool) -> str | None:
    """What the output of its network makes of actions; None: something that the page has not."""
    if type(policy) is GreedyActor:
        return "squashed" if continuous else "highest"
    if isinstance(policy, Policy) and type(policy) in (Policy, CommandPolicy):
        kinds = {Categorical: "drawn", Gaussian: "normal"}
        return kinds.get(policy.distribution_class)
    return None


def _command(
    method: Method, policy: CommandPolicy, net: ScaledCommand, name: str
) -> dict[str, Any]:
    """How commands enter the network, which obtains which return, and how they go on."""
    calibration = method.calibrated()
    if calibration is None:
        raise UserError(
            f"demo: '{name}' cannot be asked for returns yet; lightning-rl eval {name} --calibrate"
        )
    columns = (calibration.asked, calibration.first, calibration.guidance)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "asks": True,
        "scale": net.scale.tolist(),
        "shift": net.shift.tolist(),
        "limit": min(net.limit, _ENDLESS),
        "usual": policy.usual.tolist(),
        "following": list(method.first_command() or ())[1:],
        "rule": _rule(method, name),
        "calibration": [
            {"asked": asked, "first": first, "guidance": guidance}
            for asked, first, guidance in rows
        ],
    }


def _rule(method: Method, name: str) -> dict[str, float] | None:
    """How a command goes on after a step; None: it stays."""
    rule = method.command_rule()
    if rule is None:
        return None
    if not isinstance(rule, Decrease):
        raise UserError(
            f"demo: the command {method.cfg.command} of '{name}' goes on by code of its own, which "
            "the page has not; train with command_rule=hold"
        )
    highest = min(rule.highest, _ENDLESS)
    return {"gamma": rule.gamma, "highest": highest, "countsSteps": rule.counts_steps}


def _layers(net: Any) -> dict[str, Any] | None:
    """The layers of a network and what is between them; None for another kind of network."""
    if isinstance(net, LayeredNet):
        linears = net.linears()
        about: dict[str, Any] = {"activations": list(net.activations), "gatedLayers": 0}
        if net.gate_sizes:
            *linears, gates = linears
            about["gates"] = _linear(gates)
            about["gateScale"], about["gatedLayers"] = net.gate_scale, len(net.gate_sizes)
        return about | {"layers": [_linear(layer) for layer in linears]}
    if not isinstance(net, nn.Sequential):
        return None
    linears = [module for module in net if isinstance(module, nn.Linear)]
    between = [module for module in net if not isinstance(module, nn.Linear)]
    activations = [_ACTIVATIONS.get(type(module)) for module in between]
    if None in activations or len(linears) != len(activations) + 1:
        return None
    return {
        "activations": activations,
        "gatedLayers": 0,
        "layers": [_linear(layer) for layer in linears],
    }


def _linear(layer: nn.Linear) -> dict[str, str]:
    """Weights ``[O, I]`` and biases ``[O]``, row by row, little endian in single precision."""
    return {name: _text(getattr(layer, name)) for name in ("weight", "bias")}


def _text(values: Tensor) -> str:
    return base64.b64encode(values.detach().numpy().astype("<f4").tobytes()).decode()
