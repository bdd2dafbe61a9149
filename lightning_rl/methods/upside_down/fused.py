"""The updates of upside-down RL as compiled loops.

The same as ``Commanded.update`` and ``CriticFit.update``, in one call for all of an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.compiled import compiled, one_thread
from lightning_rl.nets.compiling import unwrapped
from lightning_rl.nets.flat import FlatTraining, shape_of
from lightning_rl.nets.fused import (
    F,
    Learner,
    Net,
    backward,
    descend,
    fill,
    forward,
    net_of,
)
from lightning_rl.nets.fused_losses import categorical_loss, gaussian_loss, value_loss

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.critic import CriticFit
    from lightning_rl.methods.upside_down.method import Commanded, UpsideDown


def update_policy(
    method: Commanded, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor | None = None
) -> Tensor:
    """``Commanded.update`` on each of ``U`` minibatches; the losses ``[U]``.

    obs ``[U, B, O]``, command ``[U, B, C]``, action ``[U, B]`` or ``[U, B, A]``, weight ``[U, B]``.
    """
    scaled, normaliser, net = unwrapped(method.learner.net)
    assert scaled is not None
    if normaliser is not None:
        obs = normaliser(obs)
    if weight is None:
        weight = torch.ones_like(obs[..., 0])
    if not method.spec.continuous:
        action = action.unsqueeze(-1).float()
    command = scaled.scaled(command)
    action = method.learner.distribution_class.executed(action)
    optimizer = method.optimizers()[0].optimizer
    training = FlatTraining(net, optimizer, method.cfg.max_grad_norm, method.average)
    losses = np.empty(len(obs), F)
    with one_thread():
        _policy_updates(
            training.learner,
            net_of(shape_of(net), obs.shape[1]),
            training.step,
            method.spec.continuous,
            obs.numpy(),
            command.contiguous().numpy(),
            action.numpy(),
            weight.numpy(),
            losses,
        )
    training.finish(len(losses))
    return torch.from_numpy(losses)


@compiled
def _policy_updates(
    learner: Learner,
    net: Net,
    step: int,
    continuous: bool,
    obs: Any,
    command: Any,
    action: Any,
    weight: Any,
    losses: Any,
) -> None:
    for u in range(len(losses)):
        fill(net.inputs, obs[u])
        fill(net.command, command[u])
        forward(learner.params, net)
        if continuous:
            losses[u] = gaussian_loss(net.out, action[u], weight[u], net.grad)
        else:
            losses[u] = categorical_loss(net.out, action[u], weight[u], net.grad)
        backward(learner.params, net)
        descend(learner, net.gradient, step + u + 1)


def update_critic(
    method: UpsideDown, fit: CriticFit, obs: Tensor, target: Tensor, features: Tensor | None = None
) -> Tensor:
    """``CriticFit.update`` on each of ``U`` minibatches; the losses ``[U]``.

    obs ``[U, B, O]``, target ``[U, B]``, features ``[U, B, F]``.
    """
    _, normaliser, net = unwrapped(method.critic)
    if normaliser is not None:
        obs = normaliser(obs)
    if features is None:
        features = torch.empty(*target.shape, 0)
    optimizer = method.optimizers()[1].optimizer
    training = FlatTraining(net, optimizer, fit.critic_max_grad_norm)
    losses = np.empty(len(obs), F)
    with one_thread():
        _critic_updates(
            training.learner,
            net_of(shape_of(net), obs.shape[1]),
            training.step,
            obs.numpy(),
            target.numpy(),
            features.numpy(),
            losses,
        )
    training.finish(len(losses))
    return torch.from_numpy(losses)


@compiled
def _critic_updates(
    learner: Learner, net: Net, step: int, obs: Any, target: Any, features: Any, losses: Any
) -> None:
    for u in range(len(losses)):
        fill(net.inputs, obs[u])
        forward(learner.params, net)
        losses[u] = value_loss(net.out, target[u], features[u], net.grad)
        backward(learner.params, net)
        descend(learner, net.gradient, step + u + 1)
