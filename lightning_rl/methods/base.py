"""What every method shares: config, counters, epochs as Lightning's steps, logs, evaluation."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from pytorch_lightning import LightningModule
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from lightning_rl.core.checks import (
    check_schedulers,
    check_trainer,
    check_unfrozen,
    listed,
    seeds_from,
    whole_number,
)
from lightning_rl.core.config import method_config
from lightning_rl.core.errors import UserError
from lightning_rl.core.modules import allow, from_file
from lightning_rl.core.schema import MethodConfig, ramp
from lightning_rl.core.seeding import seeded_torch
from lightning_rl.core.types import ActionMode, Episode
from lightning_rl.envs.spaces import action_box_of, other_box
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.methods.own_networks import (
    check_shapes,
    checked_networks,
    class_names,
    refuse_sizes,
)
from lightning_rl.methods.registry import own_implementation
from lightning_rl.methods.restoring import load_state, restore_for_trainer
from lightning_rl.nets.command import Calibration
from lightning_rl.nets.normalised import Normalised, ObsNormaliser
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.data_module import Rollouts, with_greedy
from lightning_rl.rollouts.player import Collector, CommandRule

TRAINING_ONLY = ("learner.", "critic.", "agent.")
"""Beginnings of the names of weights that acting does not need."""

COUNTERS = ("env_steps", "num_updates", "episodes", "eval_env_steps", "held_out_env_steps")


class Clock(torch.optim.SGD):
    """Stepped once an epoch, without anything to optimize; see ``Method.configure_optimizers``."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Ticks. (torch's own step would import its compiler.)"""
        return None if closure is None else closure()


class Method(LightningModule):
    """A learning method: networks, optimizers, and what happens in an epoch.

    Environments and buffers are in ``rollouts()``. It is an ordinary LightningModule:
    ``Trainer(...).fit(method, datamodule=method.rollouts(num_workers=2))``. An epoch is one
    training batch, a collection and all updates on it, which ``train_epoch`` makes by hand.
    Lightning's ``global_step`` counts the optimizer steps that it sees, and one of a clock for each
    epoch; ``env_steps`` and ``num_updates`` are counted here.

    A subclass sets ``Config`` and ``self.policy``, and defines ``rollouts``, ``make_optimizers``
    and ``train_epoch``. The last adds to ``env_steps``, ``episodes`` and ``num_updates`` (but for
    those of ``count_updates``), and calls ``log_scalars`` once.

    Args:
        gamename: the environment, by the project's name, a Gymnasium id, or ``module:Id-v0``.
        implementation: which of the class's implementations; the first where it has several.
        seed: all randomness of the run is a function of it.
        preset: a block under ``presets:`` of the implementation's config.
        config: values of keys, e.g. those of a run's ``config.yaml``; or the whole, checked config.
        networks: own networks by the names of ``network_names``; the others are built as the config
            says.
        action_box: of a checkpoint: the lower and upper bounds of continuous actions that its
            policy learned, see ``other_box``.
        settings: values of single keys, above all others. What nobody gives comes from
            ``configs/``.

    Raises:
        UserError: an unknown key, a value out of range, or an environment that the method cannot be
            used on.
    """

    Config: ClassVar[type[MethodConfig]]
    implementations: ClassVar[tuple[str, ...]] = ()
    command_names: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()  # of methods that are asked for a return of each
    # of the networks that a user may give, with the key of the sizes of ours
    network_names: ClassVar[Mapping[str, str]] = {}
    stackable = False  # whether --num_seeds can train several seeds at once
    has_population = False  # whether --executor says where it is evaluated
    policy_name = "policy"  # of the policy that --reload takes, in a checkpoint's weights
    precisions: ClassVar[tuple[str, ...]] = ("32-true", "bf16-mixed")  # that a Trainer may have
    auto_gpu = True  # whether --accelerator auto takes a GPU
    # the actions that its policy is meant to be used with: films and ``LoadedAgent`` take these
    action_mode: ActionMode = "sampled"
    # what chooses the best checkpoint, and what --stop_return is about
    monitor = "eval/return_mean"
    log_x_axis = "env_steps"  # the counter that is the x axis of what is logged
    reloadable = True  # whether --reload can start from its policy's weights
    policy: Actor
    env_steps: Tensor
    num_updates: Tensor
    episodes: Tensor
    eval_env_steps: Tensor
    held_out_env_steps: Tensor

    def __init__(
        self,
        gamename: str,
        *,
        implementation: str | None = None,
        seed: int = 25,
        preset: str | None = None,
        config: MethodConfig | Mapping[str, Any] | None = None,
        networks: Mapping[str, nn.Module] | None = None,
        action_box: Sequence[Sequence[float]] | None = None,
        **settings: Any,
    ):
        super().__init__()
        self.automatic_optimization = False
        allow(gamename)
        self.implementation = own_implementation(type(self), implementation)
        self.gamename = gamename
        self.seed = seeds_from(seed)[0]
        self.spec = env_spec(gamename)
        reason = self.Config.why_unfit(self.spec) or self.why_unsupported(self.spec)
        if reason is not None:
            raise UserError(f"{self.implementation} does not fit gamename '{gamename}': {reason}")
        box = action_box_of(self.spec.action_space)
        reason = other_box(action_box, box, gamename)
        if reason is not None:
            raise UserError(reason)
        where = f"{type(self).__name__}(...)"
        self.cfg: Any = method_config(
            self.Config, self.implementation, gamename, preset, config or {}, settings, where
        )
        self.spec = self.cfg.seen(self.spec)
        self.normaliser: ObsNormaliser | None = None
        if getattr(self.cfg, "normalise_obs", False):
            self.normaliser = ObsNormaliser(self.spec.obs_size)
        self.own_networks = {} if networks is None else checked_networks(networks, self)
        if self.own_networks:
            refuse_sizes(self, where, settings)
        hparams = {
            "implementation": self.implementation,
            "gamename": gamename,
            "seed": self.seed,
            "config": dataclasses.asdict(self.cfg),
        }
        if self.own_networks:
            hparams["networks"] = class_names(self.own_networks)
        if box is not None:
            hparams["action_box"] = box
        self.save_hyperparameters(hparams, ignore=list(settings))
        for counter in COUNTERS:
            self.register_buffer(counter, torch.zeros((), dtype=torch.int64))
        # The last value of each that was logged, of several seeds their mean.
        self.scalars: dict[str, float] = {}
        self._last_time = time.perf_counter()
        self._loss: Tensor | None = None  # of the newest step

    # What a method defines

    @classmethod
    def why_unsupported(cls, spec: EnvSpec) -> str | None:
        """Why the method cannot be used on an environment, with the remedy; None where it can."""
        return None

    def rollouts(self, num_workers: int = 0) -> Rollouts:
        """The data that the method learns from and is evaluated on.

        Args:
            num_workers: processes that play episodes; 0: none besides this one. Results do not
                depend on it.
        """
        raise NotImplementedError

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        """The optimizers of the method, in a fixed order."""
        raise NotImplementedError

    def train_epoch(self, batch: Any) -> None:
        """All that is learned from an epoch's batch: the updates, the counters, the logs."""
        raise NotImplementedError

    def finished(self) -> bool:
        """Whether nothing is left to learn: asked after each epoch, and as a run is resumed."""
        return False

    def first_command(self, given: Mapping[str, float] | None = None) -> tuple[float, ...] | None:
        """The command that evaluation asks for, in the order of ``command_names``.

        given: numbers, by name, of one that is asked for instead: the others are to go with these.
        """
        return None

    def command_limits(self) -> tuple[float, float] | None:
        """Lowest and highest value of the first command that training saw."""
        return None

    def calibrated(self) -> Calibration | None:
        """Which command obtains which return, if that was found out for the policy as it is."""
        return None

    def command_rule(self) -> CommandRule | None:
        """How a command goes on after a step; None: it stays as it is."""
        return None

    def probe_commands(self) -> Mapping[str, tuple[float, ...]]:
        """Further commands to evaluate during training, by the prefix of their metrics."""
        return {}

    def prepare_evaluation(self) -> None:
        """Called before a loaded policy is evaluated; proxy methods train an agent here."""

    def acting_weights(self) -> dict[str, Tensor]:
        """The weights that acting takes."""
        weights = self.state_dict()
        return {name: weights[name] for name in weights if not name.startswith(TRAINING_ONLY)}

    def take_acting_weights(self, weights: Any) -> None:
        """Takes ``acting_weights`` out of a file."""
        load_state(self, weights, TRAINING_ONLY)

    def adopt(self, weights: Mapping[str, Tensor]) -> None:
        """Takes over what another run's policy has learned; RuntimeError if it does not fit."""
        self.policy.load_state_dict(weights)

    def budget_share(self) -> float:
        """Share of the budget that is spent, from 0 to 1 or a little above."""
        return int(self.env_steps) / (self.cfg.max_env_steps or float("inf"))

    def schedulers(self, optimizers: Sequence[torch.optim.Optimizer]) -> list[LRScheduler]:
        """What changes the learning rates after each epoch.

        From ``anneal_from`` of the budget on they fall linearly to 0.
        """
        start = getattr(self.cfg, "anneal_from", 1.0)
        if start >= 1.0:
            return []
        return [
            LambdaLR(each, lambda _: 1 - ramp(self.budget_share(), start, 1.0))
            for each in optimizers
        ]

    # What it makes use of

    def network(
        self,
        name: str,
        build: Callable[[], nn.Module],
        takes: Sequence[int] | None = None,
        gives: Sequence[int] = (),
    ) -> nn.Module:
        """The user's network of that name, or the one that the config asks for; with
        ``normalise_obs`` behind a normaliser, the same for all; a policy's masked, if actions are.

        takes, gives: the user's must give ``[B, *gives]`` for one ``[B, size]`` of each size in
        ``takes``, or UserError.
        """
        net = self.own_networks.get(name)
        if net is None:
            net = build()
        elif takes is not None:
            check_shapes(name, net, takes, gives)
        if self.normaliser is not None:
            net = Normalised(self.normaliser, net)
        if self.spec.masked and name == "policy":
            from lightning_rl.nets.masked import Masked

            net = Masked(net)
        return net

    def encoded(self, build: Callable[[int], nn.Module]) -> nn.Module:
        """``build(size)``, for observations of that size; for images, behind an encoder."""
        if self.spec.frames is None:
            return build(self.spec.obs_size)
        from lightning_rl.nets.images import Encoded, Encoder

        encoder = Encoder(self.cfg.encoder, self.spec.frames)
        return Encoded(encoder, build(encoder.size))

    def collector(self, num_workers: int, nice: int = 0) -> Collector:
        """Plays episodes of the method's policy in its environment; nice: see ``Collector``."""
        count, rule = whole_number("num_workers", num_workers, 0), self.command_rule()
        return Collector(self.spec, self.policy, count, self.cfg.chunk_size, rule, nice)

    def count_updates(self, name: str, losses: Tensor) -> float:
        """Counts an epoch's updates, by their losses ``[U]``; the mean loss.

        name: of the loss, for the message if it diverged.
        """
        self.num_updates += len(losses)
        mean = float(losses.mean())
        self.check_finite(name, mean)
        return mean

    def descend(self, number: int, loss: Tensor, max_grad_norm: float | None) -> Tensor:
        """One step of optimizer ``number`` down ``loss``, the gradient's norm clipped; the loss,
        detached.

        Through Lightning, so that callbacks, precision and profiler see every update.
        """
        optimizer = self.optimizers()[number]
        optimizer.zero_grad()
        self.manual_backward(loss)
        if max_grad_norm is not None:
            self.trainer.precision_plugin.clip_grad_by_norm(optimizer.optimizer, max_grad_norm)
        optimizer.step()
        self._loss = loss.detach()
        return self._loss

    def log_scalars(self, values: Mapping[str, float]) -> None:
        """Writes scalars to every logger at ``log_x_axis``, or at the epoch while it is larger."""
        self.scalars |= values
        step = max(int(getattr(self, self.log_x_axis)), self.current_epoch + 1)
        for logger in self.loggers:
            logger.log_metrics(dict(values), step=step)

    def report(self, name: str, value: float, count: int) -> None:
        """A metric of ``count`` episodes: for callbacks, and for ``Trainer.validate`` to print."""
        validates = self._trainer is not None and self._trainer.state.fn in ("validate", "test")
        self.log(name, value, batch_size=count, logger=validates)

    def speed_scalars(self, env_steps: int) -> dict[str, float]:
        """``time/...`` of an epoch with ``env_steps`` new steps; once an epoch, after counting."""
        now = time.perf_counter()
        speed = env_steps / (now - self._last_time)
        self._last_time = now
        return {
            "time/env_steps_per_second": speed,
            "time/num_updates": float(self.num_updates),
            "time/episodes": float(self.episodes),
        }

    def check_finite(self, name: str, value: float) -> None:
        """Stops the run before a diverged network can reach a checkpoint."""
        if np.isfinite(value):
            return
        rate = "learning_rate" if hasattr(self.cfg, "learning_rate") else "step_size"
        kept = ""
        if self.reloadable:
            kept = " (and --reload its last checkpoint, if it has one, to keep those weights)"
        raise UserError(
            f"{name} is {value} in epoch {self.current_epoch}: training diverged. Start anew under "
            f"another --exp_name with a lower --set {rate}=...{kept}"
        )

    # What Lightning calls

    @classmethod
    def load_from_checkpoint(cls, *args: Any, **kwargs: Any) -> Self:
        allow(kwargs.get("gamename"))
        with from_file():
            return super().load_from_checkpoint(*args, **kwargs)

    def setup(self, stage: str) -> None:
        check_trainer(self.trainer, self)

    def on_fit_start(self) -> None:
        if not isinstance(self.trainer.optimizers[0], Clock):
            raise UserError(
                f"{type(self).__name__}: override make_optimizers and schedulers, not "
                "configure_optimizers"
            )
        check_unfrozen(self.implementation, self.optimizers())

    def configure_optimizers(self) -> tuple[list[torch.optim.Optimizer], list[LRScheduler]]:
        """The clock, the optimizers and their schedulers.

        The clock is an optimizer without anything to optimize, stepped once an epoch. Lightning's
        loggers and checkpoints go by ``global_step``, the number of optimizer steps, which would
        stand still in epochs without any that Lightning sees.
        """
        optimizers = listed(self.make_optimizers())
        schedulers = listed(self.schedulers(optimizers))
        check_schedulers(schedulers)
        return [Clock([torch.zeros(())], lr=0.0), *optimizers], schedulers

    def optimizers(self, use_pl_optimizer: bool = True) -> list[Any]:
        """What ``make_optimizers`` gave, as Lightning wraps it."""
        return self._clock_and_optimizers(use_pl_optimizer)[1:]

    def _clock_and_optimizers(self, use_pl_optimizer: bool = True) -> list[Any]:
        return listed(super().optimizers(use_pl_optimizer))  # Lightning gives no list of one

    def on_train_start(self) -> None:
        """A resumed run may be finished, or have a larger budget, which rates depend on."""
        self.trainer.should_stop |= self.finished()
        if self.current_epoch == 0:
            return
        for config in self.trainer.lr_scheduler_configs:
            scheduler: Any = config.scheduler
            # Others go on from their last rate, and know of no budget.
            if isinstance(scheduler, LambdaLR):
                scheduler.last_epoch -= 1  # its last step is taken again
                scheduler.step()
                scheduler._step_count -= 1

    def training_step(self, batch: Any, batch_idx: int) -> None:
        # A user's loss or network may draw.
        with seeded_torch(self.seed, "training", self.current_epoch):
            self.train_epoch(batch)
        # For methods that do not check it themselves; a diverged network stays diverged.
        if self._loss is not None:
            self.check_finite("the loss", float(self._loss))
        self._clock_and_optimizers()[0].step()
        for config in self.trainer.lr_scheduler_configs:
            config.scheduler.step()  # type: ignore[call-arg]
        self.trainer.should_stop |= self.finished()

    def count_evaluation(self, env_steps: int) -> None:
        """Environment steps that ``policy`` was evaluated or filmed in."""
        self.eval_env_steps += env_steps

    def validation_step(self, evaluated: Mapping[str, list[Any]], batch_idx: int) -> None:
        """Logs an evaluation, ``{prefix: episodes}``; ``monitor`` chooses the best checkpoint."""
        for episodes in evaluated.values():
            self.count_evaluation(sum(episode.env_steps for episode in episodes))
        scalars = {"time/eval_env_steps": float(self.eval_env_steps)}
        for prefix, episodes in with_greedy(evaluated).items():
            scalars |= episode_scalars(prefix, episodes)
            self.report(f"{prefix}/return_mean", scalars[f"{prefix}/return_mean"], len(episodes))
        self.log_scalars(scalars)

    def test_step(self, evaluated: Any, batch_idx: int) -> None:
        self.validation_step(evaluated, batch_idx)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """UserError for what this method cannot use, before any of it is used."""
        restore_for_trainer(checkpoint, self)


def episode_scalars(prefix: str, episodes: Sequence[Episode]) -> dict[str, float]:
    """``return_scalars`` of episodes."""
    return return_scalars(prefix, *scores_of(episodes))


def scores_of(episodes: Sequence[Episode]) -> tuple[list[float], list[int], list[bool]]:
    """Returns and lengths of episodes, and which of them a time limit ended."""
    return [e.ret for e in episodes], [e.env_steps for e in episodes], [e.cut_off for e in episodes]


def return_scalars(
    prefix: str, returns: Sequence[float], lengths: Sequence[int], cut: Sequence[bool] = ()
) -> dict[str, float]:
    """``prefix/return_mean|std|min|max``, ``length_mean`` and, if known, ``truncated_share``."""
    values: dict[str, Any] = {
        "return_mean": np.mean(returns),
        "return_std": np.std(returns),
        "return_min": min(returns),
        "return_max": max(returns),
        "length_mean": np.mean(lengths),
    }
    if cut:
        values["truncated_share"] = np.mean(cut)
    return {f"{prefix}/{name}": float(value) for name, value in values.items()}
