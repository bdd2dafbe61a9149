"""What upside-down RL and Pareto-conditioned networks share: a policy that is asked for something,
and its training by (weighted) supervised learning.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from lightning_rl.functional.upside_down import EPSILON
from lightning_rl.methods.base import Method
from lightning_rl.methods.compiling import differs, may_compile, one_by_one
from lightning_rl.nets.command import CommandPolicy, ScaledCommand
from lightning_rl.nets.layers import MovingAverage
from lightning_rl.rollouts.episode_buffer import FlatEpisodes


class Commanded(Method):
    """A policy that takes commands.

    Attributes:
        learner: the policy that is trained.
        policy: the one that plays: a moving average of the learner, or with tau 1 the learner.
    """

    network_names: ClassVar[Mapping[str, str]] = {"policy": "hidden"}
    learner: CommandPolicy
    policy: CommandPolicy

    def make_policies(
        self,
        net: nn.Module,
        scale: Sequence[float],
        guidance: float = 0.0,
        kind: type[CommandPolicy] = CommandPolicy,
    ) -> None:
        """Makes ``learner`` and ``policy`` of a network, which sees commands times ``scale``."""
        spec = self.spec
        scaled = ScaledCommand(net, scale, self.cfg.command_limit)
        self.learner = kind(scaled, spec.distribution(), spec.action_size, guidance)
        self.policy = self.learner
        if self.cfg.tau != 1:
            self.policy = copy.deepcopy(  # but for the normaliser, which both have
                self.learner, {id(self.normaliser): self.normaliser}
            ).requires_grad_(False)
        # the scales of commands are not averaged: they are set anew in each epoch
        self.average = MovingAverage(
            self.policy.get_submodule("net.net"),
            self.learner.get_submodule("net.net"),
            self.cfg.tau,
        )

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.learner.parameters(), self.cfg.learning_rate, fused=True)]

    def see_in_deviations(self, command: Tensor, condition: bool = True) -> None:
        """From now on networks see commands in standard deviations of these ``[M, C]``.

        condition: whether they see any.
        """
        scale = condition / (command.std(0, correction=0) + EPSILON)
        for policy in (self.learner, self.policy):
            policy.net.shift.copy_(command.mean(0))
            policy.net.scale.copy_(scale)

    def fit_policy(
        self, episodes: FlatEpisodes, index: Tensor, command: Tensor, weight: Tensor | None = None
    ) -> float:
        """The mean loss of updates on the steps ``[U, B]`` with commands ``[U, B, C]``.

        weight ``[M]``: of all steps.
        """
        examples = [command, episodes.action[index]]
        if weight is not None:
            examples.append(weight[index])
        rows = episodes.row[index]
        own_way = differs(self, Commanded, "update", "descend")
        if not own_way and may_compile(self, 0, self.learner.net.net):
            from lightning_rl.methods.upside_down.fused import update_policy

            losses = update_policy(self, episodes.observed(rows), *examples)
        else:
            losses = one_by_one(self.update, episodes, rows, *examples)
        return self.count_updates("train/policy_loss", losses)

    def update(
        self, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor | None = None
    ) -> Tensor:
        """One Adam step on the weighted negative log-likelihood of the actions taken; the loss."""
        loss = self.learner.negative_log_likelihood(obs, command, action, weight)
        loss = self.descend(0, loss, self.cfg.max_grad_norm)
        self.average.update()
        return loss
