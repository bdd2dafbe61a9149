"""Q-learning (Watkins 1989) and SARSA (Rummery & Niranjan 1994) on tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import PositiveFloat
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.base import Agent, EpsilonGreedyConfig, Transition
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.curiosity import count_bonus
from lightning_rl.functional.value_learning import (
    epsilon_greedy,
    q_learning_target,
    sarsa_target,
)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class TabularConfig(EpsilonGreedyConfig):
    """Keys of QL and SARSA."""

    curiosity: Literal["none", "count"]
    count_beta: PositiveFloat


class QLearning(Agent):
    """A table ``[N, O, A]`` for one-hot observations, zero at the start.

    Learns from every step as it comes.
    """

    count: Tensor
    updates: Tensor
    _epsilon: Tensor

    def __init__(
        self,
        cfg: TabularConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None = None,
    ):
        super().__init__(seeds)
        self.cfg, members = cfg, len(self.seeds)
        table = torch.zeros(members, spec.obs_size, spec.action_size)
        self.table = nn.Parameter(table, requires_grad=False)
        self.register_buffer("count", torch.zeros_like(table))
        self.register_buffer("updates", torch.zeros(members, dtype=torch.int64))
        self.register_buffer("_epsilon", torch.zeros(members), persistent=False)
        self._explore = self.noise("explore", (2,), "uniform")
        self._explore_next = self.noise("explore next", (2,), "uniform")

    @classmethod
    def why_unsupported(cls, spec: EnvSpec) -> str | None:
        if spec.one_hot and not spec.continuous:
            return None
        return (
            "tables need one-hot observations and discrete actions; use a grid world, e.g. "
            "cliff or FrozenLake-v1"
        )

    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        self._epsilon = self.cfg.epsilon(episode)
        q = self._values(obs.unsqueeze(1)).squeeze(1)
        return epsilon_greedy(q, self._epsilon, self._explore.at(step))

    def greedy(self, obs: Tensor) -> Tensor:
        return self._values(obs).argmax(-1)

    def _values(self, obs: Tensor) -> Tensor:
        """Rows of the table for one-hot obs ``[N, K, O]``: ``[N, K, A]``."""
        return torch.bmm(obs, self.table)

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor | None) -> None:
        obs, action, reward, discount, next_obs = transition
        place = (torch.arange(len(self.table), device=obs.device), obs.argmax(-1), action)
        if self.cfg.curiosity == "count":
            self.count[place] += 1
            reward = reward + count_bonus(self.count[place], self.cfg.count_beta)
        next_q = self._values(next_obs.unsqueeze(1)).squeeze(1)
        target = self.target(reward, discount, next_q, step)
        learns = torch.ones_like(over) if active is None else active
        self.updates += learns
        old = self.table[place]
        self.table[place] = torch.where(learns, old + self.cfg.learning_rate * (target - old), old)

    def target(self, reward: Tensor, discount: Tensor, next_q: Tensor, step: int) -> Tensor:
        """The update target ``[N]`` of the step's action.

        Here with the highest of the next values ``[N, A]``.
        """
        return q_learning_target(reward, discount, next_q)

    @property
    def num_updates(self) -> Tensor:
        return self.updates

    def module(self, row: int) -> nn.Module:
        """A linear layer: its product with a one-hot observation is a row of the table."""
        linear = nn.Linear(self.table.shape[1], self.table.shape[2], bias=False)
        linear.weight.data.copy_(self.table[row].T)
        return linear

    def adopt(self, net: nn.Module) -> None:
        (weight,) = net.parameters()
        self.table.copy_(weight.detach().T)


class Sarsa(QLearning):
    """SARSA as in the earlier code: the target's next action is drawn anew, epsilon-greedily.

    It is not the one then taken.
    """

    def target(self, reward: Tensor, discount: Tensor, next_q: Tensor, step: int) -> Tensor:
        next_action = epsilon_greedy(next_q, self._epsilon, self._explore_next.at(step))
        return sarsa_target(reward, discount, next_q, next_action)
