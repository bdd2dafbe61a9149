"""Policy gradients: REINFORCE (Williams 1992) with baseline and entropy bonus, and advantage actor-critic (AAC).

Play a batch of whole episodes with the current policy, take one optimiser step, throw the data away. The methods differ
in the loss alone; the exact presets are those of a course assignment (Technion deep learning, spring 2020).

Where we differ from the assignment: episodes are never stale unless ``stale_rollouts`` asks for it, evaluation episodes
are played apart, and a target running mean counts only once its window is full.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor

from lightning_rl.core.schema import STRICT, Episodes, MethodConfig, Share, Sizes
from lightning_rl.core.seeding import seed_torch
from lightning_rl.functional.distributions import Distribution, distribution_for
from lightning_rl.functional.policy_gradient import (
    BASELINES,
    entropy_loss,
    next_values,
    normalised,
    reinforce_loss,
    value_loss,
)
from lightning_rl.functional.returns import discounted_returns, lambda_returns
from lightning_rl.methods.base import Method
from lightning_rl.methods.on_policy import OnPolicyRollouts
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.actor_critic import ACTOR_CRITICS, ValueNet, actor
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.data_module import Evaluation
from lightning_rl.rollouts.steps import StepBatch


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class REINFORCEConfig(MethodConfig):
    """Keys of all policy gradients; ``configs/policy_gradient.yaml`` explains these and those of the others."""

    max_episodes: PositiveInt | None
    target_return: float | None
    running_mean_len: Episodes
    num_episodes_per_iter: Episodes
    stale_rollouts: bool
    gamma: Share
    learning_rate: PositiveFloat
    anneal_from: Share
    normalise_weights: bool
    max_grad_norm: PositiveFloat | None
    hidden: Sizes

    @model_validator(mode="after")
    def _check_budget(self) -> Self:
        if self.max_episodes is None and self.target_return is None and self.max_env_steps is None:
            raise ValueError("no stop rule: max_episodes, target_return and max_env_steps are all null; set one of them")
        if self.anneal_from < 1 and self.max_episodes is None:
            raise ValueError(f"anneal_from {self.anneal_from} is of max_episodes, which is null; set it, or anneal_from=1.0")
        return self

    @property
    def epoch_budget(self) -> int:
        """One epoch is one batch of episodes, so the budget of episodes is a number of epochs; the last may overshoot."""
        if self.max_episodes is None:
            return self.max_epochs
        return min(self.max_epochs, math.ceil(self.max_episodes / self.num_episodes_per_iter))


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class BaselineConfig(REINFORCEConfig):
    """Keys of REINFORCE-baseline."""

    baseline: Literal["batch", "time_step"]


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class EntropyConfig(REINFORCEConfig):
    """Keys of REINFORCE-entropy."""

    entropy_coef: NonNegativeFloat


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class CombinedConfig(BaselineConfig, EntropyConfig):
    """Keys of REINFORCE-combined."""


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class AACConfig(EntropyConfig):
    """Keys of AAC."""

    network: Literal["separate", "shared"]
    value_delta: NonNegativeFloat
    num_critic_updates: PositiveInt
    gae_lambda: Share
    bootstrap_truncated: bool


@dataclass(frozen=True)
class Loss:
    """Terms that are summed, and what is logged beside them, by the last part of their metric's name."""

    terms: Mapping[str, Tensor]
    logged: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)

    def __add__(self, other: Loss) -> Loss:
        return Loss({**self.terms, **other.terms}, {**self.logged, **other.logged})

    def scalars(self) -> dict[str, float]:
        return {f"train/{name}": float(value.detach()) for name, value in {**self.terms, **self.logged}.items()}


class PolicyGradient(Method):
    """What the five methods share: the policy, one optimiser step per batch, stop rule and logs. They add a ``loss``."""

    Config: ClassVar[type[REINFORCEConfig]] = REINFORCEConfig
    cfg: REINFORCEConfig

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        spec = self.spec
        distribution = distribution_for(spec.continuous)
        self.max_entropy = distribution.max_entropy(spec.action_size)
        seed_torch(self.seed, "initialisation")
        net = self.build(spec.obs_size, distribution.output_size(spec.action_size))
        self.policy = Policy(net, distribution, spec.action_size)

    def build(self, obs_size: int, output_size: int) -> torch.nn.Module:
        """The policy's network."""
        return actor(obs_size, self.cfg.hidden, output_size)

    def loss(self, batch: StepBatch, distribution: Distribution) -> Loss:
        """What is minimised; distribution: of the current policy at ``batch.obs``."""
        raise NotImplementedError

    def rollouts(self, num_workers: int = 0) -> OnPolicyRollouts:
        cfg = self.cfg
        training, evaluation = self.collector(num_workers), Evaluation(self, self.collector(num_workers))
        return OnPolicyRollouts(
            training, evaluation, self.policy, self.seed, cfg.num_episodes_per_iter, cfg.running_mean_len, cfg.stale_rollouts
        )

    def budget_share(self) -> float:
        return 0.0 if self.cfg.max_episodes is None else int(self.episodes) / self.cfg.max_episodes

    def learned(self) -> list[torch.nn.Parameter]:
        return [parameter for parameter in self.parameters() if parameter is not self._clock_hand]

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.learned(), lr=self.cfg.learning_rate)]

    def train_epoch(self, batch: StepBatch) -> None:
        loss = self.update(batch)
        for name, value in loss.items():
            self.check_finite(name, value)
        self.num_updates += 1
        self.env_steps += len(batch.reward)
        self.episodes += len(batch.final_obs)
        self.log_scalars({**batch.scalars, **loss, **self._counters(batch)})
        if self._target_reached(batch):
            self.trainer.should_stop = True
            self.trainer.check_val_every_n_epoch = 1  # so that this epoch is evaluated

    def update(self, batch: StepBatch) -> dict[str, float]:
        """One optimiser step on the sum of the loss terms; these and what is logged beside them."""
        distribution = self.policy.distribution(batch.obs)
        loss = self.loss(batch, distribution)
        self.descend(0, torch.stack(list(loss.terms.values())).sum(), self.cfg.max_grad_norm)
        return {**loss.scalars(), "train/entropy": float(distribution.entropy().detach().mean())}

    def _target_reached(self, batch: StepBatch) -> bool:
        target, enough = self.cfg.target_return, int(self.episodes) >= self.cfg.running_mean_len
        return target is not None and enough and batch.scalars["rollout/return_running_mean"] >= target

    def _counters(self, batch: StepBatch) -> dict[str, float]:
        speed = self.speed_scalars(len(batch.reward))
        episodes_per_step = len(batch.final_obs) / len(batch.reward)
        per_second = speed["time/env_steps_per_second"] * episodes_per_step
        return {**speed, "time/episodes_per_second": per_second}

    # The terms that the five losses are sums of.

    def policy_term(self, distribution: Distribution, batch: StepBatch, weight: Tensor) -> Loss:
        weight = normalised(weight) if self.cfg.normalise_weights else weight
        return Loss({"policy_loss": reinforce_loss(distribution.log_prob(batch.action), weight)})

    def returns(self, batch: StepBatch) -> Tensor:
        return discounted_returns(batch.reward, self.cfg.gamma, batch.last)


@register_method("REINFORCE")
class REINFORCE(PolicyGradient):
    """Every step is weighted by its discounted return-to-go."""

    def loss(self, batch: StepBatch, distribution: Distribution) -> Loss:
        return self.policy_term(distribution, batch, self.returns(batch))


@register_method("REINFORCE-baseline")
class REINFORCEBaseline(PolicyGradient):
    """... less a mean return-to-go of the batch, which keeps the expected gradient and lowers its variance."""

    Config: ClassVar[type[BaselineConfig]] = BaselineConfig
    cfg: BaselineConfig

    def loss(self, batch: StepBatch, distribution: Distribution) -> Loss:
        returns = self.returns(batch)
        baseline = BASELINES[self.cfg.baseline](returns, batch.last)
        return self.policy_term(distribution, batch, returns - baseline) + Loss({}, {"baseline": baseline.mean()})


class EntropyBonus(PolicyGradient):
    """Adds to any of them a reward for acting at random, so that the policy does not become deterministic too soon."""

    Config: ClassVar[type[EntropyConfig]] = EntropyConfig
    cfg: EntropyConfig

    def loss(self, batch: StepBatch, distribution: Distribution) -> Loss:
        bonus = entropy_loss(distribution.entropy(), self.max_entropy, self.cfg.entropy_coef)
        return super().loss(batch, distribution) + Loss({"entropy_loss": bonus})


@register_method("REINFORCE-entropy")
class REINFORCEEntropy(EntropyBonus, REINFORCE):
    """Returns-to-go and the entropy bonus."""


@register_method("REINFORCE-combined")
class REINFORCECombined(EntropyBonus, REINFORCEBaseline):
    """Baseline and entropy bonus."""

    Config: ClassVar[type[CombinedConfig]] = CombinedConfig
    cfg: CombinedConfig


class ActorCritic(PolicyGradient):
    """The weight is the advantage ``G - V(s)``, with a critic ``V`` that is trained on ``G`` in the same step.

    With ``gae_lambda`` 1 and without ``bootstrap_truncated``, ``G`` is the return-to-go of the other methods; else the
    TD(lambda) return, and the weight is the generalised advantage estimate (Schulman et al. 2016, arXiv 1506.02438).
    """

    Config: ClassVar[type[AACConfig]] = AACConfig
    cfg: AACConfig
    critic: ValueNet

    def build(self, obs_size: int, output_size: int) -> torch.nn.Module:
        net, self.critic = ACTOR_CRITICS[self.cfg.network](obs_size, self.cfg.hidden, output_size)
        return net

    def loss(self, batch: StepBatch, distribution: Distribution) -> Loss:
        value = self.critic(batch.obs)
        target = self.targets(batch, value.detach())
        advantage = target - value.detach()
        critic = Loss({"value_loss": value_loss(value, target, self.cfg.value_delta)}, {"advantage_mean": advantage.mean()})
        return self.policy_term(distribution, batch, advantage) + critic

    def update(self, batch: StepBatch) -> dict[str, float]:
        """The joint step; then the critic alone, if it is to follow the policy more closely."""
        scalars = super().update(batch)
        for _ in range(self.cfg.num_critic_updates - 1):
            value = self.critic(batch.obs)
            # Without gradients for the actor, Adam leaves it alone.
            self.descend(0, value_loss(value, self.targets(batch, value.detach()), delta=1.0), max_grad_norm=None)
        return scalars

    @torch.no_grad()
    def targets(self, batch: StepBatch, value: Tensor) -> Tensor:
        """TD(lambda) returns ``[B]``; nothing is expected after the last step of an episode unless it is bootstrapped."""
        following = next_values(value, self.critic(batch.final_obs), batch.last)
        discount = torch.full_like(batch.reward, self.cfg.gamma)
        discount[batch.last] *= batch.truncated & self.cfg.bootstrap_truncated
        return lambda_returns(batch.reward, discount, following, batch.last, self.cfg.gae_lambda)


@register_method("AAC")
class AAC(EntropyBonus, ActorCritic):
    """Advantage actor-critic with the entropy bonus."""

    Config: ClassVar[type[AACConfig]] = AACConfig
    cfg: AACConfig

