"""Upside-down RL: UDRL (Srivastava et al. 2019, arXiv 1912.02877), RCP-R and RCP-A
(Reward-Conditioned Policies, Kumar, Peng and Levine 2019, arXiv 1912.13465), and what lies between
them.

A policy is taught, by (weighted) supervised learning on the agent's own episodes, to answer "which
action turns out this well", and is then asked for a little more than it has seen. Keys choose the
parts: which episodes are kept (``buffer``), what a command says (``command``), how much a step
counts (``weights``), what is asked for next (``target``). The words of an epoch:

* label: how well a step turned out, its return-to-go or its advantage, ``[M]``;
* command: what the network is asked for, ``[C]``; in training that is what really happened, the
  label or a part of it;
* weight: how much a step counts in the loss, ``[M]``;
* target: the distribution that the commands of the next episodes are drawn from.

Where we differ from the papers and the earlier code is in ``docs/upside_down.md``.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.adam import Adam
from lightning_rl.core.seeding import generator, seeded_torch
from lightning_rl.core.types import Episode, Request
from lightning_rl.functional import upside_down as functional
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.functional.returns import discounted_returns, lambda_returns
from lightning_rl.functional.upside_down import (
    SEGMENTS,
    Target,
    exponential_weights,
    next_command,
    standardise,
)
from lightning_rl.methods.base import Method, episode_scalars
from lightning_rl.methods.registry import register_method
from lightning_rl.methods.upside_down_config import UpsideDownConfig
from lightning_rl.nets.command import Calibration, CommandPolicy, ScaledCommand
from lightning_rl.nets.command_variants import COMMAND_NETS, NoisyCommandPolicy
from lightning_rl.nets.layers import MovingAverage, evaluating, loss_of, note_changes, relu_mlp
from lightning_rl.rollouts.data_module import CollectedRollouts, training_requests, warm_up_requests
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, FlatEpisodes, flatten
from lightning_rl.rollouts.player import CommandRule

_NEWEST = 20  # episodes that the length of the next ones is guessed from
_MAX_CATCH_UP = 4.0  # a single epoch trains at most for this many times steps_per_iter
PROBES = {
    "eval_low": 0.1,
    "eval_high": 0.9,
}  # evaluations at these quantiles of the labels, of UDRL of the returns it keeps


class CommandTarget(nn.Module):
    """Where the next commands come from, and which one evaluation asks for.

    It is set from the returns of the best episodes as soon as these are there (``target_labels``
    best, as UDRL does), or from the labels of steps at the end of an epoch. numbers: of the
    ``Target``; probes: what the evaluations ``PROBES`` ask for.
    """

    numbers: Tensor
    horizon: Tensor
    probes: Tensor

    def __init__(self, cfg: UpsideDownConfig, command_size: int, max_return: float):
        super().__init__()
        self.cfg, self.max_return = cfg, max_return if cfg.targets_episode_returns else math.inf
        self.register_buffer("numbers", torch.zeros(4))
        self.register_buffer("horizon", torch.zeros(command_size - 1))
        self.register_buffer("probes", torch.zeros(2))

    @property
    def target(self) -> Target:
        return Target(*self.numbers.tolist())

    def fit(self, label: Tensor) -> None:
        """Sets the target from labels ``[M]``, or ``[U, B]`` of minibatches."""
        weight = exponential_weights(
            standardise(label, math.inf), self.cfg.target_temperature, self.cfg.max_weight
        )
        targets: dict[str, Callable[[Tensor], Target]] = {
            "range": functools.partial(functional.range_target, max_return=self.max_return),
            "max": functional.max_target,
            "tilted": functools.partial(functional.tilted_target, weight=weight),
            "quantile": functools.partial(
                functional.quantile_target, quantile=self.cfg.target_quantile
            ),
        }
        self.numbers.copy_(torch.tensor(targets[self.cfg.target](label)))
        self.probes.copy_(functional.quantiles(label, list(PROBES.values())))

    def see(self, buffer: EpisodeBuffer) -> None:
        """After episodes were stored: sets horizon = mean length of the best; for
        ``target_labels`` best, sets the target.
        """
        returns, lengths = buffer.highest(self.cfg.last_few)
        self.horizon.fill_(round(float(np.mean(lengths))))
        if self.cfg.target_labels == "best":
            self.fit(torch.from_numpy(returns))
            stored = buffer.returns()
            self.numbers[2:].copy_(torch.tensor([stored.min(), stored.max()]))
            self.probes.copy_(torch.from_numpy(np.quantile(stored, list(PROBES.values()))))

    def draw(self, rng: np.random.Generator, count: int) -> list[tuple[float, ...]]:
        """First commands of ``count`` episodes."""
        spread = 0.0 if self.cfg.command_draw == "step" else self.cfg.target_spread
        noise = functional.NOISES[self.cfg.target](rng, count)
        drawn = functional.draw_targets(self.target, spread, noise, self.cfg.target_limit)
        return [self.command(value) for value in drawn.tolist()]

    def command(self, value: float) -> tuple[float, ...]:
        """The command that asks for this return or advantage."""
        return (value, *self.horizon.tolist())

    def step_noise(self) -> Tensor:
        """Of commands that are drawn at every step: their standard deviation, the lowest and the
        highest.
        """
        limits = (
            self.target[2:] if self.cfg.target_limit else (torch.finfo().min, torch.finfo().max)
        )
        return torch.tensor([self.cfg.target_spread * self.target.sd, *limits])


@dataclass
class UpsideDownEpoch:
    """What one epoch trains on: all stored episodes, and which of their steps each update of each
    network sees, ``[U, B]``.

    segment ``[U, B]``: how many steps the command of a step of the policy's updates is about.
    """

    episodes: FlatEpisodes
    index: Mapping[str, Tensor]
    segment: Tensor
    held_out: FlatEpisodes | None
    env_steps: int
    num_episodes: int
    held_out_env_steps: int
    scalars: Mapping[str, float]


class UpsideDownRollouts(CollectedRollouts):
    """Plays commands of the target, keeps the best or the newest episodes, and says which steps the
    updates see.

    Epoch 0 plays uniformly random actions. Where ``steps_per_iter`` is set, later epochs play as
    many whole episodes as make about that many steps, and the numbers of updates follow the steps
    that were really played.
    """

    def __init__(self, method: UpsideDown, num_workers: int):
        super().__init__(method, num_workers, method.cfg.overlap)
        self.cfg, self.target, self.command_names = method.cfg, method.target, method.command_names
        best = 0 if self.cfg.buffer == "newest" else self.cfg.replay_size
        newest = 0 if self.cfg.buffer == "best" else self.cfg.recent_episodes
        self.buffer = EpisodeBuffer(best, newest, self.cfg.window_steps)

    def requests(self, epoch: int) -> list[Request]:
        cfg = self.cfg
        if epoch == 0:
            return warm_up_requests(self.run_seed, cfg.learning_starts)
        count = cfg.num_episodes_per_iter or math.ceil(
            (cfg.steps_per_iter or 0) / self.buffer.mean_length(_NEWEST)
        )
        commands = self.target.draw(
            generator(self.run_seed, "command", epoch), count + cfg.num_held_out_episodes_per_iter
        )
        return training_requests(self.run_seed, epoch, commands, self.noise_hold())

    def _split(self, epoch: int, episodes: list[Episode]) -> tuple[list[Episode], list[Episode]]:
        """Episodes to train on, and those held out."""
        held_out = self.cfg.num_held_out_episodes_per_iter if epoch else 0
        return episodes[: len(episodes) - held_out], episodes[len(episodes) - held_out :]

    def absorb(self, epoch: int, episodes: list[Episode]) -> None:
        self.buffer.add(self._split(epoch, episodes)[0])
        self.target.see(self.buffer)

    def prepare(self, epoch: int, episodes: list[Episode], waited: float) -> UpsideDownEpoch:
        (fresh, held_out), stored = self._split(epoch, episodes), self.buffer.flat()
        env_steps = sum(episode.env_steps for episode in fresh)
        index, segment = self.minibatches(epoch, env_steps, stored)
        judged, judged_steps = (
            flatten(held_out) if held_out else None,
            sum(episode.env_steps for episode in held_out),
        )
        scalars = {**self._scalars(fresh), "time/collection_wait": waited}
        return UpsideDownEpoch(
            stored, index, segment, judged, env_steps, len(fresh), judged_steps, scalars
        )

    def minibatches(
        self, epoch: int, env_steps: int, stored: FlatEpisodes
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Which steps each update of each network sees, and the lengths of the segments that the
        policy's commands are about.
        """
        cfg, rng, index = self.cfg, generator(self.run_seed, "minibatch", epoch), {}
        share = (
            1.0
            if cfg.steps_per_iter is None
            else min(env_steps / cfg.steps_per_iter, _MAX_CATCH_UP)
        )
        updates = {"policy": cfg.num_updates_per_iter} | (
            {"critic": cfg.num_critic_updates_per_iter} if cfg.has_critic else {}
        )
        for network, count in updates.items():
            shape = (max(1, round(count * share)), cfg.batch_size)
            index[network] = torch.from_numpy(self.buffer.draw(rng, shape, cfg.sample_by))
        left = stored.left[index["policy"]].numpy()
        return index, torch.from_numpy(SEGMENTS[cfg.segments](left, rng.random(left.shape)))

    def _scalars(self, episodes: list[Episode]) -> dict[str, float]:
        returns, commands = (
            self.buffer.returns(),
            [e.request.command for e in episodes if e.request.command is not None],
        )
        asked = (
            zip(self.command_names, np.mean(commands, axis=0).tolist(), strict=True)
            if commands
            else ()
        )
        return {
            **episode_scalars("rollout", episodes),
            "buffer/episodes": float(len(returns)),
            "buffer/return_mean": float(returns.mean()),
            "buffer/return_min": float(returns.min()),
            "buffer/return_max": float(returns.max()),
            **{f"command/{name}": value for name, value in asked},
        }

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "buffer": self.buffer.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.buffer.load_state_dict(state_dict["buffer"], self.method.spec)
        super().load_state_dict(state_dict)


LABELS: dict[str, Callable[[FlatEpisodes, float], Tensor]] = {
    "return": lambda episodes, gamma: episodes.to_go[episodes.row],
    "return_to_go": lambda episodes, gamma: discounted_returns(
        episodes.reward, gamma, episodes.last
    ),
    "episode_return": lambda episodes, gamma: episodes.episode_return,
}
"""How well each step turned out, ``[M]``, without a critic: the undiscounted rest, the
discounted rest, the whole episode.
"""


def segment_commands(
    episodes: FlatEpisodes, label: Tensor, index: Tensor, segment: Tensor
) -> Tensor:
    """The commands that segments fulfilled, ``[..., 2]``: the return of ``segment`` steps from
    each step on, and their number.
    """
    row = episodes.row[index]
    return torch.stack(
        [episodes.to_go[row] - episodes.to_go[row + segment], segment.to(label.dtype)], dim=-1
    )


def label_commands(episodes: FlatEpisodes, label: Tensor, index: Tensor, segment: Tensor) -> Tensor:
    """The labels of the steps, ``[..., 1]``."""
    return label[index].unsqueeze(-1)


class Command(NamedTuple):
    """A kind of command. names: of its numbers; label: what it asks of a step; commands: those
    that steps fulfilled.
    """

    names: tuple[str, ...]
    label: str
    commands: Callable[[FlatEpisodes, Tensor, Tensor, Tensor], Tensor]


COMMANDS = {
    "return_horizon": Command(("return", "horizon"), "return", segment_commands),
    "return": Command(("return",), "return_to_go", label_commands),
    "advantage": Command(("advantage",), "advantage", label_commands),
}

TARGET_LABELS: dict[str, Callable[[Tensor, UpsideDownEpoch, int], Tensor]] = {
    "buffer": lambda label, batch, newest: label,
    "step": lambda label, batch, newest: label[batch.index["policy"].flatten()],
    "minibatch": lambda label, batch, newest: label[batch.index["policy"]],
    "episode": lambda label, batch, newest: label[batch.episodes.first[-newest:]],
}
"""By ``target_labels``: which of the labels ``[M]`` the next target is fitted to; newest:
episodes that count, 0: all.
"""


class UpsideDown(Method):
    """A policy that is asked for a return or an advantage, and its supervised training. See
    ``Method`` for arguments and errors.

    Own networks: ``policy`` takes obs ``[..., O]`` and command ``[..., C]``, gives logits ``[...,
    A]`` or mean and log deviation ``[..., 2A]``; ``critic`` takes obs, gives ``[..., 1]``, of
    ``fitted_advantage`` ``feature_size`` more.

    Example:
        >>> method = RCPA("LunarLander-v3", seed=0, hidden=[64, 64])
        >>> pl.Trainer(max_epochs=50).fit(method, datamodule=method.rollouts(num_workers=2))
    """

    Config = UpsideDownConfig
    network_names: ClassVar[Mapping[str, str]] = {"policy": "hidden", "critic": "critic_hidden"}
    cfg: UpsideDownConfig
    learner: CommandPolicy  # is trained
    policy: (
        CommandPolicy  # plays: a moving average of the learner, or with tau 1 the learner itself
    )
    critic: nn.Module | None

    def __init__(self, gamename: str, **options: Any):
        super().__init__(gamename, **options)
        cfg, spec = self.cfg, self.spec
        self.kind, self.command_names = COMMANDS[cfg.command], COMMANDS[cfg.command].names
        self.max_return = spec.max_return if cfg.max_return is None else cfg.max_return
        distribution, size = distribution_for(spec.continuous), len(self.command_names)
        self.executed, outputs = distribution.executed, distribution.output_size(spec.action_size)
        own = {"layers": {"gate_scale": cfg.gate_scale, "output_scale": cfg.output_scale}}.get(
            cfg.network, {}
        )
        build = functools.partial(
            COMMAND_NETS[cfg.network], spec.obs_size, size, outputs, cfg.hidden, **own
        )
        values = 1 + cfg.fits_advantages * functional.feature_size(
            spec.action_size, spec.continuous
        )
        critic = functools.partial(relu_mlp, spec.obs_size, cfg.critic_hidden or [], values)
        with seeded_torch(self.seed, "initialisation"):
            net = self.network("policy", build, takes=[spec.obs_size, size], gives=[outputs])
            self.critic = (
                self.network("critic", critic, takes=[spec.obs_size], gives=[values])
                if cfg.has_critic
                else None
            )
        scale = (1.0, 1.0) if cfg.standardise else (cfg.return_scale, cfg.horizon_scale)
        scaled = ScaledCommand(
            net, [cfg.condition * each for each in scale[:size]], cfg.command_limit
        )
        kinds = {"episode": CommandPolicy, "step": NoisyCommandPolicy}
        self.learner = kinds[cfg.command_draw](
            scaled, distribution, spec.action_size, size, cfg.guidance
        )
        self.policy = (
            self.learner if cfg.tau == 1 else copy.deepcopy(self.learner).requires_grad_(False)
        )
        average, learned = (
            policy.get_submodule("net.net") for policy in (self.policy, self.learner)
        )
        self.average = MovingAverage(average, learned, cfg.tau)
        self.target, self.calibration = CommandTarget(cfg, size, self.max_return), Calibration()

    def rollouts(self, num_workers: int = 0) -> UpsideDownRollouts:
        return UpsideDownRollouts(self, num_workers)

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        rates = (
            (self.learner, self.cfg.learning_rate),
            (self.critic, self.cfg.critic_learning_rate),
        )
        return [Adam(net.parameters(), rate) for net, rate in rates if net is not None]

    def adopt(
        self, weights: Mapping[str, Tensor]
    ) -> None:  # statistics, too, but what the config or the target says is our own
        measured = (
            self.cfg.condition and self.cfg.standardise and not self.cfg.commands_in_deviations
        )  # by scale_commands
        own = ("guidance", "command_noise", *(() if measured else ("net.scale", "net.shift")))
        weights = {
            name: self.policy.state_dict()[name] if name in own else value
            for name, value in weights.items()
        }
        super().adopt(weights)
        self.learner.load_state_dict(weights)
        if measured:  # until there are labels, what is usual is asked for
            self.target.numbers[[0, 2, 3]], self.target.horizon[:] = (
                weights["net.shift"][0],
                weights["net.shift"][1:],
            )

    def train_epoch(self, batch: UpsideDownEpoch) -> None:
        """Fit the critic, advantages, labels and commands, weights, fit the policy, set the
        target.
        """
        cfg, episodes, scalars = self.cfg, batch.episodes, dict(batch.scalars)
        note_changes(self)  # what a user has added to a network needs autograd
        labels = self.labels(batch, scalars)
        label, index = labels[self.kind.label], batch.index["policy"]
        self.check_finite(f"the {self.command_names[0]} label", float(label.abs().max()))
        asked = standardise(label, cfg.command_limit) if cfg.commands_in_deviations else label
        if cfg.standardise and not cfg.commands_in_deviations:
            self.scale_commands(
                self.kind.commands(
                    episodes, asked, torch.arange(len(label), device=label.device), episodes.left
                )
            )
        command = self.kind.commands(episodes, asked, index, batch.segment)
        self.policy.fit_usual(command)
        self.calibration.clear()  # it is of the policy before these updates
        examples = [episodes.obs[episodes.row[index]], command, episodes.action[index]]
        if cfg.weights != "none":
            weight = self.weights(labels[cfg.weights])
            scalars["train/effective_sample_share"] = float(
                functional.effective_sample_share(weight)
            )
            examples.append(weight[index])
        scalars["train/policy_loss"] = self.fit(
            "train/policy_loss", self.update, zip(*examples, strict=True)
        )
        self.env_steps += batch.env_steps
        self.episodes += batch.num_episodes
        self.held_out_env_steps += batch.held_out_env_steps
        self.set_target(asked, batch)
        with evaluating(self.policy, self.learner):
            self.log_scalars(
                scalars
                | self._diagnostics(batch, command, label)
                | self.speed_scalars(batch.env_steps)
            )

    def labels(self, batch: UpsideDownEpoch, scalars: dict[str, float]) -> dict[str, Tensor]:
        """The labels ``[M]`` that commands and weights are made of, by name; those of a critic
        after it was fitted.
        """
        cfg, labels = self.cfg, dict[str, Tensor]()
        if self.critic is not None:
            scalars["train/value_loss"] = self.fit_critic(self.critic, batch)
            labels |= self.advantages(self.critic, batch.episodes, scalars)
        labels |= {
            name: LABELS[name](batch.episodes, cfg.gamma)
            for name in (self.kind.label, cfg.weights)
            if name in LABELS
        }
        return {name: label.clamp(max=cfg.highest_label) for name, label in labels.items()}

    def weights(self, label: Tensor) -> Tensor:
        """Exponential weights ``[M]`` of mean 1: how much each step counts."""
        weight = exponential_weights(
            standardise(label, math.inf), self.cfg.temperature, self.cfg.max_weight
        )
        self.check_finite("the exponential weight", float(weight.max()))
        return weight

    def scale_commands(self, command: Tensor) -> None:
        """Makes the networks see commands ``[M, C]`` in standard deviations from their mean."""
        scale = self.cfg.condition / (command.std(0, correction=0) + functional.EPSILON)
        for policy in (self.learner, self.policy):
            assert isinstance(policy.net, ScaledCommand)
            policy.net.shift.copy_(command.mean(0))
            policy.net.scale.copy_(scale)

    def update(
        self, obs: Tensor, command: Tensor, action: Tensor, weight: Tensor | None = None
    ) -> Tensor:
        """One Adam step on the (weighted) negative log-likelihood of the actions really taken;
        the loss, detached.
        """
        loss, backward = self.learner.negative_log_likelihood(obs, command, action, weight)
        loss = self.descend(0, loss, self.cfg.max_grad_norm, backward)
        self.average.update()
        return loss

    def fit_critic(self, critic: nn.Module, batch: UpsideDownEpoch) -> float:
        """Fits the critic to lambda-returns that stay fixed meanwhile; the mean loss."""
        cfg, episodes, index = self.cfg, batch.episodes, batch.index["critic"]
        with evaluating(critic):
            values = critic(episodes.obs)[:, 0] * cfg.value_scale
        target = self.lambda_returns(episodes, values, cfg.value_lambda) / cfg.value_scale
        self.check_finite("the value target", float(target.abs().max()))
        examples = [episodes.obs[episodes.row[index]], target[index]]
        examples += [self.executed(episodes.action[index])] if cfg.fits_advantages else []
        return self.fit(
            "train/value_loss",
            functools.partial(self.update_critic, critic),
            zip(*examples, strict=True),
        )

    def update_critic(
        self, critic: nn.Module, obs: Tensor, target: Tensor, action: Tensor | None = None
    ) -> Tensor:
        """One Adam step of the critic alone; the loss, detached."""
        loss, backward = loss_of(
            critic, obs, functools.partial(functional.value_error, target=target, action=action)
        )
        return self.descend(1, loss, self.cfg.critic_max_grad_norm, backward)

    def lambda_returns(
        self, episodes: FlatEpisodes, values: Tensor, gae_lambda: float
    ) -> Tensor:  # [M]; values [M + E]
        ended = episodes.terminated if self.cfg.bootstrap_truncated else episodes.last
        discount = self.cfg.gamma * (~ended).to(values.dtype)
        return lambda_returns(
            episodes.reward, discount, values[episodes.row + 1], episodes.last, gae_lambda
        )

    def advantages(
        self, critic: nn.Module, episodes: FlatEpisodes, scalars: dict[str, float]
    ) -> dict[str, Tensor]:
        """Advantages ``[M]`` of all stored steps, as sampled and as fitted; adds to ``scalars``
        how good the values are.
        """
        with evaluating(critic):
            output = critic(episodes.obs) * self.cfg.value_scale
        values, value = output[:, 0], output[episodes.row, 0]
        monte_carlo = self.lambda_returns(episodes, values, 1.0)
        scalars["train/explained_variance"] = float(
            functional.explained_variance(value, monte_carlo)
        )
        labels = {"advantage": self.lambda_returns(episodes, values, self.cfg.gae_lambda) - value}
        if self.cfg.fits_advantages:
            labels["fitted_advantage"] = functional.fitted_advantage(
                output[episodes.row], self.executed(episodes.action)
            )
        return labels

    def set_target(self, label: Tensor, batch: UpsideDownEpoch) -> None:
        """Sets the target of the next commands from labels ``[M]``, unless ``target_labels`` is
        best: then ``see`` has set it.
        """
        if self.cfg.target_labels != "best":
            self.target.fit(
                TARGET_LABELS[self.cfg.target_labels](label, batch, self.cfg.target_episodes or 0)
            )
        if isinstance(self.policy, NoisyCommandPolicy):
            self.policy.command_noise.copy_(self.target.step_noise())

    def first_command(
        self,
    ) -> tuple[float, ...]:  # of UDRL the lower end of the exploratory range, as the paper has it
        return self.target.command(self.target.target.mean)

    def command_rule(self) -> CommandRule | None:
        gamma = self.cfg.gamma if self.cfg.command == "return" else 1.0
        decrease = functools.partial(
            next_command, gamma=gamma, max_return=self.max_return, size=len(self.command_names)
        )
        return {"hold": None, "decrease": decrease}[self.cfg.command_rule]

    def calibrated(self) -> Calibration | None:
        return None if self.calibration.limits is None else self.calibration

    def command_limits(self) -> tuple[float, float] | None:
        return self.target.target[2:] if self.cfg.condition else None

    def probe_commands(self) -> Mapping[str, tuple[float, ...]]:
        probes = zip(PROBES, self.target.probes.tolist(), strict=True)
        return (
            {name: self.target.command(value) for name, value in probes}
            if self.cfg.condition
            else {}
        )

    def validation_step(self, evaluated: Mapping[str, list[Episode]], batch_idx: int) -> None:
        super().validation_step(evaluated, batch_idx)
        if probes := self.probe_commands():
            asked = {"eval": self.first_command(), **probes}
            pairs = [
                (command[0], episode.ret)
                for name, command in asked.items()
                for episode in evaluated[name]
            ]
            low, high = (self.scalars[f"{name}/return_mean"] for name in probes)
            ranks = functional.rank_correlation(*np.transpose(pairs))
            self.log_scalars(
                {"eval/command_sensitivity": high - low, "eval/rank_correlation": ranks}
            )

    def _diagnostics(
        self, batch: UpsideDownEpoch, command: Tensor, label: Tensor
    ) -> dict[str, float]:
        mean, sd, *_ = self.target.target
        obs, command = (
            batch.episodes.obs[batch.episodes.row[batch.index["policy"][-1]]],
            command[-1],
        )
        scalars = {
            "command/target_mean": mean,
            "command/target_sd": sd,
            "train/label_sd": float(label.std(correction=0)),
            "train/entropy": float(self.policy.distribution(obs, command).entropy().mean()),
            "time/held_out_env_steps": float(self.held_out_env_steps),
        }
        assert isinstance(self.policy.net, ScaledCommand)
        if (saturation := self.policy.net.saturation(command)) is not None:
            scalars["train/gate_saturation"] = saturation
        if (held := batch.held_out) is not None:
            label = LABELS[self.kind.label](held, self.cfg.gamma).clamp(max=self.cfg.highest_label)
            asked = self.kind.commands(
                held, label, torch.arange(len(held), device=held.row.device), held.left
            )
            log_prob = self.learner.executed_log_prob(held.obs[held.row], asked, held.action)
            scalars["held_out/policy_loss"] = -float(log_prob.mean())
        return scalars


@register_method("UDRL")
class UDRL(UpsideDown):
    """Upside-Down RL: asked for a return within a number of steps, taught by the best episodes.
    See ``UpsideDown``.
    """


@register_method("RCP-R")
class RCPR(UpsideDown):
    """Reward-Conditioned Policies on returns; steps count by advantage (preset returns:
    return-to-go). See ``UpsideDown``.
    """


@register_method("RCP-A")
class RCPA(UpsideDown):
    """Reward-Conditioned Policies on advantages over a learned value. See ``UpsideDown``."""
