"""Upside-down RL: how an epoch goes.

A policy is taught, by (weighted) supervised learning on the agent's own episodes, to answer "which
action turns out this well", and is then asked for a little more than it has seen. Keys of the
config choose the parts of this sentence:

* which episodes are kept: ``buffer``, see ``rollouts.episode_buffer``;
* what a command asks for: ``command``, see ``commands``;
* how much a step counts: ``weights``, see ``weightings``;
* what is asked for next: ``target``, see ``targets``;
* how the command enters the network: ``network``, see ``nets.command``.

Where we differ from the papers and the earlier code is in ``docs/upside_down/differences.md``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.parts import is_ours, part_of
from lightning_rl.core.seeding import seeded_torch
from lightning_rl.core.types import Episode
from lightning_rl.functional.ranks import rank_correlation
from lightning_rl.functional.upside_down import EPSILON, effective_sample_share, standardise
from lightning_rl.methods.base import Method
from lightning_rl.methods.compiling import differs, may_compile, one_by_one
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.upside_down.commands import COMMANDS
from lightning_rl.methods.upside_down.config import CONFIG, UpsideDownConfig
from lightning_rl.methods.upside_down.rollouts import UpsideDownEpoch, UpsideDownRollouts
from lightning_rl.methods.upside_down.targets import PROBES, TARGETS, NextCommands
from lightning_rl.methods.upside_down.weightings import WEIGHTINGS
from lightning_rl.nets.command import (
    Calibration,
    CommandPolicy,
    GatedLayersNet,
    GatedNet,
    ScaledCommand,
)
from lightning_rl.nets.layers import MovingAverage, evaluating
from lightning_rl.nets.noisy_command import NoisyCommandPolicy
from lightning_rl.rollouts.episode_buffer import FlatEpisodes
from lightning_rl.rollouts.player import CommandRule

if TYPE_CHECKING:
    from lightning_rl.rollouts.offline import Dataset


class Commanded(Method):
    """A policy that is asked for something, and its (weighted) supervised training.

    Pareto-conditioned networks are such, too.

    Attributes:
        learner: the policy that is trained.
        policy: the one that plays: a moving average of the learner, or with tau 1 the learner.
    """

    network_names: ClassVar[Mapping[str, str]] = {"policy": "hidden"}
    learner: CommandPolicy
    policy: CommandPolicy

    def make_policies(
        self,
        net: nn.Module,
        scale: Sequence[float],
        guidance: float = 0.0,
        kind: type[CommandPolicy] = CommandPolicy,
    ) -> None:
        """Makes ``learner`` and ``policy`` of a network, which sees commands times ``scale``."""
        spec = self.spec
        scaled = ScaledCommand(net, scale, self.cfg.command_limit)
        self.learner = kind(scaled, spec.distribution(), spec.action_size, guidance)
        self.policy = self.learner
        if self.cfg.tau != 1:
            self.policy = copy.deepcopy(  # but for the normaliser, which both have
                self.learner, {id(self.normaliser): self.normaliser}
            ).requires_grad_(False)
        # the scales of commands are not averaged: they are set anew in each epoch
        self.average = MovingAverage(
            self.policy.get_submodule("net.net"),
            self.learner.get_submodule("net.net"),
            self.cfg.tau,
        )

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.learner.parameters(), self.cfg.learning_rate, fused=True)]

    def see_in_deviations(self, command: Tensor, condition: bool = True) -> None:
        """From now on networks see commands in standard deviations of these ``[M, C]``.

        condition: whether they see any.
        """
        scale = condition / (command.std(0, correction=0) + EPSILON)
        for policy in (self.learner, self.policy):
            policy.net.shift.copy_(command.mean(0))
            policy.net.scale.copy_(scale)

    def fit_policy(
        self, episodes: FlatEpisodes, index: Tensor, command: Tensor, weight: Tensor | None = None
    ) -> float:
        """The mean loss of updates on the steps ``[U, B]`` with commands ``[U, B, C]``.

        weight ``[M]``: of all steps.
        """
        examples = [command, episodes.action[index]]
        if weight is not None:
            examples.append(weight[index])
        rows = episodes.row[index]
        own_way = differs(self, Commanded, "update", "descend")
        if not own_way and may_compile(self, 0, self.learner.net.net):
            from lightning_rl.methods.upside_down.fused import update_policy

            losses = update_policy(self, episodes.observed(rows), *examples)
        else:
            losses = one_by_one(self.update, episodes, rows, *examples)
        return self.count_updates("train/policy_loss", losses)

    def update(
        self, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor | None = None
    ) -> Tensor:
        """One Adam step on the weighted negative log-likelihood of the actions taken; the loss."""
        loss = self.learner.negative_log_likelihood(obs, command, action, weight)
        loss = self.descend(0, loss, self.cfg.max_grad_norm)
        self.average.update()
        return loss


class UpsideDown(Commanded):
    """A policy that is asked for a return or an advantage, and its supervised training.

    Arguments and errors are those of ``Method``. Own networks: ``policy`` takes obs ``[..., O]``
    and command ``[..., C]``, gives logits ``[..., A]`` or mean and log deviation ``[..., 2A]``;
    ``critic`` takes obs, gives ``[..., 1]``, of ``fitted_advantage`` ``feature_size`` more.

    Example:
        >>> method = RCPA("LunarLander-v3", seed=0, hidden=[64, 64])
        >>> pl.Trainer(max_epochs=50).fit(method, datamodule=method.rollouts(num_workers=2))

    Attributes:
        critic: a network that estimates values; None where no part needs one.
        critic_fit: how it is fitted; there with a critic alone.
        command, weighting: parts of the method.
        target: the commands of the next episodes.
    """

    Config = CONFIG
    network_names: ClassVar[Mapping[str, str]] = {"policy": "hidden", "critic": "critic_hidden"}
    cfg: UpsideDownConfig
    critic: Any  # a module

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg, spec = self.cfg, self.spec
        if cfg.offline:
            self.log_x_axis = "num_updates"  # the steps stay as many as the dataset has
        self.max_return = spec.max_return if cfg.max_return is None else cfg.max_return
        command = COMMANDS.make(cfg, {"max_return": self.max_return})
        weighting = WEIGHTINGS.make(cfg)
        limit = self.max_return if cfg.targets_episode_returns else None
        target = TARGETS.make(cfg, {"max_return": limit})
        if not all(is_ours(type(part)) for part in (command, weighting, target)):
            from lightning_rl.methods.upside_down.own_parts import checked

            command, weighting, target = checked(command), checked(weighting), checked(target)
        self.command, self.weighting = command, weighting
        self.command_names = self.command.names
        distribution = spec.distribution()
        with seeded_torch(self.seed, "initialisation"):
            net = self._policy_network(distribution.output_size(spec.action_size))
            self.critic = None
            if cfg.critic:
                self.critic_fit = part_of(cfg.critic, cfg)
                self.critic = self.critic_fit.network(self)
        scale = (1.0,) * len(self.command_names)
        if not cfg.standardise:
            scale = self.command.scales(cfg.return_scale)
        # without ``condition`` the scale is 0: the network sees no command
        shown = [cfg.condition * each for each in scale]
        kind = NoisyCommandPolicy if cfg.command_draw == "step" else CommandPolicy
        self.make_policies(net, shown, cfg.guidance, kind)
        self.target = NextCommands(cfg, target, self.command)
        self.calibration = Calibration()

    def _policy_network(self, outputs: int) -> nn.Module:
        """How the command enters: the ``network`` of the config, or the user's own."""
        cfg = self.cfg
        obs_size, command_size = self.spec.obs_size, len(self.command_names)

        def build(size: int) -> nn.Module:
            if cfg.network == "layers":
                scales = cfg.gate_scale, cfg.output_scale
                return GatedLayersNet(size, command_size, outputs, cfg.hidden, *scales)
            if self.spec.frames is None:
                return GatedNet(size, command_size, outputs, cfg.hidden)
            from lightning_rl.nets.images import GatedFeatures

            return GatedFeatures(size, command_size, outputs, cfg.hidden)

        return self.network(
            "policy", lambda: self.encoded(build), takes=[obs_size, command_size], gives=[outputs]
        )

    def rollouts(
        self, num_workers: int = 0, dataset: Dataset | Sequence[Episode] | None = None
    ) -> UpsideDownRollouts:
        """The data that the method learns from and is evaluated on.

        Args:
            num_workers: processes that play episodes; 0: none besides this one.
            dataset: with ``offline``: the episodes that are learned from; none are played then but
                those of evaluations.
        """
        if not self.cfg.offline and dataset is None:
            return UpsideDownRollouts(self, num_workers)
        from lightning_rl.methods.upside_down.offline import OfflineRollouts

        return OfflineRollouts(self, num_workers, dataset)

    def budget_share(self) -> float:
        """Offline of ``max_epochs``: no environment steps are taken."""
        if not self.cfg.offline:
            return super().budget_share()
        updates = sum(self.cfg.updates_per_epoch.values())
        return int(self.num_updates) / (self.cfg.max_epochs * updates)

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        optimizers = super().make_optimizers()
        if self.critic is not None:
            rate = self.critic_fit.critic_learning_rate
            optimizers.append(torch.optim.Adam(self.critic.parameters(), rate, fused=True))
        return optimizers

    # An epoch

    def train_epoch(self, batch: UpsideDownEpoch) -> None:
        """Fits the critic, if a part needs one, and the policy; sets the target."""
        episodes, index = batch.episodes, batch.index["policy"]
        scalars = dict(batch.scalars)
        if self.critic is not None:
            scalars["train/value_loss"] = self.critic_fit.fit(self, episodes, batch.index["critic"])
            episodes = judged = self.critic_fit.judge(self, episodes)
            scalars["train/explained_variance"] = judged.explained_variance()

        obtained = self.command.fulfilled(episodes)  # [M, C]
        self.check_finite(f"the {self.command_names[0]} label", float(obtained.abs().max()))
        scalars["train/label_sd"] = float(obtained[:, 0].std(correction=0))
        fulfilled = self.scale_commands(obtained)
        command = fulfilled[index]  # [U, B, C]
        if batch.segment is not None:
            command = self.command.fulfilled_within(episodes, index, batch.segment)

        weight = self.weighting.weights(episodes)  # [M]
        if weight is not None:
            self.check_finite("the weight", float(weight.max()))
            scalars["train/effective_sample_share"] = float(effective_sample_share(weight))

        scalars["train/policy_loss"] = self.fit_policy(episodes, index, command, weight)
        self.set_target(fulfilled[:, 0], batch)

        self.env_steps += batch.env_steps
        self.episodes += batch.num_episodes
        self.held_out_env_steps += batch.held_out_env_steps
        with evaluating(self.policy, self.learner):
            scalars |= self._diagnostics(batch, command)
        self.log_scalars(scalars | self.speed_scalars(batch.env_steps))

    def scale_commands(self, obtained: Tensor) -> Tensor:
        """The commands ``[M, C]`` that what was ``obtained`` fulfils.

        With ``standardise`` networks see them in standard deviations: those ``in_deviations`` are
        given so, others the networks scale from now on.
        """
        cfg = self.cfg
        if cfg.commands_in_deviations:
            return standardise(obtained, cfg.command_limit)
        if cfg.standardise:
            self.see_in_deviations(obtained, cfg.condition)
        return obtained

    def fit_policy(
        self, episodes: FlatEpisodes, index: Tensor, command: Tensor, weight: Tensor | None = None
    ) -> float:
        self.policy.fit_usual(command)  # which guidance leads away from
        self.calibration.clear()  # it is of the policy before these updates
        return super().fit_policy(episodes, index, command, weight)

    def set_target(self, label: Tensor, batch: UpsideDownEpoch) -> None:
        """Sets the target of the next commands from those labels that ``target_labels`` names.

        label ``[M]``: of all steps. With ``best`` it was set as the episodes were stored.
        """
        cfg, index = self.cfg, batch.index["policy"]
        if cfg.target_labels == "buffer":
            self.target.fit(label)
        elif cfg.target_labels == "step":
            self.target.fit(label[index.flatten()])
        elif cfg.target_labels == "minibatch":
            self.target.fit(label[index])
        elif cfg.target_labels == "episode":
            newest = cfg.target_episodes or len(batch.episodes.first)
            self.target.fit(label[batch.episodes.first[-newest:]])
        self.check_finite("the target", float(self.target.numbers.abs().max()))
        if isinstance(self.policy, NoisyCommandPolicy):
            self.policy.command_noise.copy_(self.target.step_noise())

    def _diagnostics(self, batch: UpsideDownEpoch, command: Tensor) -> dict[str, float]:
        episodes, index = batch.episodes, batch.index["policy"][-1]
        mean, sd, *_ = self.target.numbers.tolist()
        obs = episodes.observed(episodes.row[index])
        entropy = self.policy.distribution(obs, command[-1]).entropy()
        scalars = {
            "command/target_mean": mean,
            "command/target_sd": sd,
            "train/entropy": float(entropy.mean()),
            "time/held_out_env_steps": float(self.held_out_env_steps),
        }
        saturation = self.policy.net.saturation(command[-1])
        if saturation is not None:
            scalars["train/gate_saturation"] = saturation
        held_out = batch.held_out
        if held_out is not None:
            obs, fulfilled = held_out.observed(held_out.row), self.command.fulfilled(held_out)
            log_prob = self.learner.executed_log_prob(obs, fulfilled, held_out.action)
            scalars["held_out/policy_loss"] = -float(log_prob.mean())
        return scalars

    # What is asked of the policy

    def first_command(self, given: Mapping[str, float] | None = None) -> tuple[float, ...]:
        """The mean of the target; for UDRL the lower end of its range, as the paper has it.

        Of a first number that is given the others follow as in training.
        """
        return self.target.complete((given or {}).get(self.command_names[0]))

    def command_rule(self) -> CommandRule | None:
        return self.command.after if self.cfg.command_rule == "decrease" else None

    def calibrated(self) -> Calibration | None:
        return None if self.calibration.limits is None else self.calibration

    def command_limits(self) -> tuple[float, float] | None:
        return self.target.limits if self.cfg.condition else None

    def probe_commands(self) -> Mapping[str, tuple[float, ...]]:
        if not self.cfg.condition:
            return {}
        probes = zip(PROBES, self.target.probes.tolist(), strict=True)
        return {name: self.target.complete(value) for name, value in probes}

    def validation_step(self, evaluated: Mapping[str, list[Episode]], batch_idx: int) -> None:
        super().validation_step(evaluated, batch_idx)
        probes = self.probe_commands()
        if not probes:
            return
        commands = {"eval": self.first_command(), **probes}
        asked = np.repeat([command[0] for command in commands.values()], self.cfg.eval_episodes)
        obtained = np.array([episode.ret for name in commands for episode in evaluated[name]])
        low, high = (self.scalars[f"{name}/return_mean"] for name in probes)
        self.log_scalars(
            {
                "eval/command_sensitivity": high - low,
                "eval/rank_correlation": rank_correlation(asked, obtained),
            }
        )

    def adopt(self, weights: Mapping[str, Tensor]) -> None:
        """Takes over parameters, the usual command and scales that were fitted, and no more."""
        cfg = self.cfg
        kept = ["guidance", "command_noise"]  # this policy's own
        scales_are_fitted = cfg.condition and cfg.standardise and not cfg.commands_in_deviations
        if not scales_are_fitted:
            kept += ["net.scale", "net.shift"]
        own = self.policy.state_dict()
        weights = {name: own[name] if name in kept else value for name, value in weights.items()}
        super().adopt(weights)
        self.learner.load_state_dict(weights)
        if scales_are_fitted:  # until there are labels, what is usual is asked for
            self.target.ask_for(weights["net.shift"])


@register_method("UDRL")
class UDRL(UpsideDown):
    """Upside-Down RL: asked for a return within a number of steps, taught by the best episodes."""


@register_method("RCP-R")
class RCPR(UpsideDown):
    """Reward-Conditioned Policies on returns; steps count by advantage, or by return-to-go."""


@register_method("RCP-A")
class RCPA(UpsideDown):
    """Reward-Conditioned Policies on advantages over a learned value."""
