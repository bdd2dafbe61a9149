"""TD3 (Fujimoto et al. 2018, arXiv 1802.09477), and its form for discrete actions.

That form has Gumbel-softmax samples.

Actions are in units where the box is [-1, 1], and so are both noises. The earlier code gives the
noise on target actions in the task's units: where a task's box is wider (Pendulum: 2), that noise
has to be divided by its half-width.

Not in the paper: with a ``saturation_penalty``, the policy pays for outputs of its network that are
far outside of the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.base import Progress, Transition, member_hyperparameters
from lightning_rl.agents.compiling import may_compile
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.replay import OffPolicyAgent, OffPolicyConfig, anything_follows, track
from lightning_rl.agents.stack import frozen
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.relaxation import annealed, gumbel_softmax
from lightning_rl.functional.value_learning import (
    smoothing_noise,
    twin_target,
    weighted_squared_error,
)
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.values import TwinCritic

ANNEAL_STEPS, ANNEAL_RATIO = 2000, 20
_MIN_TEMPERATURE = 0.05
SATURATED = 1.5


@dataclass(frozen=True, config=STRICT, kw_only=True)
class TD3Config(OffPolicyConfig):
    """Keys of TD3. Noise and clip in units of the action box [-1, 1]."""

    learning_starts: NonNegativeInt
    policy_delay: PositiveInt
    action_std: NonNegativeFloat
    target_std: NonNegativeFloat
    target_clip: NonNegativeFloat
    saturation_penalty: NonNegativeFloat

    def net(self, in_size: int, hidden: tuple[int, ...], out_size: int) -> MemberMLP:
        """The architecture of the actor, and of a critic."""
        return MemberMLP(in_size, hidden, out_size, self.activation)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class TD3DiscreteConfig(TD3Config):
    """Keys of TD3-discrete."""

    layer_norm: bool
    temperature: Literal["fixed", "learnable", "annealed"]
    temperature_init: PositiveFloat
    hard: bool

    def net(self, in_size: int, hidden: tuple[int, ...], out_size: int) -> MemberMLP:
        return MemberMLP(in_size, hidden, out_size, self.activation, self.layer_norm)


def saturation(outputs: Tensor) -> Tensor:
    """Mean square ``[...]`` of how far ``outputs`` ``[..., A]`` are outside of [-1.5, 1.5].

    There the tanh is nearly flat.

    A policy that an untrained critic has driven there gets almost no gradient and keeps its action
    at the edge for good.
    """
    return F.softshrink(outputs, SATURATED).square().mean(-1)


class TD3(OffPolicyAgent):
    """``actor`` maps observations to ``A`` numbers.

    ``critic`` is two networks from observation and action to one.
    """

    actions: ClassVar[Literal["discrete", "continuous", "any"]] = "continuous"

    def __init__(
        self,
        cfg: TD3Config,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None = None,
    ):
        super().__init__(cfg, spec, seeds, variation, vectors=True)
        learning_rate, hidden, widths = member_hyperparameters(cfg, variation)
        obs, size = spec.obs_size, spec.action_size
        batch = max(self.batch_sizes)
        self.actor = cfg.net(obs, hidden, size)
        self.critic = TwinCritic(cfg.net(obs + size, hidden, 1))
        actor_params = self.actor.init(self.generators("actor"), widths)
        critic_params = self.critic.init(self.generators("critic"), widths)
        self.actor_params = nn.Parameter(self.extended(actor_params))
        self.critic_params = nn.Parameter(critic_params)
        self.actor_target = frozen(self.actor_params)
        self.critic_target = frozen(self.critic_params)
        self.actor_adam = MemberAdam(self.actor_params, learning_rate)
        self.critic_adam = MemberAdam(self.critic_params, learning_rate)
        self.uniform_noise = self.noise("uniform", (size,), "uniform")
        self.explore_noise = self.noise("explore", (size,), "normal")
        self.smoothing_noise = self.noise("smoothing", (batch, size), "normal", self.batch_sizes)

    def extended(self, actor_params: Tensor) -> Tensor:
        """``actor_params`` with further columns that the policy has besides its network.

        Here none.
        """
        return actor_params

    def outputs(self, params: Tensor, obs: Tensor) -> Tensor:
        """Output of the policy's network ``[N, B, A]``, before the tanh or the Gumbel-softmax."""
        return self.actor(params[:, : self.actor.size], obs)

    def to_actions(self, outputs: Tensor, params: Tensor, purpose: str, step: int) -> Tensor:
        """Actions ``[N, B, A]`` with a gradient.

        A policy that samples takes the noise of ``purpose`` and ``step``.
        """
        return outputs.tanh()

    def policy(self, params: Tensor, obs: Tensor, purpose: str, step: int) -> Tensor:
        """Actions for observations ``[N, B, O]``."""
        return self.to_actions(self.outputs(params, obs), params, purpose, step)

    def random(self, noise: Tensor) -> Tensor:
        """Actions for uniform noise ``[N, A]``."""
        return 2 * noise - 1

    def clip(self, action: Tensor) -> Tensor:
        """An action with noise, brought back to where actions are."""
        return action.clamp(-1, 1)

    @torch.no_grad()
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        action = self.policy(self.actor_params, obs.unsqueeze(1), "act", step).squeeze(1)
        explored = self.clip(action + self.cfg.action_std * self.explore_noise.at(step))
        first = (episode < self.cfg.learning_starts).unsqueeze(-1)
        return torch.where(first, self.random(self.uniform_noise.at(step)), explored)

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        return self.outputs(self.actor_params, obs).tanh()

    @property
    def compiles(self) -> bool:
        """Whether its updates are compiled."""
        return may_compile(self, self.actor, TD3)

    def play(self, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
        if type(self) is not TD3 or not self.compiles:
            return None
        from lightning_rl.agents import fused_td3

        return fused_td3.play(self, envs, progress, most)

    def learn_from_replay(self, noise: Tensor, active: Tensor | None, step: int) -> None:
        if not self.compiles:
            super().learn_from_replay(noise, active, step)
            return
        from lightning_rl.agents import fused_td3

        fused_td3.learn(self, noise, active, step)

    @torch.enable_grad()
    def update(self, batch: Transition, active: Tensor | None, step: int) -> Tensor:
        """One step of the critics; every ``policy_delay`` steps also of the actor and the targets.

        The critics' losses.
        """
        target = self.target(batch, step)
        q = self.critic(self.critic_params, batch.obs, batch.action)
        loss = weighted_squared_error(q, target.unsqueeze(1), self.weight.unsqueeze(1)).sum(1)
        self.critic_adam.descend(loss, active)
        if step % self.cfg.policy_delay == 0:
            outputs = self.outputs(self.actor_params, batch.obs)
            action = self.to_actions(outputs, self.actor_params, "actor", step)
            q = self.critic.first(self.critic_params.detach(), batch.obs, action)
            cost = -q
            if self.cfg.saturation_penalty:
                cost = cost + self.cfg.saturation_penalty * saturation(outputs)
            self.actor_adam.descend((self.weight * cost).sum(-1), active)
            track(self.actor_target, self.actor_params, self.cfg.tau, active)
            track(self.critic_target, self.critic_params, self.cfg.tau, active)
        return loss.detach()

    @torch.no_grad()
    def target(self, batch: Transition, step: int) -> Tensor:
        """The critics' targets ``[N, B]``."""
        if not anything_follows(batch.discount):
            return batch.reward
        noise = smoothing_noise(
            self.smoothing_noise.at(step), self.cfg.target_std, self.cfg.target_clip
        )
        action = self.clip(self.policy(self.actor_target, batch.next_obs, "target", step) + noise)
        next_q = self.critic(self.critic_target, batch.next_obs, action)
        return twin_target(batch.reward, batch.discount, next_q)

    @property
    def num_updates(self) -> Tensor:
        return self.critic_adam.num_steps

    def module(self, row: int) -> nn.Module:
        return self.actor.module(self.actor_params[row, : self.actor.size])

    @torch.no_grad()
    def adopt(self, net: nn.Module) -> None:
        self.actor_params[:, : self.actor.size] = self.actor.from_modules([net])
        self.actor_target.copy_(self.actor_params)


class DiscreteTD3(TD3):
    """The actor's logits become one-hot-like actions ``[..., A]`` by Gumbel-softmax.

    The environment gets the arg-max.

    temperature: ``fixed``; ``learnable``, a parameter of the actor (kept at 0.05 or above, which
    the earlier code did not); or ``annealed`` from temperature_init to a twentieth of it over 2,000
    actor updates.
    hard: one-hot samples with the gradient of the relaxed ones.
    """

    actions = "discrete"

    def __init__(
        self,
        cfg: TD3DiscreteConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None = None,
    ):
        super().__init__(cfg, spec, seeds, variation)
        size, batch, lengths = spec.action_size, max(self.batch_sizes), self.batch_sizes
        self._gumbel = {
            "act": self.noise("gumbel act", (size,), "gumbel"),
            "target": self.noise("gumbel target", (batch, size), "gumbel", lengths),
            "actor": self.noise("gumbel actor", (batch, size), "gumbel", lengths),
        }

    def extended(self, actor_params: Tensor) -> Tensor:
        if self.cfg.temperature != "learnable":
            return actor_params
        start = max(self.cfg.temperature_init, _MIN_TEMPERATURE)
        return torch.cat([actor_params, torch.full((len(actor_params), 1), start)], dim=1)

    def update(self, batch: Transition, active: Tensor | None, step: int) -> Tensor:
        loss = super().update(batch, active, step)
        if self.cfg.temperature == "learnable":
            self.actor_params.data[:, -1].clamp_(min=_MIN_TEMPERATURE)
        return loss

    def to_actions(self, outputs: Tensor, params: Tensor, purpose: str, step: int) -> Tensor:
        noise = self._gumbel[purpose].at(step)
        gumbel = noise.unsqueeze(1) if noise.ndim < outputs.ndim else noise
        return gumbel_softmax(outputs, gumbel, self._temperature(params), self.cfg.hard)

    def _temperature(self, params: Tensor) -> Tensor | float:
        """For all samples of each member, ``[N, 1, 1]``."""
        if self.cfg.temperature == "fixed":
            return self.cfg.temperature_init
        if self.cfg.temperature == "learnable":
            return params[:, -1, None, None]
        start = self.cfg.temperature_init
        steps = self.actor_adam.num_steps[:, None, None]
        return annealed(steps, start, start / ANNEAL_RATIO, ANNEAL_STEPS)

    def random(self, noise: Tensor) -> Tensor:
        return F.one_hot(noise.argmax(-1), noise.shape[-1]).to(noise.dtype)

    def clip(self, action: Tensor) -> Tensor:
        return action

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        return self.outputs(self.actor_params, obs).argmax(-1)

    def to_env(self, action: Tensor) -> Tensor:
        return action.argmax(-1)
