"""Double DQN, plain or dueling.

Double DQN: van Hasselt et al. 2016, arXiv 1509.06461. Dueling: Wang et al. 2016, arXiv 1511.06581.

Where we differ from the papers: the target network follows softly after every update, as in the
earlier code of the synthetic-environments paper; squared error, and no gradient clipping, unless
keys say otherwise. With ``double: false`` it is DQN (Mnih et al. 2015).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.base import (
    EpsilonGreedyConfig,
    Progress,
    Transition,
    member_hyperparameters,
)
from lightning_rl.agents.compiling import may_compile
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import OffPolicyAgent, OffPolicyConfig, anything_follows, track
from lightning_rl.agents.stack import frozen
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, ImageConfig, Width
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.value_learning import (
    double_q_target,
    epsilon_greedy,
)
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.values import DuelingNet, MemberNet


@dataclass(frozen=True, config=STRICT, kw_only=True)
class DDQNConfig(EpsilonGreedyConfig, OffPolicyConfig, ImageConfig):
    """Keys of DDQN."""

    train_interval: PositiveInt
    double: bool
    loss: Literal["squared", "huber"]
    max_grad_norm: PositiveFloat | None

    def net(self, spec: EnvSpec, hidden: tuple[int, ...]) -> MemberNet:
        """The architecture of the Q values."""
        return MemberMLP(spec.obs_size, hidden, spec.action_size, self.activation)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class DuelingDDQNConfig(DDQNConfig):
    """Keys of DuelingDDQN."""

    feature_size: Width

    def net(self, spec: EnvSpec, hidden: tuple[int, ...]) -> MemberNet:
        return DuelingNet(
            spec.obs_size, hidden, spec.action_size, self.feature_size, self.activation
        )


class DDQN(OffPolicyAgent):
    """``net`` maps observations to Q values ``[N, B, A]``.

    Its parameters are ``params`` ``[N, D]``.
    """

    actions = "discrete"
    net: Any  # a MemberNet, or one around it
    explore = staticmethod(epsilon_greedy)

    def __init__(
        self,
        cfg: DDQNConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None = None,
    ):
        super().__init__(cfg, spec, seeds, variation, vectors=False)
        learning_rate, hidden, widths = member_hyperparameters(cfg, variation)
        self.net = cfg.net(spec, hidden)
        if spec.frames is not None:
            from lightning_rl.nets.member_images import encoded

            self.net = encoded(cfg, spec, hidden)
        if spec.masked:
            from lightning_rl.nets.masked import MaskedMemberNet, epsilon_greedy_of_possible

            self.net, self.explore = MaskedMemberNet(self.net), epsilon_greedy_of_possible
        self.params = nn.Parameter(self.net.init(self.generators("initialisation"), widths))
        self.target = frozen(self.params)
        self.adam = MemberAdam(self.params, learning_rate, max_grad_norm=cfg.max_grad_norm)
        self.explore_noise = self.noise("explore", (2,), "uniform")
        layers_of_one = 4 * max(self.batch_sizes) * max(1, sum(hidden))  # bytes
        self._members_per_block = max(1, 2**20 // layers_of_one)  # of a cache of 1 MB

    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        q = self.greedy_values(obs.unsqueeze(1)).squeeze(1)
        return self.explore(q, self.cfg.epsilon(episode), self.explore_noise.at(step))

    def play(self, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
        if type(self) is not DDQN or not self.compiles:
            return None
        from lightning_rl.agents import fused_loop

        return fused_loop.play(self, envs, progress, most)

    def greedy(self, obs: Tensor) -> Tensor:
        return self.greedy_values(obs).argmax(-1)

    @torch.no_grad()
    def greedy_values(self, obs: Tensor) -> Tensor:
        """Q values ``[N, K, A]`` of obs ``[N, K, O]``."""
        return self.net(self.params, obs)

    @property
    def compiles(self) -> bool:
        """Whether its updates are compiled."""
        return may_compile(self, self.net, DDQN)

    def learn_from_replay(self, noise: Tensor, active: Tensor | None, step: int) -> None:
        if (step + 1) % self.cfg.train_interval:
            return
        if not self.compiles:
            super().learn_from_replay(noise, active, step)
            return
        from lightning_rl.agents import fused_dqn

        fused_dqn.learn(self, noise, active)

    def update(self, batch: Transition, active: Tensor | None, step: int) -> Tensor:
        if self.params.grad is None:
            self.params.grad = torch.empty_like(self.params)
        grad = self.params.grad
        losses = [self._gradient(rows, batch, grad[rows]) for rows in self._blocks()]
        self.adam.step(active=active)
        track(self.target, self.params.data, self.cfg.tau, active)
        return torch.cat(losses)

    def _blocks(self) -> list[slice]:
        """Members whose hidden layers fit the processor's cache together.

        Elementwise work is several times faster there.
        """
        members = self.num_members
        if self.device.type != "cpu":
            return [slice(0, members)]
        count = math.ceil(members / self._members_per_block)
        each = math.ceil(members / count)  # as equal blocks as they get
        return [slice(n, n + each) for n in range(0, members, each)]

    @torch.no_grad()
    def _gradient(self, rows: slice, batch: Transition, into: Tensor) -> Tensor:
        """Losses of the members ``rows``; writes their gradients ``into``.

        By hand, as autograd costs one member half of its time.
        """
        obs, action, reward, discount, next_obs = (each[rows] for each in batch)
        params = self.params.data[rows]
        q, pullback = self.net.vjp(params, obs)
        target = reward
        if anything_follows(discount):
            next_q = next_q_target = self.net(self.target[rows], next_obs)
            if self.cfg.double:
                next_q = self.net(params, next_obs)
            target = double_q_target(reward, discount, next_q, next_q_target)
        index = action.unsqueeze(-1)
        error = q.gather(-1, index).squeeze(-1) - target
        if self.cfg.loss == "huber":
            slope = error.clamp(-1, 1)
            loss = slope * (error - slope / 2)
        else:
            slope = 2 * error
            loss = error.square()
        weight = self.weight[rows]
        grad = torch.zeros_like(q).scatter_(-1, index, (weight * slope).unsqueeze(-1))
        pullback(grad, into)
        return (weight * loss).sum(-1)

    def module(self, row: int) -> nn.Module:
        return self.net.module(self.params[row])

    @torch.no_grad()
    def adopt(self, net: nn.Module) -> None:
        self.params.copy_(self.net.from_modules([net]))
        self.target.copy_(self.params)
