"""Double DQN (van Hasselt et al. 2016, arXiv 1509.06461), plain or dueling (Wang et al. 2016, arXiv 1511.06581).

Where we differ from the papers: the target network follows softly after every update, as in the earlier code of the
synthetic-environments paper; squared error; no gradient clipping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lightning_rl.agents.base import track
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.off_policy import OffPolicyAgent, OffPolicySettings
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import Transition
from lightning_rl.functional.value_learning import double_q_target, epsilon_after, epsilon_greedy
from lightning_rl.nets.values import MemberNet

_CACHE = 2**20  # bytes


@dataclass(frozen=True)
class DQNSettings(OffPolicySettings):
    """epsilon_*: see ``epsilon_after``."""

    epsilon_init: float
    epsilon_min: float
    epsilon_decay: float


class DDQN(OffPolicyAgent):
    """Members share ``net``, an architecture from observations to Q values ``[N, B, A]``; ``params`` fixes their start."""

    member_tensors = ("params", "target", "weight")
    member_parts: tuple[str, ...] = ("adam",)

    def __init__(
        self, net: MemberNet, obs_size: int, settings: DQNSettings, seeds: Sequence[int],
        params: Tensor | None = None, curiosity: ICM | None = None, device: str = "cpu",
    ):  # fmt: skip
        super().__init__(settings, obs_size, 0, seeds, curiosity, device)
        self.net, self.settings = net, settings
        self.params = (net.init(self.generators("initialisation")) if params is None else params).to(device)
        self.target = self.params.clone()
        self.adam = MemberAdam(self.params, self.learning_rate)
        self._explore = self.noise("explore", (2,), "uniform")
        self._at_once = max(1, _CACHE // (4 * max(self.batch_sizes) * sum(net.hidden)))

    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        s = self.settings
        epsilon = epsilon_after(episode, s.epsilon_init, s.epsilon_min, s.epsilon_decay)
        return epsilon_greedy(self.greedy_values(obs.unsqueeze(1)).squeeze(1), epsilon, self._explore.at(step))

    def greedy(self, obs: Tensor) -> Tensor:
        return self.greedy_values(obs).argmax(-1)

    @torch.no_grad()
    def greedy_values(self, obs: Tensor) -> Tensor:
        """Q values ``[N, K, A]`` of obs ``[N, K, O]``."""
        return self.net(self.params, obs)

    def update(self, batch: Transition, active: Tensor, step: int = 0) -> Tensor:
        del step
        losses, grads = [], []
        for rows in self._blocks():
            part = Transition(*(x[rows] for x in batch))
            loss, grad = self._gradient(self.params[rows], self.target[rows], part, self.weight[rows])
            losses.append(loss)
            grads.append(grad)
        self.adam.step(self.params, torch.cat(grads), active)
        track(self.target, self.params, self.settings.tau, active)
        return torch.cat(losses)

    def _blocks(self) -> list[slice]:
        """Members whose hidden layers fit the processor's cache together: elementwise work is several times faster there."""
        return [slice(n, n + self._at_once) for n in range(0, self.num_members, self._at_once)]

    @torch.no_grad()
    def _gradient(self, params: Tensor, target_params: Tensor, batch: Transition, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Losses ``[N]`` and their gradients ``[N, D]``: by hand, as autograd costs one member alone half of its time."""
        q, pullback = self.net.vjp(params, batch.obs)
        target = batch.reward
        if batch.discount.any():  # else every episode is one step, and half of the work would be times 0
            next_q, next_q_target = self.net(params, batch.next_obs), self.net(target_params, batch.next_obs)
            target = double_q_target(batch.reward, batch.discount, next_q, next_q_target)
        index = batch.action.unsqueeze(-1)
        error = q.gather(-1, index).squeeze(-1) - target
        slope = weight * error
        to_q = torch.zeros_like(q).scatter_(-1, index, 2 * slope.unsqueeze(-1))
        return (slope * error).sum(-1), pullback(to_q)[0]

    @property
    def num_updates(self) -> Tensor:
        return self.adam.num_steps

    def module(self, row: int) -> nn.Module:
        return self.net.module(self.params[row])

    def adopt(self, net: nn.Module) -> None:
        self.params.copy_(self.net.from_modules([net]))
        self.target.copy_(self.params)
