"""Behaviour cloning of whole stacks by maximum likelihood.

Member ``n`` learns the state-action pairs of dataset ``n``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.base import Actors, member_hyperparameters
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, HiddenSizes
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import Categorical, Distribution, distribution_for
from lightning_rl.nets.members import ActivationName, MemberMLP


@dataclass(frozen=True, config=STRICT, kw_only=True)
class CloneConfig:
    """Keys of cloned policies; ``configs/proxy_search.yaml`` explains them."""

    batch_size: ClassVar[None] = None  # every update is on all pairs
    hidden: HiddenSizes
    activation: ActivationName
    learning_rate: PositiveFloat
    num_updates: PositiveInt


class Clones(Actors):
    """``N`` policies that imitate.

    Discrete actions have a softmax, continuous ones a Gaussian with a learned deviation.

    Args:
        cfg: of the networks and their training.
        spec: of the task.
        seeds: the initialisation of member ``n`` is a function of ``seeds[n]``; nothing else is
            random.
        variation: learning rate, width and depth of each member.
    """

    distribution_class: type[Distribution]

    def __init__(
        self,
        cfg: CloneConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None = None,
    ):
        super().__init__(seeds)
        self.cfg = cfg
        self.distribution_class = distribution_for(spec.continuous)
        learning_rate, hidden, widths = member_hyperparameters(cfg, variation)
        outputs = self.distribution_class.output_size(spec.action_size)
        self.net = MemberMLP(spec.obs_size, hidden, outputs, cfg.activation)
        self.params = nn.Parameter(self.net.init(self.generators("clone"), widths))
        self.adam = MemberAdam(self.params, learning_rate)

    @torch.no_grad()
    def update(self, obs: Tensor, action: Tensor) -> Tensor:
        """One step down the mean negative log-likelihood; the losses ``[N]`` before it.

        action ``[N, K]`` or ``[N, K, A]``, obs ``[N, K, O]``.
        """
        output, pullback = self.net.vjp(self.params, obs)
        policy = self.distribution_class(output.flatten(0, 1))
        log_prob, score = scored(policy, action.flatten(0, 1))
        if self.params.grad is None:
            self.params.grad = torch.empty_like(self.params)
        pullback(score.view_as(output) / -obs.shape[1], self.params.grad)
        self.adam.step()
        return -log_prob.view(obs.shape[:2]).mean(1)

    def fit(self, obs: Tensor, action: Tensor) -> Tensor:
        """The config's number of updates on these pairs; the last loss ``[N]``."""
        for _ in range(self.cfg.num_updates):
            loss = self.update(obs, action)
        return loss

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        return self.distribution_class(self.net(self.params, obs)).sample(obs.new_zeros(()))

    def module(self, row: int) -> nn.Module:
        return self.net.module(self.params[row])


def scored(policy: Distribution, action: Tensor) -> tuple[Tensor, Tensor]:
    """``log_prob`` ``[B]`` of actions, and its gradient to the output ``[B, output_size]``."""
    if not isinstance(policy, Categorical):
        with torch.enable_grad():
            output = policy.output.detach().requires_grad_()
            log_prob = type(policy)(output).log_prob(action)
            (gradient,) = torch.autograd.grad(log_prob.sum(), output)
        return log_prob.detach(), gradient
    log_probs, chosen = policy.output.T.log_softmax(0), action.unsqueeze(0)
    log_prob = log_probs.gather(0, chosen).squeeze(0)
    # a one for the action that was chosen, minus the probabilities
    gradient = log_probs.exp_().neg_()
    return log_prob, gradient.scatter_add_(0, chosen, torch.ones_like(log_prob).unsqueeze(0)).T
