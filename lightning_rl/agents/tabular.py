"""Q-learning (Watkins 1989) and SARSA (Rummery & Niranjan 1994) on tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lightning_rl.agents.base import Agent, per_member
from lightning_rl.agents.replay import Transition
from lightning_rl.functional.curiosity import count_bonus
from lightning_rl.functional.value_learning import epsilon_after, epsilon_greedy, q_learning_target, sarsa_target


@dataclass(frozen=True)
class TabularSettings:
    """learning_rate: one for all members or one for each. count_beta: scale of the count-based bonus, 0 for none."""

    gamma: float
    learning_rate: float | Sequence[float]
    epsilon_init: float
    epsilon_min: float
    epsilon_decay: float
    count_beta: float = 0.0


class Tabular(Agent):
    """A table ``[N, O, A]`` for one-hot observations, zero at the start; learns from every step as it comes.

    sarsa: bootstrap from an action drawn by the exploring rule after the update's step, as in the earlier code (it is not the
    one that is taken next); else from the best.
    """

    member_tensors = ("table", "count", "learning_rate", "updates")

    def __init__(
        self, obs_size: int, num_actions: int, settings: TabularSettings, seeds: Sequence[int], sarsa: bool = False,
        device: str = "cpu",
    ):  # fmt: skip
        super().__init__(seeds, device)
        self.settings, self.sarsa = settings, sarsa
        members = len(self.seeds)
        self.table = torch.zeros(members, obs_size, num_actions, device=device)
        self.count = torch.zeros(members, obs_size, num_actions, device=device)
        self.learning_rate = per_member(settings.learning_rate, members, device).float()
        self._explore = self.noise("explore", (2,), "uniform")
        self._explore_next = self.noise("explore next", (2,), "uniform")
        self._epsilon = torch.zeros(members, device=device)
        self.updates = torch.zeros(members, dtype=torch.int64, device=device)

    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        s = self.settings
        self._epsilon = epsilon_after(episode, s.epsilon_init, s.epsilon_min, s.epsilon_decay)
        return epsilon_greedy(self._values(obs.unsqueeze(1)).squeeze(1), self._epsilon, self._explore.at(step))

    def greedy(self, obs: Tensor) -> Tensor:
        return self._values(obs).argmax(-1)

    def _values(self, obs: Tensor) -> Tensor:
        """Rows of the table for one-hot obs ``[N, K, O]``: ``[N, K, A]``."""
        cell = obs.argmax(-1)
        return self.table[torch.arange(len(self.table), device=self.table.device).unsqueeze(1), cell]

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor) -> None:
        del over
        obs, action, reward, discount, next_obs = transition
        place = (torch.arange(len(self.table), device=obs.device), obs.argmax(-1), action)
        if self.settings.count_beta:
            self.count[place] += 1
            reward = reward + count_bonus(self.count[place], self.settings.count_beta)
        next_q = self._values(next_obs.unsqueeze(1)).squeeze(1)
        if self.sarsa:
            next_action = epsilon_greedy(next_q, self._epsilon, self._explore_next.at(step))
            target = sarsa_target(reward, discount, next_q, next_action)
        else:
            target = q_learning_target(reward, discount, next_q)
        self.updates += active
        old = self.table[place]
        self.table[place] = torch.where(active, old + self.learning_rate * (target - old), old)

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

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self._epsilon = self._epsilon[rows]
