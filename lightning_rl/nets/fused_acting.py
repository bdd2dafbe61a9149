"""A policy that acts, as compiled functions: what ``Policy.act`` and ``CommandPolicy.act`` do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lightning_rl.core.compiled import compiled
from lightning_rl.core.types import Array, FloatArray
from lightning_rl.functional.distributions import Gaussian
from lightning_rl.nets.acting import Act
from lightning_rl.nets.command import CommandPolicy
from lightning_rl.nets.compiling import unwrapped
from lightning_rl.nets.flat import flat, shape_of, weights_of
from lightning_rl.nets.fused import F, Net, fill, forward, net_of, tanh
from lightning_rl.nets.fused_losses import LOG_STD_MAX, LOG_STD_MIN
from lightning_rl.nets.policies import Policy


class Acting(NamedTuple):
    """Parameters ``[D]``, and how a command ``[C]`` enters, as in ``ScaledCommand``.

    usual: intercept and slope of the usual command. guided: how many of the outputs guidance moves.
    """

    params: Any
    shift: Any
    scale: Any
    limit: Any
    usual: Any
    guided: int


def acting(policy: Policy) -> Act:
    """The policy with the weights that it has now."""
    scaled, normaliser, net = unwrapped(policy.net)
    shift = scale = np.zeros(0, F)
    limit = np.inf
    if scaled is not None:
        shift, scale, limit = scaled.shift.numpy(), scaled.scale.numpy(), scaled.limit
    normalise = None if normaliser is None else normaliser.frozen()
    usual, guidance = np.zeros(2, F), 0.0
    if isinstance(policy, CommandPolicy):
        usual, guidance = policy.usual.numpy(), float(policy.guidance)
    actor = Acting(flat(weights_of(net)), shift, scale, F(limit), usual, policy.action_size)
    shape = shape_of(net)
    sample = _continuous if policy.distribution_class is Gaussian else _discrete

    def act(
        obs: FloatArray,
        command: FloatArray | None,
        noise: FloatArray,
        guided: FloatArray | None,
    ) -> Array:
        batch = len(obs)
        if normalise is not None:
            obs = normalise(obs)
        if command is None:
            command = np.zeros((batch, 0), F)
        if guided is None:
            guided = np.full(batch, guidance, F)
        return sample(actor, net_of(shape, batch), obs, command, noise, guided)

    return act


def act_once(policy: Policy) -> None:
    """On zeros."""
    shape = shape_of(unwrapped(policy.net)[-1])
    obs, command, noise = (
        np.zeros((1, size), F) for size in (shape.widths[0], shape.command_size, policy.action_size)
    )
    acting(policy)(obs, command, noise, None)


@compiled
def _discrete(actor: Acting, net: Net, obs: Any, command: Any, noise: Any, guidance: Any) -> Any:
    """Actions ``[B]``."""
    output = _outputs(actor, net, obs, command, guidance)
    action = np.zeros(len(obs), np.int64)
    for k in range(len(obs)):
        for a in range(1, len(output)):
            best = action[k]
            if output[a, k] + noise[k, a] > output[best, k] + noise[k, best]:
                action[k] = a
    return action


@compiled
def _continuous(actor: Acting, net: Net, obs: Any, command: Any, noise: Any, guidance: Any) -> Any:
    """Actions ``[B, A]``."""
    output = _outputs(actor, net, obs, command, guidance)
    batch, size = noise.shape
    action = np.empty((batch, size), F)
    for k in range(batch):
        for a in range(size):
            log_std = min(max(output[size + a, k], LOG_STD_MIN), LOG_STD_MAX)
            action[k, a] = tanh(output[a, k]) + np.exp(log_std) * noise[k, a]
    return action


@compiled
def _outputs(actor: Acting, net: Net, obs: Any, command: Any, guidance: Any) -> Any:
    """``[O, B]``, guided away from those for the usual command."""
    fill(net.inputs, obs)
    _ask(actor, net, command)
    forward(actor.params, net)
    if not guidance.any():
        return net.out
    free = net.out.copy()
    _ask(actor, net, _usual(actor, command))
    forward(actor.params, net)
    for a in range(actor.guided):
        for k in range(len(obs)):
            free[a, k] += guidance[k] * (free[a, k] - net.out[a, k])
    return free


@compiled
def _ask(actor: Acting, net: Net, command: Any) -> None:
    for k in range(len(command)):
        for i in range(len(actor.shift)):
            scaled = (command[k, i] - actor.shift[i]) * actor.scale[i]
            net.command[i, k] = min(max(scaled, -actor.limit), actor.limit)


@compiled
def _usual(actor: Acting, command: Any) -> Any:
    usual = command.copy()
    for k in range(len(command)):
        horizon = command[k, 1:].sum()
        usual[k, 0] = actor.usual[0] + actor.usual[1] * horizon
    return usual
