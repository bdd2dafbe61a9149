"""One training run, from options to checkpoints and logs."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import yaml
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.loggers import TensorBoardLogger
from torch.utils.tensorboard.summary import hparams as hparams_summary

from lightning_rl.core.config import build_config, changes, merged_values, refuse_unread
from lightning_rl.core.files import write_text
from lightning_rl.core.gamenames import folder_name
from lightning_rl.core.schema import MethodConfig
from lightning_rl.core.types import UserError
from lightning_rl.envs.gym import can_film
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.base import Evaluation, Experience, Method
from lightning_rl.methods.registry import IMPLEMENTATIONS, implementation
from lightning_rl.rollouts.collector import Collector, worker_died
from lightning_rl.run.best import BestCheckpoint
from lightning_rl.run.checkpoints import (
    LAST,
    AtomicCheckpointIO,
    ExperienceState,
    LastCheckpoint,
    load_weights,
    read_checkpoint,
)  # fmt: skip
from lightning_rl.run.commits import committed, settle
from lightning_rl.run.footprint import require_memory
from lightning_rl.run.interrupt import StopAtEnvSteps, StopOnSignal
from lightning_rl.run.member_checkpoints import MemberCheckpointIO
from lightning_rl.run.progress import RunProgress
from lightning_rl.run.recorder import Recorder
from lightning_rl.run.runtime import prepare_process
from lightning_rl.run.state import owned, refuse_second, write_state

_PACKAGES = ("lightning_rl", "torch", "pytorch-lightning", "gymnasium", "numpy", "tensorboard")
_EVALUATIONS = {"sampled": "eval", "greedy": "eval_greedy"}
_MAY_CHANGE_ON_RESUME = frozenset(
    ("max_epochs", "max_env_steps", "max_episodes", "target_return", "eval_interval", "eval_episodes", "checkpoint_interval")
)


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """What the command line says about a run.

    settings: ``--set`` keys and values, and flags that mean the same; config: keys and values of ``--config``.
    log_version: the logger's folder; None: a new one each time that the run is started.
    """

    implementation: str
    gamename: str
    exp_name: str = "default"
    seed: int = 25
    num_seeds: int = 1
    preset: str | None = None
    num_workers: int = 1
    logdir: Path = Path("exp_dir")
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    accelerator: str = "cpu"
    checkpoint: bool = True
    executor: str = "serial"
    ray_address: str | None = None
    recording_epoch_interval: int = -1
    reload: Path | None = None
    resume: bool = False
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    log_version: int | None = None

    @property
    def run_dir(self) -> Path:
        return self.logdir / folder_name(self.gamename) / self.exp_name / self.implementation / f"seed_{self.seed}"

    def seeds(self) -> list[RunOptions]:
        """The run of each seed: seed, seed + 1, .."""
        return [dataclasses.replace(self, seed=self.seed + n, num_seeds=1) for n in range(self.num_seeds)]


def config_layers(options: RunOptions) -> list[tuple[str, Mapping[str, Any]]]:
    """(where, values) of all that lies below the settings: ``default`` < gamename < preset < ``--config``."""
    env_spec(options.gamename)
    return [*merged_values(options.implementation, options.gamename, options.preset), ("--config", options.config)]


def merged_config(options: RunOptions, where: str = "--set") -> MethodConfig:
    """The checked config: ``config_layers`` < settings, which come from ``where``."""
    schema = implementation(options.implementation).config
    return build_config(schema, [*config_layers(options), (where, options.settings)])


def load_config(options: RunOptions, where: str = "--set") -> MethodConfig:
    """``merged_config`` with all that it takes from elsewhere; UserError also for a setting that would make no difference.

    A value of ``--config`` that the YAML has as well may stay: a run's record holds every key.
    """
    config = merged_config(options, where)
    refuse_unread(config.unread(), ("--config", changes(options.config, config_layers(options)[:-1])), (where, options.settings))
    return config.resolved(options.gamename)


def check_accelerator(options: RunOptions) -> None:
    """UserError where the method cannot train on what ``--accelerator`` asks for, whatever the machine has."""
    if options.accelerator == "gpu" and implementation(options.implementation).method.cpu_only:
        able = ", ".join(name for name, entry in IMPLEMENTATIONS.items() if not entry.method.cpu_only)
        raise UserError(f"--accelerator gpu: {options.implementation} trains on the CPU only, use cpu or auto; on a GPU: {able}")


def accelerator_of(options: RunOptions) -> str:
    """``cpu`` or ``gpu``: what ``--accelerator`` means for the method on this machine; UserError where it cannot be had."""
    check_accelerator(options)
    there = torch.cuda.is_available()
    if options.accelerator == "gpu" and not there:
        raise UserError("--accelerator gpu: no GPU that torch can use was found; use --accelerator cpu")
    may = options.accelerator != "cpu" and not implementation(options.implementation).method.cpu_only
    return "gpu" if there and may else "cpu"


def train(options: RunOptions) -> int:
    """Trains until the budget is spent or a signal arrives; the exit code (0, or 128 + signal)."""
    config = load_config(options)
    options = dataclasses.replace(options, accelerator=accelerator_of(options))
    hparams = {
        "implementation": options.implementation,
        "gamename": options.gamename,
        "seed": options.seed,
        "config": dataclasses.asdict(config),
    }
    each = options.seeds()
    if len(each) > 1:
        hparams["num_seeds"] = len(each)
        if not implementation(options.implementation).method.stackable:
            raise UserError(f"--num_seeds {len(each)}: {options.implementation} trains one seed at a time; use bash_train.sh")
    require_memory(config, env_spec(options.gamename), len(each))
    lasts = committed([run.run_dir / LAST for run in each])
    found = [_resume_from(run, last, hparams, config) for run, last in zip(each, lasts, strict=True)]
    resume_from = None if found[0] is None else each[0].run_dir / LAST
    if None in found and any(found):
        missing = each[found.index(None)].run_dir
        raise UserError(f"--resume: '{missing}' has no {LAST} but another seed has; resume those seeds that have one")
    if options.recording_epoch_interval > 0 and not can_film(env_spec(options.gamename)):
        raise UserError(f"gamename '{options.gamename}' cannot render; leave out --recording_epoch_interval")
    prepare_process()
    entry = implementation(options.implementation)
    method = entry.method(hparams)
    if options.reload is not None:
        load_weights(method, options.reload)
    method.distribute(options.executor, options.num_workers, options.ray_address)
    storage = AtomicCheckpointIO() if len(each) == 1 else MemberCheckpointIO([run.run_dir for run in each])
    with contextlib.ExitStack() as ours:
        begins = [ours.enter_context(owned(run.run_dir)) for run in each]
        settle([run.run_dir for run in each])
        experience, evaluation = entry.make_loaders(method, options.num_workers)
        with _collecting(experience.collector, evaluation.collector):
            if resume_from is not None:
                storage.resume(resume_from, method, experience)
            for begin, run in zip(begins, each, strict=True):
                begin()
                _write_config(run, config)
            stop = StopOnSignal()
            trainer = _trainer(options, config, method, experience, evaluation, stop, storage)
            _fit(trainer, method, experience, evaluation, resume_from)
        for run in each:
            write_state(run.run_dir, "interrupted" if stop.received else "finished")
    print(_summary(options, method, trainer, bool(stop.received)))
    return 128 + stop.received if stop.received else 0


def _resume_from(options: RunOptions, last: Path, hparams: dict[str, Any], config: MethodConfig) -> Path | None:
    """``last`` if it is to be gone on from; UserError where going on, or starting, would mix or overwrite runs."""
    if not options.resume:
        refuse_second(options.run_dir)
        return None
    if not last.exists():
        return None
    checkpoint = read_checkpoint(last)
    before = checkpoint["hyper_parameters"]["hparams"]
    if before["implementation"] != hparams["implementation"] or before["gamename"] != hparams["gamename"]:
        raise UserError(f"'{last}' is of {before['implementation']} on {before['gamename']}; choose another --exp_name")
    if before["seed"] != options.seed:
        raise UserError(
            f"--resume: '{last}' is of seed {before['seed']}, this run's is {options.seed}; move it back to "
            f"seed_{before['seed']}, or start anew from its weights with --reload"
        )
    for key, value in hparams["config"].items():
        if key not in _MAY_CHANGE_ON_RESUME and before["config"].get(key) != value:
            raise UserError(
                f"--resume: {key} is {value!r} now but {before['config'].get(key)!r} in '{last}'; "
                "use the same settings, or another --exp_name for a new run"
            )
    if (done := checkpoint.get("epoch", -1) + 1) > config.epoch_budget:
        raise UserError(
            f"--resume: '{last}' has done {done} epochs, more than the {config.epoch_budget} that are asked for; "
            f"ask for {done} or more, or --eval_agent it"
        )
    return last


def _fit(trainer: Trainer, method: Method, experience: Experience, evaluation: Evaluation, resume_from: Path | None) -> None:
    try:
        trainer.fit(method, experience, evaluation, ckpt_path=resume_from, weights_only=True)
    except SystemExit as leaving:  # what Lightning makes of a KeyboardInterrupt
        raise KeyboardInterrupt from leaving


@contextlib.contextmanager
def _collecting(*collectors: Collector) -> Iterator[None]:
    """Stops the workers at the end, and names the requests if one of them died."""
    try:
        yield
    except RuntimeError as error:
        if (death := worker_died(error, collectors)) is not None:
            raise death from error
        raise
    finally:
        for collector in collectors:
            collector.close()


def _trainer(
    options: RunOptions, config: MethodConfig, method: Method, experience: Experience, evaluation: Evaluation,
    stop: StopOnSignal, storage: AtomicCheckpointIO,
) -> Trainer:  # fmt: skip
    last = f" to {options.seed + options.num_seeds - 1}" if options.num_seeds > 1 else ""
    name = f"{options.implementation} {options.gamename} seed {options.seed}{last}"
    callbacks: list[Callback] = [ExperienceState(experience), stop]
    if config.max_env_steps is not None:
        callbacks.append(StopAtEnvSteps(config.max_env_steps))
    if options.recording_epoch_interval > 0:
        callbacks.append(Recorder(options.run_dir, options.recording_epoch_interval, evaluation))
    if options.checkpoint:
        callbacks += [BestCheckpoint([run.run_dir for run in options.seeds()])]
        callbacks += [LastCheckpoint(options.run_dir, config.checkpoint_interval)]
    callbacks.append(RunProgress(name, config.epoch_budget, config.max_env_steps))
    each = options.seeds()
    loggers = [TensorBoardLogger(run.run_dir, "logger", options.log_version, default_hp_metric=False) for run in each]
    for logger, run in zip(loggers, each, strict=True):
        _log_hparams(logger, method, run.seed)
    return Trainer(
        accelerator=options.accelerator,
        devices=1,
        max_epochs=config.epoch_budget,
        check_val_every_n_epoch=config.eval_interval,
        num_sanity_val_steps=0,
        callbacks=callbacks,
        logger=loggers,
        plugins=[storage],
        enable_checkpointing=options.checkpoint,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def _log_hparams(logger: TensorBoardLogger, method: Method, seed: int) -> None:
    """Fills TensorBoard's hparams tab, with the evaluation returns as its metrics."""
    outer = {**method.hparams["hparams"], "seed": seed}
    flat = {**outer.pop("config"), **outer}
    plain = {k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in flat.items()}
    logger.hparams.update(plain)  # hparams.yaml
    metrics = {"eval/return_mean": 0.0, "eval_greedy/return_mean": 0.0}  # names only, the values come with the scalars
    for summary in hparams_summary(plain, metrics):
        logger.experiment.file_writer.add_summary(summary)


def _write_config(options: RunOptions, config: MethodConfig) -> None:
    """``config.yaml``: everything that is needed to make the run again."""
    content = {
        "command": " ".join(sys.argv),
        "implementation": options.implementation,
        "gamename": options.gamename,
        "exp_name": options.exp_name,
        "seed": options.seed,
        "preset": options.preset,
        "num_workers": options.num_workers,
        "accelerator": options.accelerator,
        "reload": None if options.reload is None else str(options.reload),
        "config": dataclasses.asdict(config),
        "git_commit": _git_commit(),
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in _PACKAGES}},
    }
    write_text(options.run_dir / "config.yaml", yaml.safe_dump(content, sort_keys=False))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """The commit of the source tree, with ``-dirty`` where it has uncommitted changes."""
    command: Sequence[str] = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    here = Path(__file__).resolve().parent
    try:
        return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None


def _summary(options: RunOptions, method: Method, trainer: Trainer, interrupted: bool) -> str:
    state = "interrupted" if interrupted else "finished"
    line = f"{state} at {int(method.env_steps):,} training steps, {int(method.eval_env_steps):,} evaluation steps"
    found = {name: trainer.callback_metrics.get(f"{p}/return_mean") for name, p in _EVALUATIONS.items()}
    told = ", ".join(f"{name} {float(value):.1f}" for name, value in found.items() if value is not None)
    line += f"; last evaluation: {told}" if told else ""
    hint = f"\ngo on with --resume; run directory: {options.run_dir}" if interrupted else f"\nrun directory: {options.run_dir}"
    return line + hint
