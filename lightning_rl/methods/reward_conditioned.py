"""Reward-Conditioned Policies (Kumar, Peng and Levine 2019, arXiv 1912.13465), in the order of the algorithm.

A policy is taught, by weighted supervised learning on recent episodes, to answer "which action turns out this well".
RCP-R judges a step by its return-to-go, RCP-A by its advantage over a learned value. Commands come from the labels
tilted towards the better ones, so that acting on them yields better episodes.

Where we differ from the paper and the earlier code: the advantage is a lambda-return minus the value, both from one
sweep over the whole window; labels are standardised over the window; the target stays among labels that were seen;
one command holds for a whole episode (but see key command_draw); the critic has an optimiser of its own.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.seeding import seed_torch
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.functional.returns import discounted_returns, lambda_returns
from lightning_rl.functional.reward_conditioned import (
    EPSILON,
    TARGETS,
    Target,
    annealed,
    draw_targets,
    effective_sample_share,
    explained_variance,
    exponential_weights,
    standardise,
)  # fmt: skip
from lightning_rl.methods.base import Method
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.reward_conditioned_configs import RCPAConfig, RCPConfig, RCPRConfig
from lightning_rl.methods.window import WindowEpoch, WindowRollouts
from lightning_rl.nets.command import GatedLayersNet
from lightning_rl.nets.mlp import relu_mlp
from lightning_rl.nets.policies import Policy, UnsteadyPolicy
from lightning_rl.rollouts.data_module import Evaluation
from lightning_rl.rollouts.episode_buffer import FlatEpisodes
from lightning_rl.rollouts.player import CommandRule


class RCP(Method):
    """What RCP-R and RCP-A share: the policy, its weighted supervised training, and the aim of the commands."""

    cfg: RCPConfig
    target: Tensor
    probes: Tensor

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg, spec = self.cfg, self.spec
        seed_torch(self.seed, "initialisation")
        distribution = distribution_for(spec.continuous)
        self.net = GatedLayersNet(
            spec.obs_size,
            distribution.output_size(spec.action_size),
            cfg.hidden,
            command_scale=(float(cfg.condition),),
            command_limit=cfg.command_limit,
            gate_scale=cfg.gate_scale,
            output_scale=cfg.output_scale,
        )
        kind = {"episode": Policy, "step": UnsteadyPolicy}[cfg.command_draw]
        self.learner = kind(self.net, distribution, spec.action_size)
        self.policy = copy.deepcopy(self.learner).requires_grad_(False)
        self.register_buffer("target", torch.zeros(4))
        self.register_buffer("probes", torch.zeros(2))

    @property
    def aim(self) -> Target:
        """Where the next commands come from."""
        return Target(*self.target.tolist())

    def draw(self, noise: Tensor) -> Tensor:
        spread = 0.0 if isinstance(self.policy, UnsteadyPolicy) else self.cfg.target_spread
        return draw_targets(self.aim, spread, noise, self.cfg.target_limit)

    def updates_per_iter(self) -> Mapping[str, int]:
        return {"policy": self.cfg.num_updates_per_iter}

    def rollouts(self, num_workers: int = 0) -> WindowRollouts:
        training, evaluation = (self.collector(num_workers) for _ in range(2))
        return WindowRollouts(self.cfg, self, training, Evaluation(self, evaluation), self.policy, self.seed)

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.learner.parameters(), lr=self.cfg.learning_rate, fused=True)]

    def adopt(self, weights: Mapping[str, Tensor]) -> None:
        super().adopt(weights)
        self.learner.load_state_dict(weights)

    def label(self, batch: WindowEpoch) -> tuple[Tensor, dict[str, float]]:
        """How well each step of the window turned out, ``[M]``, and what there is to log about it."""
        raise NotImplementedError

    def merit(self, label: Tensor, window: FlatEpisodes) -> Tensor:
        """What the exponential weights are computed from, ``[M]``."""
        return label

    def weights(self, merit: Tensor, temperature: float) -> Tensor:
        """Exponential weights ``[M]`` of mean 1."""
        return exponential_weights(standardise(merit, math.inf), temperature, self.cfg.max_weight)

    def as_commands(self, label: Tensor) -> Tensor:
        """The commands ``[M]`` under which the steps are right answers."""
        raise NotImplementedError

    def target_labels(self, command: Tensor, batch: WindowEpoch) -> Tensor:
        """Those of the commands ``[M]`` that the target of the next ones is made of."""
        raise NotImplementedError

    def train_epoch(self, batch: WindowEpoch) -> None:
        cfg, window = self.cfg, batch.window
        label, scalars = self.label(batch)
        label = label if cfg.label_max is None else label.clamp(max=cfg.label_max)
        self.check_finite(f"the {self.command_names[0]} label", float(label.abs().max()))
        command = self.as_commands(label)
        weight = self.weights(self.merit(label, window), cfg.temperature) if cfg.exp_weights else torch.ones_like(label)
        self.check_finite("the exponential weight", float(weight.max()))
        index = batch.index["policy"]
        examples = (window.obs[window.row], command.unsqueeze(-1), window.action, weight)
        policy_loss = self.fit("train/policy_loss", self.update, zip(*(x[index] for x in examples), strict=True))
        self.env_steps += batch.env_steps
        self.episodes += batch.episodes
        self._aim(self.target_labels(command, batch))
        scalars |= {
            "train/policy_loss": policy_loss,
            "train/label_sd": float(label.std(correction=0)),
            "train/effective_sample_share": float(effective_sample_share(weight)),
            "command/target_mean": self.aim.mean,
            "command/target_sd": self.aim.sd,
        }
        self.log_scalars({**batch.scalars, **scalars, **self._diagnostics(batch), **self.speed_scalars(batch.env_steps)})

    def update(self, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor) -> Tensor:
        """One Adam step on the weighted negative log-likelihood of the actions really taken; the loss, detached."""
        loss = -(weight * self.learner.executed_log_prob(obs, command, action)).mean()
        loss = self.descend(0, loss, self.cfg.max_grad_norm)
        with torch.no_grad():
            torch._foreach_lerp_(list(self.policy.parameters()), list(self.learner.parameters()), self.cfg.tau)
        return loss

    def _aim(self, command: Tensor) -> None:
        """Sets the target of the next commands and the commands that probe the policy's obedience."""
        weight = self.weights(command, self.cfg.target_temperature)
        self.target.copy_(torch.tensor(TARGETS[self.cfg.target](command, weight, self.cfg.target_quantile)))
        self.probes.copy_(torch.quantile(command, torch.tensor([0.1, 0.9], device=command.device)))
        if isinstance(self.policy, UnsteadyPolicy):
            aim, widest = self.aim, torch.finfo(torch.float32)
            limits = (aim.low, aim.high) if self.cfg.target_limit else (widest.min, widest.max)
            self.policy.command_noise.copy_(torch.tensor([self.cfg.target_spread * aim.sd, *limits]))

    def first_command(self) -> tuple[float, ...]:
        return (self.aim.mean,)

    def command_limits(self) -> tuple[float, float] | None:
        return (self.aim.low, self.aim.high) if self.cfg.condition else None

    def probe_commands(self) -> Mapping[str, tuple[float, ...]]:
        low, high = self.probes.tolist()
        return {"eval_low": (low,), "eval_high": (high,)} if self.cfg.condition else {}

    def evaluation_scalars(self, scalars: Mapping[str, float]) -> Mapping[str, float]:
        if not self.cfg.condition:
            return {}
        return {"eval/command_sensitivity": scalars["eval_high/return_mean"] - scalars["eval_low/return_mean"]}

    @torch.no_grad()
    def _diagnostics(self, batch: WindowEpoch) -> dict[str, float]:
        obs = batch.window.obs[batch.window.row[batch.index["policy"][-1]]]
        command = torch.full((len(obs), 1), self.aim.mean, device=obs.device)
        return {
            "train/entropy": float(self.policy.distribution(obs, command).entropy().mean()),
            "train/gate_saturation": self.net.saturation(command) or 0.0,
        }


@register_method("RCP-R")
class RCPR(RCP):
    """Conditioned on the return-to-go. Commands and labels are returns; the network standardises them."""

    Config = RCPRConfig
    command_names = ("return",)
    cfg: RCPRConfig

    def label(self, batch: WindowEpoch) -> tuple[Tensor, dict[str, float]]:
        window = batch.window
        return discounted_returns(window.reward, self.cfg.gamma, window.last), {}

    def merit(self, label: Tensor, window: FlatEpisodes) -> Tensor:
        return {"return_to_go": label, "episode_return": window.episode_return}[self.cfg.weight_by]

    def as_commands(self, label: Tensor) -> Tensor:
        if self.cfg.standardise:
            scale = self.cfg.condition / (float(label.std(correction=0)) + EPSILON)
            for policy in (self.learner, self.policy):
                assert isinstance(policy.net, GatedLayersNet)
                policy.net.command_shift.fill_(float(label.mean()))
                policy.net.command_scale.fill_(scale)
        return label

    def target_labels(self, command: Tensor, batch: WindowEpoch) -> Tensor:
        """A held command is heard at every step, so it has to suit every step's return-to-go, not only the first one's.

        Steps count as often as they are trained on; in the window itself a few long episodes outweigh many good short ones.
        """
        newest = batch.window.first[-(self.cfg.target_episodes or 0) :]
        index = {"step": batch.index["policy"].flatten(), "episode": newest}[self.cfg.target_labels]
        return command[index]

    def command_rule(self) -> CommandRule | None:
        return {"hold": None, "anneal": functools.partial(annealed, discount=self.cfg.gamma)}[self.cfg.command]


@register_method("RCP-A")
class RCPA(RCP):
    """Conditioned on the advantage, in standard deviations of the window's advantages."""

    Config = RCPAConfig
    command_names = ("advantage",)
    cfg: RCPAConfig

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        self.critic = relu_mlp(self.spec.obs_size, self.cfg.critic_hidden, 1)

    def as_commands(self, label: Tensor) -> Tensor:
        return standardise(label, self.cfg.command_limit) if self.cfg.standardise else label

    def target_labels(self, command: Tensor, batch: WindowEpoch) -> Tensor:
        return {"window": command, "minibatch": command[batch.index["policy"]]}[self.cfg.target_labels]

    def updates_per_iter(self) -> Mapping[str, int]:
        return {**super().updates_per_iter(), "critic": self.cfg.num_critic_updates_per_iter}

    def optimisers(self) -> list[torch.optim.Optimizer]:
        critic = torch.optim.Adam(self.critic.parameters(), lr=self.cfg.critic_learning_rate, fused=True)
        return [*super().optimisers(), critic]

    def label(self, batch: WindowEpoch) -> tuple[Tensor, dict[str, float]]:
        """Fits the critic to lambda-returns that stay fixed meanwhile, then sweeps the window anew."""
        cfg, window = self.cfg, batch.window
        target = self._returns(window, self._values(window), cfg.value_lambda) / cfg.value_scale
        index = batch.index["critic"]
        self.check_finite("the value target", float(target.abs().max()))
        examples = zip(window.obs[window.row[index]], target[index], strict=True)
        value_loss = self.fit("train/value_loss", self.update_critic, examples)
        values, value_lambda = self._values(window), cfg.gae_lambda_at(int(self.env_steps))
        value, returns = values[window.row], self._returns(window, values, value_lambda)
        explained = float(explained_variance(value, self._returns(window, values, value_lambda=1.0)))
        scalars = {"train/value_loss": value_loss, "train/explained_variance": explained}
        return returns - value, {**scalars, "train/gae_lambda": value_lambda}

    @torch.no_grad()
    def _values(self, window: FlatEpisodes) -> Tensor:
        """Values ``[M + E]`` of the window's observations under the present critic."""
        return self.critic(window.obs).squeeze(-1) * self.cfg.value_scale

    def _returns(self, window: FlatEpisodes, values: Tensor, value_lambda: float) -> Tensor:
        """Lambda-returns ``[M]`` of the window's steps."""
        ended = window.terminated if self.cfg.bootstrap_truncated else window.last
        discount = self.cfg.gamma * (~ended).to(values.dtype)
        return lambda_returns(window.reward, discount, values[window.row + 1], window.last, value_lambda)

    def update_critic(self, obs: Tensor, target: Tensor) -> Tensor:
        """One Adam step of the critic alone; the loss, detached."""
        loss = torch.nn.functional.mse_loss(self.critic(obs).squeeze(-1), target)
        return self.descend(1, loss, self.cfg.critic_max_grad_norm)

