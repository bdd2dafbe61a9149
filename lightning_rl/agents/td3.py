"""TD3 (Fujimoto et al. 2018, arXiv 1802.09477), and its form for discrete actions with Gumbel-softmax samples.

Actions are in units where the box is [-1, 1], and so are both noises: where a task's box is wider (Pendulum: 2), the earlier
code's noise on target actions, given in the task's units, has to be divided by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_rl.agents.base import track, value_and_grad
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.off_policy import OffPolicyAgent, OffPolicySettings
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import Transition
from lightning_rl.functional.value_learning import (
    annealed,
    gumbel_softmax,
    smoothing_noise,
    twin_target,
    weighted_squared_error,
)
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.values import TwinCritic

ANNEAL_STEPS, ANNEAL_RATIO = 2000, 20
_MIN_TEMPERATURE = 0.05


@dataclass(frozen=True)
class TD3Settings(OffPolicySettings):
    """Noise and clip in units of the action box [-1, 1]. learning_starts: episodes of uniform actions."""

    policy_delay: int
    action_std: float
    target_std: float
    target_clip: float
    learning_starts: int


class TD3(OffPolicyAgent):
    """actor: an architecture from observations to ``A`` numbers; critic: from observation and action to one."""

    member_tensors: tuple[str, ...] = ("actor_params", "critic_params", "actor_target", "critic_target", "weight")
    member_parts: tuple[str, ...] = ("actor_adam", "critic_adam")

    def __init__(
        self, actor: MemberMLP, critic: MemberMLP, settings: TD3Settings, seeds: Sequence[int],
        actor_params: Tensor | None = None, critic_params: Tensor | None = None, curiosity: ICM | None = None,
        device: str = "cpu",
    ):  # fmt: skip
        size = actor.out_size
        super().__init__(settings, actor.in_size, size, seeds, curiosity, device)
        self.actor, self.critic, self.settings = actor, TwinCritic(critic), settings
        self.actor_params = actor.init(self.generators("actor")) if actor_params is None else actor_params
        self.critic_params = self.critic.init(self.generators("critic")) if critic_params is None else critic_params
        self.actor_params = self._extend(self.actor_params).to(device)
        self.critic_params = self.critic_params.to(device)
        self.actor_target, self.critic_target = self.actor_params.clone(), self.critic_params.clone()
        self.actor_adam = MemberAdam(self.actor_params, self.learning_rate)
        self.critic_adam = MemberAdam(self.critic_params, self.learning_rate)
        self._uniform, self._explore = self.noise("uniform", (size,), "uniform"), self.noise("explore", (size,), "normal")
        self._smooth = self.noise("smoothing", (max(self.batch_sizes), size), "normal", self.batch_sizes)

    def _extend(self, actor_params: Tensor) -> Tensor:
        """Adds the columns that the policy needs besides the network's."""
        return actor_params

    def policy(self, params: Tensor, obs: Tensor, purpose: str, step: int) -> Tensor:
        """Actions ``[N, B, A]`` with a gradient to params; purpose names the noise of a policy that samples."""
        del purpose, step
        return self.actor(params, obs).tanh()

    def _random(self, noise: Tensor) -> Tensor:
        return 2 * noise - 1

    def _clip(self, action: Tensor) -> Tensor:
        return action.clamp(-1, 1)

    @torch.no_grad()
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        action = self.policy(self.actor_params, obs.unsqueeze(1), "act", step).squeeze(1)
        explored = self._clip(action + self.settings.action_std * self._explore.at(step))
        first = (episode < self.settings.learning_starts).unsqueeze(-1)
        return torch.where(first, self._random(self._uniform.at(step)), explored)

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        return self.actor(self.actor_params, obs).tanh()

    def update(self, batch: Transition, active: Tensor, step: int) -> Tensor:
        """One step of the critics; every ``policy_delay`` steps also of the actor and the targets. The critics' losses."""
        s, target = self.settings, self._target(batch, step)

        def critic_loss(params: Tensor) -> Tensor:
            q = self.critic(params, batch.obs, batch.action)
            return weighted_squared_error(q, target.unsqueeze(1), self.weight.unsqueeze(1)).sum(1)

        value, grad = value_and_grad(critic_loss, self.critic_params)
        self.critic_adam.step(self.critic_params, grad, active)
        if step % s.policy_delay == 0:
            self._update_actor(batch.obs, active, step)
        return value

    @torch.no_grad()
    def _target(self, batch: Transition, step: int) -> Tensor:
        """What the critics shall say ``[N, B]``."""
        if not batch.discount.any():  # every episode is one step: what comes next would be multiplied by 0
            return batch.reward
        s = self.settings
        noise = smoothing_noise(self._smooth.at(step), s.target_std, s.target_clip)
        next_action = self._clip(self.policy(self.actor_target, batch.next_obs, "target", step) + noise)
        return twin_target(batch.reward, batch.discount, self.critic(self.critic_target, batch.next_obs, next_action))

    def _update_actor(self, obs: Tensor, active: Tensor, step: int) -> None:
        def actor_loss(params: Tensor) -> Tensor:
            q = self.critic.first(self.critic_params, obs, self.policy(params, obs, "actor", step))
            return -(self.weight * q).sum(-1)

        _, grad = value_and_grad(actor_loss, self.actor_params)
        self.actor_adam.step(self.actor_params, grad, active)
        track(self.actor_target, self.actor_params, self.settings.tau, active)
        track(self.critic_target, self.critic_params, self.settings.tau, active)

    @property
    def num_updates(self) -> Tensor:
        return self.critic_adam.num_steps

    def module(self, row: int) -> nn.Module:
        return self.actor.module(self.actor_params[row, : self.actor.size])

    def adopt(self, net: nn.Module) -> None:
        self.actor_params[:, : self.actor.size] = self.actor.from_modules([net])
        self.actor_target.copy_(self.actor_params)


class DiscreteTD3(TD3):
    """The actor's logits become one-hot-like actions ``[..., A]`` by Gumbel-softmax; the environment gets the arg-max.

    temperature: ``fixed``; ``learnable``, a parameter of the actor (kept above 0.05 in use, which the earlier code did not);
    or ``annealed`` from temperature_init to a twentieth of it over 2,000 actor updates.
    hard: one-hot samples with the gradient of the relaxed ones.
    """

    def __init__(
        self, actor: MemberMLP, critic: MemberMLP, settings: TD3Settings, seeds: Sequence[int],
        temperature: Literal["fixed", "learnable", "annealed"], temperature_init: float, hard: bool,
        actor_params: Tensor | None = None, critic_params: Tensor | None = None, curiosity: ICM | None = None,
        device: str = "cpu",
    ):  # fmt: skip
        self.temperature, self.temperature_init, self.hard = temperature, temperature_init, hard
        super().__init__(actor, critic, settings, seeds, actor_params, critic_params, curiosity, device)
        size, width, lengths = actor.out_size, max(self.batch_sizes), self.batch_sizes
        self._gumbel = {
            "act": self.noise("gumbel act", (size,), "gumbel"),
            "target": self.noise("gumbel target", (width, size), "gumbel", lengths),
            "actor": self.noise("gumbel actor", (width, size), "gumbel", lengths),
        }

    def _extend(self, actor_params: Tensor) -> Tensor:
        if self.temperature != "learnable":
            return actor_params
        return torch.cat([actor_params, torch.full((len(actor_params), 1), self.temperature_init)], dim=1)

    def policy(self, params: Tensor, obs: Tensor, purpose: str, step: int) -> Tensor:
        noise = self._gumbel[purpose].at(step)
        gumbel = noise.unsqueeze(1) if noise.ndim < obs.ndim else noise
        return gumbel_softmax(self._logits(params, obs), gumbel, self._temperature(params), self.hard)

    def _logits(self, params: Tensor, obs: Tensor) -> Tensor:
        return self.actor(params[:, : self.actor.size], obs)

    def _temperature(self, params: Tensor) -> Tensor | float:
        """For all samples of each member, ``[N, 1, 1]``."""
        if self.temperature == "fixed":
            return self.temperature_init
        if self.temperature == "learnable":
            return params[:, -1].clamp(min=_MIN_TEMPERATURE)[:, None, None]
        end = self.temperature_init / ANNEAL_RATIO
        return annealed(self.actor_adam.num_steps, self.temperature_init, end, ANNEAL_STEPS)[:, None, None]

    def _random(self, noise: Tensor) -> Tensor:
        return F.one_hot(noise.argmax(-1), noise.shape[-1]).to(noise.dtype)

    def _clip(self, action: Tensor) -> Tensor:
        return action

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        return self._logits(self.actor_params, obs).argmax(-1)

    def to_env(self, action: Tensor) -> Tensor:
        return action.argmax(-1)
