"""PPO with a clipped objective (Schulman et al. 2017, arXiv 1707.06347).

For discrete and continuous actions.

Two recipes in one. ``standardise: advantages`` is the common one: generalised advantages, time
limits bootstrap, minibatches. ``standardise: returns`` is that of the synthetic-environments paper:
Monte-Carlo returns, standardised, are the critic's target, the advantage is what the critic missed,
full batches. There time limits end the return, as its critic, which knows standardised returns
only, cannot continue it (the earlier code let returns leak into the next episode). Common code also
has orthogonal initial weights, a clipped value loss and a falling learning rate; here are none of
these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from lightning_rl.agents.base import (
    Agent,
    AgentConfig,
    NetConfig,
    Progress,
    Transition,
    member_hyperparameters,
)
from lightning_rl.agents.compiling import may_compile
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.optim import MemberAdam
from lightning_rl.agents.variation import Variation
from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import STRICT, Batch, ImageConfig, Share
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.distributions import Categorical, Distribution, Gaussian
from lightning_rl.functional.returns import discounted_returns, lambda_returns
from lightning_rl.nets.members import MemberMLP

if TYPE_CHECKING:
    from lightning_rl.agents.frame_rollout import FrameRollout
    from lightning_rl.nets.member_images import MemberEncoder


class FreeGaussian(Gaussian):
    """A ``Gaussian`` whose standard deviation is not clamped.

    Here it is a learned parameter, not an output of the network.
    """

    LOG_STD_RANGE = (-math.inf, math.inf)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class PPOConfig(AgentConfig, NetConfig, ImageConfig):
    """Keys of PPO."""

    rollout_steps: PositiveInt
    epochs: PositiveInt
    batch_size: Batch | None
    clip: PositiveFloat
    value_coef: NonNegativeFloat
    entropy_coef: NonNegativeFloat
    standardise: Literal["advantages", "returns"]
    gae_lambda: Share
    std_init: PositiveFloat
    max_grad_norm: PositiveFloat | None
    adam_eps: PositiveFloat

    def ignored_keys(self) -> dict[str, str]:
        found = super().ignored_keys()
        if self.standardise == "returns":
            found["gae_lambda"] = (
                "Monte-Carlo returns have no lambda; set standardise=advantages as well"
            )
        return found

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"rollout_steps": self.rollout_steps}


def _check_sizes(cfg: PPOConfig) -> None:
    """UserError for sizes that do not go together."""
    if cfg.batch_size is not None and cfg.rollout_steps % cfg.batch_size:
        raise UserError(
            f"batch_size {cfg.batch_size} does not divide rollout_steps {cfg.rollout_steps}; "
            "choose one that does"
        )
    sizes = {"rollout_steps": cfg.rollout_steps}
    if cfg.standardise == "advantages" and cfg.batch_size is not None:
        sizes["batch_size"] = cfg.batch_size
    for key, size in sizes.items():
        if size == 1:
            raise UserError(
                f"{key} 1: {cfg.standardise} are standardised, and one alone cannot be; use 2 "
                "or more"
            )


class MeanAndStd(nn.Module):
    """A network of means beside log standard deviations that are the same everywhere.

    Gives ``[..., 2 A]``, for ``FreeGaussian``.
    """

    def __init__(self, mean: nn.Module, log_std: Tensor):
        super().__init__()
        self.mean, self.log_std = mean, nn.Parameter(log_std.detach().clone())

    def forward(self, obs: Tensor) -> Tensor:
        mean = self.mean(obs)
        return torch.cat([mean, self.log_std.expand_as(mean)], dim=-1)


class PPO(Agent):
    """``actor`` maps observations to logits or, continuous, to means before the tanh.

    ``critic`` to one value.

    One block holds actor, critic and the logarithm of the standard deviations (the earlier code
    learned these directly), and for images the encoder that both networks share. The roll-out of
    ``rollout_steps`` decisions of each member is in buffers ``[N, T, ..]``, its images in
    ``images``.
    """

    distribution_class: type[Distribution]
    obs: Tensor
    next_obs: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    over: Tensor

    def __init__(
        self,
        cfg: PPOConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None = None,
    ):
        _check_sizes(cfg)
        super().__init__(seeds)
        learning_rate, hidden, widths = member_hyperparameters(cfg, variation)
        obs, size, continuous = spec.obs_size, spec.action_size, spec.continuous
        self.cfg, self.continuous = cfg, continuous
        count, steps, in_size = len(self.seeds), cfg.rollout_steps, obs
        self.encoder: MemberEncoder | None = None
        self.images: FrameRollout | None = None
        if spec.frames is not None:
            from lightning_rl.agents.frame_rollout import FrameRollout
            from lightning_rl.nets.member_images import MemberEncoder

            self.encoder = MemberEncoder(cfg.encoder, spec.frames)
            self.images = FrameRollout(count, steps, spec.frames)
            in_size = self.encoder.num_features
        self.distribution_class = FreeGaussian if continuous else Categorical
        self.actor: Any = MemberMLP(in_size, hidden, size, cfg.activation)
        if spec.masked:
            from lightning_rl.nets.masked import MaskedMemberNet

            self.actor = MaskedMemberNet(self.actor)
        self.critic = MemberMLP(in_size, hidden, 1, cfg.activation)
        actor = self.actor.init(self.generators("actor"), widths)
        critic = self.critic.init(self.generators("critic"), widths)
        log_std = torch.full((count, size if continuous else 0), math.log(cfg.std_init))
        blocks = [actor, critic, log_std]
        if self.encoder is not None:
            blocks.append(self.encoder.init(self.generators("encoder")))
        self.params = nn.Parameter(torch.cat(blocks, dim=1))
        self._sizes = [block.shape[1] for block in blocks]
        self.adam = MemberAdam(
            self.params, learning_rate, eps=cfg.adam_eps, max_grad_norm=cfg.max_grad_norm
        )
        if continuous:
            action = torch.zeros(count, steps, size)
        else:
            action = torch.zeros(count, steps, dtype=torch.int64)
        if self.images is None:
            self.register_buffer("obs", torch.zeros(count, steps, obs))
            self.register_buffer("next_obs", torch.zeros(count, steps, obs))
        for name in ("reward", "discount"):
            self.register_buffer(name, torch.zeros(count, steps))
        self.register_buffer("action", action)
        self.register_buffer("over", torch.zeros(count, steps, dtype=torch.bool))
        self.explore_noise = self.noise("explore", (size,), "normal" if continuous else "gumbel")
        self._shuffle = self.noise("shuffle", (steps,), "uniform")
        self.curiosity: ICM | None = None
        if cfg.curiosity == "icm":
            self.curiosity = ICM(cfg, spec, continuous, self.generators("curiosity"))

    def seen(self, params: Tensor, obs: Tensor) -> Tensor:
        """What actor and critic read of obs ``[N, B, O]``: of images, their features."""
        if self.encoder is None:
            return obs
        return self.encoder(params[:, -self.encoder.size :], obs)

    def observed(self, rows: Tensor | None = None) -> Tensor:
        """The observations of decisions ``[N, B]`` of the roll-out; None: of all."""
        if self.images is not None:
            return self.images.obs(self.over, rows)
        if rows is None:
            return self.obs
        return self.obs[torch.arange(len(rows), device=rows.device).unsqueeze(1), rows]

    def policy(self, params: Tensor, seen: Tensor) -> Distribution:
        """Over the actions for what was ``seen`` ``[N, B, ..]``."""
        actor, _, log_std = params.split(self._sizes, dim=1)[:3]
        out = self.actor(actor, seen)
        if self.continuous:
            out = torch.cat([out, log_std.unsqueeze(1).expand_as(out)], dim=-1)
        return self.distribution_class(out)

    def value(self, params: Tensor, seen: Tensor) -> Tensor:
        """The critic's ``[N, B]`` for what was ``seen`` ``[N, B, ..]``."""
        critic = params.split(self._sizes, dim=1)[1]
        return self.critic(critic, seen).squeeze(-1)

    @torch.no_grad()
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        policy = self.policy(self.params, self.seen(self.params, obs.unsqueeze(1)))
        return policy.sample(self.explore_noise.at(step).unsqueeze(1)).squeeze(1)

    @torch.no_grad()
    def greedy(self, obs: Tensor) -> Tensor:
        out = self.actor(self.params[:, : self.actor.size], self.seen(self.params, obs))
        return out.tanh() if self.continuous else out.argmax(-1)

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor | None) -> None:
        place = step % self.cfg.rollout_steps
        if self.images is None:
            self.obs[:, place] = transition.obs
            self.next_obs[:, place] = transition.next_obs
        else:
            self.images.store(place, transition)
        self.action[:, place] = transition.action
        self.reward[:, place] = transition.reward
        self.discount[:, place] = transition.discount
        self.over[:, place] = over
        if place == self.cfg.rollout_steps - 1:
            self.learn_from_rollout(active, step // self.cfg.rollout_steps)

    def play(self, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
        if type(self) is not PPO or not self.compiles:
            return None
        from lightning_rl.agents import fused_ppo

        return fused_ppo.play(self, envs, progress, most)

    def learn_from_rollout(self, active: Tensor | None, number: int) -> None:
        """``update``, compiled where that can be."""
        if not self.compiles:
            self.update(active, number)
            return
        from lightning_rl.agents import fused_ppo

        fused_ppo.update(self, active, number)

    @property
    def compiles(self) -> bool:
        """Whether its updates are compiled."""
        return self.encoder is None and may_compile(self, self.actor, PPO)

    @torch.enable_grad()
    def update(self, active: Tensor | None, number: int) -> None:
        """Learns from the roll-out, ``epochs`` times over; number: of the update, from 0."""
        reward = self.reward
        if self.curiosity is not None:
            executed = self.distribution_class.executed(self.action)
            batch = Transition(self.obs, executed, self.reward, self.discount, self.next_obs)
            weight = torch.full_like(reward, 1 / self.cfg.rollout_steps)
            reward = reward + self.curiosity.learn(batch, weight, active)
        with torch.no_grad():  # of the policy that has acted
            seen = self.seen(self.params, self.observed())
            old_log_prob = self.policy(self.params, seen).log_prob(self.action)
        target, advantage = self.targets(reward, seen)
        for epoch in range(self.cfg.epochs):
            for rows in self.minibatches(number * self.cfg.epochs + epoch):
                loss = self._loss(rows, old_log_prob, target, advantage)
                self.adam.descend(loss, active)

    @torch.no_grad()
    def targets(self, reward: Tensor, seen: Tensor) -> tuple[Tensor, Tensor | None]:
        """The critic's targets ``[N, T]``, and the advantages.

        None where these are target minus value at each step.
        """
        if self.cfg.standardise == "returns":
            return standardised(discounted_returns(reward, self.cfg.gamma, self.over)), None
        value = self.value(self.params, seen)
        next_obs = self.next_obs if self.images is None else self.images.next_obs(self.over)
        next_value = self.value(self.params, self.seen(self.params, next_obs))
        last = self.over.clone()
        last[:, -1] = True  # the roll-out ends there: bootstrap
        target = lambda_returns(reward, self.discount, next_value, last, self.cfg.gae_lambda)
        return target, target - value

    def minibatches(self, index: int) -> list[Tensor]:
        """Rows ``[N, B]`` of each minibatch of an epoch, shuffled for each member."""
        if self.cfg.batch_size is None:
            all_rows = torch.arange(self.cfg.rollout_steps, device=self.device)
            return [all_rows.expand(self.num_members, -1)]
        order = self._shuffle.at(index).argsort(dim=1)
        return list(order.split(self.cfg.batch_size, dim=1))

    def _loss(
        self, rows: Tensor, old_log_prob: Tensor, target: Tensor, advantage: Tensor | None
    ) -> Tensor:
        """The losses ``[N]`` of a minibatch."""
        cfg = self.cfg
        member = torch.arange(len(rows), device=rows.device).unsqueeze(1)
        action, target = self.action[member, rows], target[member, rows]
        seen = self.seen(self.params, self.observed(rows))
        policy = self.policy(self.params, seen)
        value = self.value(self.params, seen)
        if advantage is None:
            weight = target - value.detach()
        else:
            weight = standardised(advantage[member, rows], 1e-8)
        log_prob = policy.log_prob(action)
        surrogate = clipped_surrogate(log_prob, old_log_prob[member, rows], weight, cfg.clip)
        policy_loss = -surrogate.mean(-1)
        value_loss = F.mse_loss(value, target, reduction="none").mean(-1)
        entropy = policy.entropy().mean(-1)
        return policy_loss + cfg.value_coef * value_loss - cfg.entropy_coef * entropy

    def module(self, row: int) -> nn.Module:
        actor, _, log_std, *encoder = self.params[row].split(self._sizes)
        net: nn.Module = self.actor.module(actor)
        if self.encoder is not None:
            net = self.encoder.before(net, *encoder)
        return MeanAndStd(net, log_std) if self.continuous else net

    @torch.no_grad()
    def adopt(self, net: nn.Module) -> None:
        actor, _, log_std, *encoder = self.params.split(self._sizes, dim=1)
        if isinstance(net, MeanAndStd):
            log_std.copy_(net.log_std)
            net = cast(Any, net.mean)
        if self.encoder is not None:
            encoder[0].copy_(self.encoder.from_modules([net]))
            net = cast(Any, net).net
        actor.copy_(self.actor.from_modules([net]))


def standardised(x: Tensor, eps: float = 1e-5) -> Tensor:
    """``(x - mean) / (sd + eps)`` over the last dimension ``[..., T]``.

    sd is the sample standard deviation (T - 1).
    """
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def clipped_surrogate(
    log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: float
) -> Tensor:
    """``min(ratio A, clip(ratio, 1 -/+ clip) A)`` (equation 7), to be maximised; ``[...]``."""
    ratio = (log_prob - old_log_prob).exp()
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
