"""Policy gradients: REINFORCE (Williams 1992), baselines, entropy bonus, actor-critic (AAC).

Play a batch of whole episodes with the current policy, take one optimizer step, throw the data
away. The five implementations are presets of one method; the exact ones are those of a course
assignment (Technion deep learning, spring 2020).

Where we differ from the assignment: episodes are never stale unless ``stale_rollouts`` asks for it,
evaluation episodes are played apart, and a target running mean counts only once its window is full.
As in most code, the gradient lacks the factor ``gamma^t`` of step t that the exact one of
discounted returns has.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor, nn

from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import STRICT, Episodes, ObsConfig, Share, Sizes
from lightning_rl.core.seeding import seeded_torch
from lightning_rl.core.types import Episode, Request
from lightning_rl.functional.policy_gradient import (
    BASELINES,
    entropy_loss,
    next_values,
    normalised,
    reinforce_loss,
    value_loss,
)
from lightning_rl.functional.returns import discounted_returns, lambda_returns
from lightning_rl.methods.base import Method, episode_scalars
from lightning_rl.methods.registry import register_method
from lightning_rl.nets.layers import ReLUNet, evaluating
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collected import CollectedRollouts, training_requests

STALE_UPDATES = 3
"""Age of stale roll-outs: two workers have a batch each under way, and one is fetched ahead."""


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class PolicyGradientConfig(ObsConfig):
    """Keys of all policy gradients; ``configs/policy_gradient.yaml`` explains them."""

    max_episodes: PositiveInt | None
    target_return: float | None
    running_mean_len: Episodes
    num_episodes_per_iter: Episodes
    stale_rollouts: bool
    noise_hold: Share
    gamma: Share
    baseline: Literal["none", "batch", "time_step", "critic"]
    normalise_weights: bool
    entropy_coef: NonNegativeFloat
    value_delta: NonNegativeFloat
    num_critic_updates: PositiveInt
    gae_lambda: Share
    bootstrap_truncated: bool
    max_grad_norm: PositiveFloat | None
    learning_rate: PositiveFloat
    anneal_from: Share
    network: Literal["separate", "shared"]
    hidden: Sizes

    @model_validator(mode="after")
    def _check_budget(self) -> Self:
        if self.max_episodes is None and self.target_return is None and self.max_env_steps is None:
            raise ValueError(
                "no stop rule: max_episodes, target_return and max_env_steps are all null; set one "
                "of them"
            )
        if self.anneal_from < 1 and self.max_episodes is None:
            raise ValueError(
                f"anneal_from {self.anneal_from} is of max_episodes, which is null; set it, or "
                "anneal_from=1.0"
            )
        return self

    @property
    def epoch_budget(self) -> int:
        """One epoch is one batch of episodes; the last may overshoot the budget of episodes."""
        if self.max_episodes is None:
            return self.max_epochs
        return min(self.max_epochs, math.ceil(self.max_episodes / self.num_episodes_per_iter))

    def absent_networks(self) -> dict[str, str]:
        if self.baseline == "critic":
            return {}
        reason = f"baseline={self.baseline} has no critic; set baseline=critic or leave it out"
        return {"critic": reason}

    def ignored_keys(self) -> dict[str, str]:
        if self.baseline == "critic":
            return {}
        reason = f"baseline={self.baseline} has no critic"
        remedy = "set baseline=critic as well, or leave it out"
        keys = ("value_delta", "num_critic_updates", "gae_lambda", "bootstrap_truncated", "network")
        return dict.fromkeys(keys, f"{reason}; {remedy}")


@dataclass
class StepBatch:
    """The steps of ``E`` whole episodes, one behind another.

    obs ``[B, O]``, action ``[B]`` or ``[B, A]``, reward ``[B]``; last ``[B]``: the last step of
    each episode; final_obs ``[E, O]`` and truncated ``[E]``: how each ended. env_steps: the
    environment's own, more than B with ``frame_skip``. scalars: what was measured while collecting.
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    last: Tensor
    final_obs: Tensor
    truncated: Tensor
    env_steps: int
    scalars: Mapping[str, float]


def step_batch(episodes: list[Episode], scalars: Mapping[str, float]) -> StepBatch:
    """Flattens episodes, which have all ended."""
    ends = np.cumsum([episode.length for episode in episodes])
    last = torch.zeros(int(ends[-1]), dtype=torch.bool)
    last[torch.from_numpy(ends - 1)] = True
    seen = [episode.seen() for episode in episodes]
    return StepBatch(
        obs=torch.from_numpy(np.concatenate([each[:-1] for each in seen])),
        action=torch.from_numpy(np.concatenate([episode.action for episode in episodes])),
        reward=torch.from_numpy(np.concatenate([episode.reward for episode in episodes])),
        last=last,
        final_obs=torch.from_numpy(np.stack([each[-1] for each in seen])),
        truncated=torch.tensor([episode.cut_off for episode in episodes]),
        env_steps=sum(episode.env_steps for episode in episodes),
        scalars=scalars,
    )


class OnPolicyRollouts(CollectedRollouts):
    """Whole episodes by the current policy; with ``stale_rollouts``, of three updates ago.

    Stale roll-outs imitate asynchronous workers, whose timing no run could repeat. Here all batches
    but the first three have the same age, so that results do not depend on workers or on resuming.
    """

    def __init__(self, method: PolicyGradient, num_workers: int):
        super().__init__(method, num_workers)
        cfg = method.cfg
        self.num_episodes = cfg.num_episodes_per_iter
        self.recent_returns: deque[float] = deque(maxlen=cfg.running_mean_len)
        self.stale = cfg.stale_rollouts
        self.past: deque[tuple[dict[str, Tensor], int]] = deque(maxlen=STALE_UPDATES)

    def requests(self, epoch: int) -> list[Request]:
        commands = [None] * self.num_episodes
        return training_requests(self.run_seed, epoch, commands, self.noise_hold())

    def noise_hold(self) -> float:
        """Falls linearly to 0 over the budget: training ends with noise like evaluation's."""
        return super().noise_hold() * max(0.0, 1 - self.method.budget_share())

    def behaviour(self, version: int) -> tuple[dict[str, Tensor], int]:
        newest, _ = super().behaviour(version)
        if not self.stale:
            return newest, version
        behaviour = self.past[0] if self.past else (newest, version)
        self.past.append(({name: value.clone() for name, value in newest.items()}, version))
        return behaviour

    def store_episodes(self, epoch: int, episodes: list[Episode]) -> None:
        self.recent_returns.extend(episode.ret for episode in episodes)

    def make_batch(self, epoch: int, episodes: list[Episode], waited: float) -> StepBatch:
        age = [epoch - episode.policy_version for episode in episodes]
        scalars = episode_scalars("rollout", episodes)
        scalars["rollout/return_running_mean"] = float(np.mean(self.recent_returns))
        scalars["rollout/policy_age"] = float(np.mean(age))
        scalars["time/collection_wait"] = waited
        return step_batch(episodes, scalars)

    def state_dict(self) -> dict[str, Any]:
        recent = list(self.recent_returns)
        return {**super().state_dict(), "recent_returns": recent, "past": list(self.past)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        returns = map(float, state_dict["recent_returns"])
        self.recent_returns = deque(returns, self.recent_returns.maxlen)
        for weights, version in state_dict["past"]:
            # RuntimeError where they do not fit
            self.collector.behaviour.load_state_dict(weights)
            self.past.append((weights, int(version)))


def relu_layers(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers between ``sizes``, in torch's initialisation, each followed by a ReLU."""
    layers: list[nn.Module] = []
    for below, above in itertools.pairwise(sizes):
        layers += [nn.Linear(below, above), nn.ReLU()]
    return nn.Sequential(*layers)


class ValueNet(nn.Module):
    """State values ``[...]`` of obs ``[..., O]``, squeezed: a trailing 1 would be broadcast."""

    def __init__(self, body: nn.Module, features: int):
        super().__init__()
        self.body = body
        self.head = nn.Linear(features, 1)

    def forward(self, obs: Tensor) -> Tensor:
        return self.head(self.body(obs)).squeeze(-1)


def actor_critic(
    make_body: Callable[[], nn.Module], features: int, output_size: int, shared: bool
) -> tuple[ReLUNet, ValueNet]:
    """A policy's network and a critic: linear heads on the ``features`` that a body gives.

    shared: both on the same body.
    """
    body = make_body()
    actor = ReLUNet(body, nn.Linear(features, output_size))
    if not shared:
        body = make_body()
    return actor, ValueNet(body, features)


@register_method(
    "REINFORCE", "REINFORCE-baseline", "REINFORCE-entropy", "REINFORCE-combined", "AAC"
)
class PolicyGradient(Method):
    """Each action of the batch is made more likely by the return that followed it, less a baseline.

    The baseline is nothing, a mean return-to-go of the batch, or a critic ``V(s)`` that is trained
    on the returns in the same step. With a critic and ``gae_lambda`` below 1, or with
    ``bootstrap_truncated``, the return is TD(lambda)'s and the weight the generalised advantage
    estimate (Schulman et al. 2016, arXiv 1506.02438). Own networks: ``policy`` takes obs ``[...,
    O]`` and gives what the distribution reads, ``critic`` gives values ``[...]``.
    """

    Config = PolicyGradientConfig
    cfg: PolicyGradientConfig
    policy: Policy
    network_names: ClassVar[Mapping[str, str]] = {"policy": "hidden", "critic": "hidden"}

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg, spec = self.cfg, self.spec
        if len(self.own_networks) == 1 and cfg.network == "shared":
            raise UserError(
                "networks: network=shared takes policy and critic together; give both or set "
                "network=separate"
            )
        distribution = spec.distribution()
        self.max_entropy = distribution.max_entropy(spec.action_size)
        output_size = distribution.output_size(spec.action_size)
        with seeded_torch(self.seed, "initialisation"):
            actor, critic = actor_critic(
                self._hidden_layers, cfg.hidden[-1], output_size, shared=cfg.network == "shared"
            )
        net = self.network("policy", lambda: actor, takes=[spec.obs_size], gives=[output_size])
        self.policy = Policy(net, distribution, spec.action_size)
        self.critic: nn.Module | None = None
        if cfg.baseline == "critic":
            self.critic = self.network("critic", lambda: critic, takes=[spec.obs_size])

    def _hidden_layers(self) -> nn.Module:
        return self.encoded(lambda size: relu_layers([size, *self.cfg.hidden]))

    def rollouts(self, num_workers: int = 0) -> OnPolicyRollouts:
        return OnPolicyRollouts(self, num_workers)

    def budget_share(self) -> float:
        if self.cfg.max_episodes is None:
            return 0.0
        return min(1.0, int(self.episodes) / self.cfg.max_episodes)

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.parameters(), self.cfg.learning_rate, fused=True)]

    def finished(self) -> bool:
        """Whether the mean of the newest returns is ``target_return``, once there are enough."""
        target = self.cfg.target_return
        if target is None:
            return False
        recent: deque[float] = cast(Any, self.trainer).datamodule.recent_returns
        return len(recent) == recent.maxlen and float(np.mean(recent)) >= target

    def train_epoch(self, batch: StepBatch) -> None:
        """One step on all losses together, then the critic's further steps."""
        losses, measured = self.losses(batch)
        self.descend(0, torch.stack(list(losses.values())).sum(), self.cfg.max_grad_norm)
        further = 0 if self.critic is None else self.cfg.num_critic_updates - 1
        for _ in range(further):  # Adam leaves the policy alone, which has no gradient then
            returns, value = self.returns(batch)
            self.descend(0, value_loss(value, returns, delta=1.0), self.cfg.max_grad_norm)
        if self.normaliser is not None:  # after the updates, which are of the policy that played
            self.normaliser.see(torch.cat([batch.obs, batch.final_obs]))
        self.num_updates += 1 + further
        self.env_steps += batch.env_steps
        self.episodes += len(batch.final_obs)
        learned = {name: float(value.detach()) for name, value in (losses | measured).items()}
        for name, scalar in learned.items():
            self.check_finite(name, scalar)
        speed = self.speed_scalars(batch.env_steps)
        episodes_per_step = len(batch.final_obs) / batch.env_steps
        speed["time/episodes_per_second"] = speed["time/env_steps_per_second"] * episodes_per_step
        self.log_scalars({**batch.scalars, **learned, **speed})

    def losses(self, batch: StepBatch) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The losses whose sum is descended, by name, and what is logged beside them."""
        cfg = self.cfg
        distribution = self.policy.distribution(batch.obs)
        returns, baseline = self.returns(batch)
        advantage = returns - baseline.detach()
        entropy = distribution.entropy()
        weight = normalised(advantage) if cfg.normalise_weights else advantage
        log_prob = distribution.log_prob(batch.action)
        losses = {"train/policy_loss": reinforce_loss(log_prob, weight)}
        if cfg.entropy_coef > 0:
            losses["train/entropy_loss"] = entropy_loss(entropy, self.max_entropy, cfg.entropy_coef)
        if self.critic is not None:
            losses["train/value_loss"] = value_loss(baseline, returns, cfg.value_delta)
        measured = {"train/entropy": entropy.mean()}
        if cfg.baseline != "none":
            measured["train/baseline"] = baseline.mean()
            measured["train/advantage_mean"] = advantage.mean()
        return losses, measured

    def returns(self, batch: StepBatch) -> tuple[Tensor, Tensor]:
        """What followed each step, and what is subtracted from it, both ``[B]``.

        A gradient flows into a critic's values. Nothing is expected after the last step of an
        episode unless it is bootstrapped.
        """
        cfg = self.cfg
        if self.critic is None:
            returns = discounted_returns(batch.reward, cfg.gamma, batch.last)
            return returns, BASELINES[cfg.baseline](returns, batch.last)
        value = self.critic(batch.obs)
        with evaluating(self.critic):
            following = next_values(value, self.critic(batch.final_obs), batch.last)
            discount = torch.full_like(batch.reward, cfg.gamma)
            discount[batch.last] *= batch.truncated & cfg.bootstrap_truncated
            returns = lambda_returns(batch.reward, discount, following, batch.last, cfg.gae_lambda)
        return returns, value
