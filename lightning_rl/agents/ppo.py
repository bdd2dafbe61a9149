"""PPO with a clipped objective (Schulman et al. 2017, arXiv 1707.06347), for discrete and continuous actions.

Two recipes in one. ``standardise: advantages`` is the common one: generalised advantages, time limits bootstrap,
minibatches. ``standardise: returns`` is that of the synthetic-environments paper: Monte-Carlo returns, standardised, are
the critic's target, the advantage is what the critic missed, full batches. There time limits end the return, as its
critic, which knows standardised returns only, cannot continue it (the earlier code let returns leak into the next episode).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_rl.agents.base import Agent, per_member, value_and_grad
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import Transition
from lightning_rl.core.contents import like
from lightning_rl.functional.distributions import Categorical, Distribution, FreeGaussian
from lightning_rl.functional.ppo import clipped_surrogate, generalised_advantage, standardised
from lightning_rl.functional.returns import discounted_returns
from lightning_rl.nets.members import MemberMLP


@dataclass(frozen=True)
class PPOSettings:
    """rollout_steps: decisions of each member between updates. batch_size: of minibatches, None for full batches.

    gae_lambda: of the generalised advantage. std_init: of Gaussian policies. max_grad_norm: of the gradient.
    """

    gamma: float
    learning_rate: float | Sequence[float]
    rollout_steps: int
    epochs: int
    batch_size: int | None
    clip: float
    value_coef: float
    entropy_coef: float
    standardise: Literal["advantages", "returns"]
    gae_lambda: float = 0.95
    std_init: float = 0.5
    max_grad_norm: float | None = None


class MeanAndStd(nn.Module):
    """A network of means beside log standard deviations that are the same everywhere: ``[..., 2 A]``, for ``FreeGaussian``."""

    def __init__(self, mean: nn.Module, log_std: Tensor):
        super().__init__()
        self.mean, self.log_std = mean, nn.Parameter(log_std.clone())

    def forward(self, obs: Tensor) -> Tensor:
        mean = self.mean(obs)
        return torch.cat([mean, self.log_std.expand_as(mean)], dim=-1)


class PPO(Agent):
    """actor: an architecture to logits or, continuous, to means before the tanh; critic: to one value. starts: their parameters.

    One block holds actor, critic and the logarithm of the standard deviations (the earlier code learned these directly).
    """

    member_tensors = ("params", "obs", "next_obs", "action", "reward", "discount", "over", "log_prob")
    member_parts: tuple[str, ...] = ("adam",)

    def __init__(
        self, actor: MemberMLP, critic: MemberMLP, continuous: bool, settings: PPOSettings, seeds: Sequence[int],
        curiosity: ICM | None = None, device: str = "cpu", starts: tuple[Tensor, Tensor] | None = None,
    ):  # fmt: skip
        super().__init__(seeds, device)
        self.actor, self.critic, self.continuous = actor, critic, continuous
        self.settings, self.curiosity = settings, curiosity
        self.distribution_class: type[Distribution] = FreeGaussian if continuous else Categorical
        count, steps, size = len(self.seeds), settings.rollout_steps, actor.out_size
        if settings.batch_size is not None and steps % settings.batch_size:
            raise ValueError(f"rollout_steps {steps} is no multiple of batch_size {settings.batch_size}")
        blocks = starts or (actor.init(self.generators("actor")), critic.init(self.generators("critic")))
        log_std = torch.full((count, size if continuous else 0), math.log(settings.std_init))
        self.params = torch.cat([*blocks, log_std], dim=1).to(device)
        self._sizes = [actor.size, critic.size, log_std.shape[1]]
        rates = per_member(settings.learning_rate, count, device)
        self.adam = MemberAdam(self.params, rates, max_grad_norm=settings.max_grad_norm)
        self.obs, self.next_obs = torch.zeros(2, count, steps, actor.in_size, device=device)
        kind = torch.float32 if continuous else torch.int64
        self.action = torch.zeros(count, steps, *([size] if continuous else []), dtype=kind, device=device)
        self.reward, self.discount, self.log_prob = torch.zeros(3, count, steps, device=device)
        self.over = torch.zeros(count, steps, dtype=torch.bool, device=device)
        self._explore = self.noise("explore", (size,), "normal" if continuous else "gumbel")
        self._shuffle = self.noise("shuffle", (steps,), "uniform")
        self._last_log_prob = torch.zeros(count, device=device)
        if curiosity is not None:
            self.member_parts = (*self.member_parts, "curiosity")

    def layout(self, members: int | str, num_actions: int) -> dict[str, Any]:
        action = like(self.action, members) if self.continuous else like(self.action, members, high=num_actions - 1)
        return {**super().layout(members, num_actions), "action": action}

    def _output(self, params: Tensor, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits or means ``[N, B, A]``, and log standard deviations ``[N, 1, A]`` (none for logits)."""
        actor, _, log_std = params.split(self._sizes, dim=1)
        out = self.actor(actor, obs)
        return (out.tanh() if self.continuous else out), log_std.unsqueeze(1)

    def _log_prob_and_entropy(self, out: Tensor, log_std: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        if self.continuous:
            z = (action - out) / log_std.exp()
            log_prob = (-0.5 * z.square() - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)
            entropy = (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1).expand_as(log_prob)
            return log_prob, entropy
        log_probs = out.log_softmax(-1)
        return log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), -(log_probs.exp() * log_probs).sum(-1)

    def _value(self, params: Tensor, obs: Tensor) -> Tensor:
        _, critic, _ = params.split(self._sizes, dim=1)
        return self.critic(critic, obs).squeeze(-1)

    @torch.no_grad()
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        out, log_std = self._output(self.params, obs.unsqueeze(1))
        noise = self._explore.at(step).unsqueeze(1)
        action = out + log_std.exp() * noise if self.continuous else (out + noise).argmax(-1)
        self._last_log_prob = self._log_prob_and_entropy(out, log_std, action)[0].squeeze(1)
        return action.squeeze(1)

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        out, _ = self._output(self.params, obs)
        return out if self.continuous else out.argmax(-1)

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor) -> None:
        place = step % self.settings.rollout_steps
        self.obs[:, place], self.action[:, place], self.reward[:, place] = transition.obs, transition.action, transition.reward
        self.discount[:, place], self.next_obs[:, place] = transition.discount, transition.next_obs
        self.over[:, place], self.log_prob[:, place] = over, self._last_log_prob
        if place == self.settings.rollout_steps - 1:
            self.update(active, step // self.settings.rollout_steps)

    def update(self, active: Tensor, number: int) -> None:
        """Learns from the roll-out, ``epochs`` times over; number: of the update, from 0."""
        s = self.settings
        reward = self.reward
        if self.curiosity is not None:
            batch = Transition(self.obs, self.action, self.reward, self.discount, self.next_obs)
            reward = reward + self.curiosity.learn(batch, torch.full_like(reward, 1 / s.rollout_steps), active)
        with torch.no_grad():
            if s.standardise == "returns":
                target, advantage = standardised(discounted_returns(reward, s.gamma, self.over)), None
            else:
                value, next_value = self._value(self.params, self.obs), self._value(self.params, self.next_obs)
                advantage = generalised_advantage(reward, self.discount, self.over, value, next_value, s.gae_lambda)
                target = advantage + value
        for epoch in range(s.epochs):
            for rows in self._minibatches(number * s.epochs + epoch):
                self._step(rows, target, advantage, active)

    def _minibatches(self, index: int) -> list[Tensor]:
        """Rows ``[N, B]`` of each minibatch of an epoch, shuffled for each member."""
        if self.settings.batch_size is None:
            steps = torch.arange(self.settings.rollout_steps, device=self.device)
            return [steps.expand(len(self.params), -1)]
        return list(self._shuffle.at(index).argsort(dim=1).split(self.settings.batch_size, dim=1))

    def _step(self, rows: Tensor, target: Tensor, advantage: Tensor | None, active: Tensor) -> None:
        s, member = self.settings, torch.arange(len(rows), device=rows.device).unsqueeze(1)
        obs, action, old, goal = (x[member, rows] for x in (self.obs, self.action, self.log_prob, target))
        gain = None if advantage is None else standardised(advantage[member, rows], 1e-8)

        def loss(params: Tensor) -> Tensor:
            out, log_std = self._output(params, obs)
            log_prob, entropy = self._log_prob_and_entropy(out, log_std, action)
            value = self._value(params, obs)
            weight = goal - value.detach() if gain is None else gain
            policy = -clipped_surrogate(log_prob, old, weight, s.clip).mean(-1)
            return policy + s.value_coef * F.mse_loss(value, goal, reduction="none").mean(-1) - s.entropy_coef * entropy.mean(-1)

        _, grad = value_and_grad(loss, self.params)
        self.adam.step(self.params, grad, active)

    @property
    def num_updates(self) -> Tensor:
        return self.adam.num_steps

    def module(self, row: int) -> nn.Module:
        actor, _, log_std = self.params[row].split(self._sizes)
        net = self.actor.module(actor)
        return MeanAndStd(net, log_std) if self.continuous else net

    def adopt(self, net: nn.Module) -> None:
        actor, _, log_std = self.params.split(self._sizes, dim=1)
        if isinstance(net, MeanAndStd):
            log_std.copy_(net.log_std.detach())
            net = net.mean
        actor.copy_(self.actor.from_modules([net]))

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self._last_log_prob = self._last_log_prob[rows]
