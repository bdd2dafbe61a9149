"""Intrinsic curiosity (Pathak et al. 2017, arXiv 1705.05363): the error of a forward model of learned features is the reward.

As in the earlier code of the synthetic-environments paper: two-action tasks use one cross-entropy like all others (it used
the binary form, the same function with half the logits), gradients reach the encoder through both sides of the forward error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lightning_rl.agents.base import value_and_grad
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import Transition
from lightning_rl.functional.curiosity import forward_error, inverse_loss
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.stacked import Stacked

_BLOCKS = 4


@dataclass(frozen=True)
class ICMSettings:
    """beta: weight of the forward loss against the inverse one. eta: scale of the reward."""

    learning_rate: float = 1e-4
    beta: float = 0.2
    eta: float = 0.5
    hidden_size: int = 128
    feature_size: int = 32


class ICM(Stacked):
    """Encoder, inverse model and forward model of ``N`` members in one block, one Adam over all.

    action_size: number of discrete actions, or of action dimensions.
    """

    member_tensors = ("params",)
    member_parts = ("adam",)

    def __init__(
        self, obs_size: int, action_size: int, continuous: bool, settings: ICMSettings, generators: Sequence[torch.Generator],
        device: str = "cpu",
    ):  # fmt: skip
        self.settings, self.action_size, self.continuous = settings, action_size, continuous
        width, features = settings.hidden_size, settings.feature_size
        self._encoder = MemberMLP(obs_size, (width, width), features, "leakyrelu")
        self._inverse = MemberMLP(2 * features, (width, width), action_size, "relu")
        self._enter = MemberMLP(features + action_size, (width, width), width, "leakyrelu")
        # A residual block: Linear and leaky ReLU on [x, a], Linear on [that, a], added to x.
        self._block = [
            (MemberMLP(width + action_size, (), width), MemberMLP(width + action_size, (), width)) for _ in range(_BLOCKS)
        ]
        self._leave = MemberMLP(width + action_size, (width,), features, "leakyrelu")
        nets = [self._encoder, self._inverse, self._enter, *(net for pair in self._block for net in pair), self._leave]
        self._sizes = [net.size for net in nets]
        self.params = torch.cat([net.init(generators) for net in nets], dim=1).to(device)
        rate = torch.full((len(self.params),), settings.learning_rate, device=device)
        self.adam = MemberAdam(self.params, rate)

    def _predict(self, params: Tensor, batch: Transition) -> tuple[Tensor, Tensor]:
        """(inverse loss, forward error), each ``[N, B]``."""
        encoder, inverse, enter, *blocks, leave = params.split(self._sizes, dim=1)
        action = batch.action if self.continuous else F.one_hot(batch.action, self.action_size).to(batch.obs.dtype)
        before, after = self._encoder(encoder, batch.obs), self._encoder(encoder, batch.next_obs)
        told = inverse_loss(self._inverse(inverse, torch.cat([before, after], -1)), batch.action)
        x = self._enter(enter, torch.cat([before, action], -1))
        for k, (first, second) in enumerate(self._block):
            z = F.leaky_relu(first(blocks[2 * k], torch.cat([x, action], -1)))
            x = x + second(blocks[2 * k + 1], torch.cat([z, action], -1))
        predicted = self._leave(leave, torch.cat([x, action], -1))
        return told, forward_error(predicted, after)

    def learn(self, batch: Transition, weight: Tensor, active: Tensor) -> Tensor:
        """The bonus ``[N, B]`` for a batch, before one step of learning on it; weight ``[N, B]`` averages over the batch."""
        bonus = []

        def loss(params: Tensor) -> Tensor:
            told, error = self._predict(params, batch)
            bonus.append(self.settings.eta * error.detach())
            beta = self.settings.beta
            return (weight * ((1 - beta) * told + beta * error)).sum(-1)

        _, grad = value_and_grad(loss, self.params)
        self.adam.step(self.params, grad, active)
        return bonus[0]
