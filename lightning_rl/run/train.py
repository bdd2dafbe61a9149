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

import yaml
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.loggers import Logger, TensorBoardLogger
from torch import nn
from torch.utils.tensorboard.summary import hparams as hparams_summary

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import write_text
from lightning_rl.core.schema import MethodConfig
from lightning_rl.envs.gym import can_film
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.base import Method
from lightning_rl.methods.registry import implementation
from lightning_rl.rollouts.collector import worker_died
from lightning_rl.rollouts.data_module import Rollouts
from lightning_rl.run.best import BestCheckpoint
from lightning_rl.run.checkpoints import (
    LAST,
    AtomicCheckpointIO,
    LastCheckpoint,
    load_weights,
    read_checkpoint,
)  # fmt: skip
from lightning_rl.run.commits import committed, settle
from lightning_rl.run.footprint import require_memory
from lightning_rl.run.interrupt import StopAtEnvSteps, StopOnSignal
from lightning_rl.run.layouts import data_key
from lightning_rl.run.member_checkpoints import MemberCheckpointIO
from lightning_rl.run.options import RunOptions, accelerator_of, run_config
from lightning_rl.run.progress import RunProgress, last_returns
from lightning_rl.run.recorder import Recorder
from lightning_rl.run.runtime import prepare_process
from lightning_rl.run.state import owned, refuse_second, write_state

_PACKAGES = ("lightning_rl", "torch", "pytorch-lightning", "gymnasium", "numpy", "tensorboard")
_MAY_CHANGE_ON_RESUME = frozenset(
    ("max_epochs", "max_env_steps", "max_episodes", "target_return", "eval_interval", "eval_episodes", "checkpoint_interval")
)


@dataclasses.dataclass(frozen=True)
class Run:
    """What training gives: the trained method, its Trainer, the folder of its files, the last evaluation.

    received: the signal that ended it, or 0.
    """

    method: Method
    trainer: Trainer
    path: Path
    metrics: Mapping[str, float]
    received: int = 0


def run_training(
    options: RunOptions, callbacks: Sequence[Callback] = (), logger: Logger | Sequence[Logger] | bool = True,
    networks: Mapping[str, nn.Module] | None = None,
) -> Run:  # fmt: skip
    """Trains until the budget is spent or a signal arrives. callbacks: besides the run's own; logger: True for TensorBoard."""
    config = run_config(options)
    options = dataclasses.replace(options, accelerator=accelerator_of(options))
    cls, each = implementation(options.implementation), options.seeds()
    if len(each) > 1 and not cls.stackable:
        raise UserError(f"--num_seeds {len(each)}: {options.implementation} trains one seed at a time; use bash_train.sh")
    require_memory(config, env_spec(options.gamename), len(each))
    lasts = committed([run.run_dir / LAST for run in each])
    found = [_resume_from(run, last, config) for run, last in zip(each, lasts, strict=True)]
    resume_from = None if found[0] is None else each[0].run_dir / LAST
    if None in found and any(found):
        missing = each[found.index(None)].run_dir
        raise UserError(f"--resume: '{missing}' has no {LAST} but another seed has; resume those seeds that have one")
    if options.recording_epoch_interval > 0 and not can_film(env_spec(options.gamename)):
        raise UserError(f"gamename '{options.gamename}' cannot render; leave out --recording_epoch_interval")
    several: dict[str, Any] = {"num_seeds": len(each)} if len(each) > 1 else {}
    method = cls(
        options.gamename, implementation=options.implementation, seed=options.seed, config=dataclasses.asdict(config),
        networks=networks, **several,
    )  # fmt: skip
    if options.reload is not None:
        load_weights(method, options.reload)
    method.distribute(options.executor, options.num_workers, options.ray_address)
    with contextlib.ExitStack() as ours:
        begins = [ours.enter_context(owned(run.run_dir)) for run in each]
        settle([run.run_dir for run in each])
        data = method.rollouts(options.num_workers)
        folders = [run.run_dir for run in each]
        storage = AtomicCheckpointIO() if len(each) == 1 else MemberCheckpointIO(folders, data_key(data))
        with _collecting(data):
            if resume_from is not None:
                storage.resume(resume_from, method, data, callbacks)
            for begin, run in zip(begins, each, strict=True):
                begin()
                _write_config(run, config)
            stop = StopOnSignal()
            loggers = _loggers(options, method) if logger is True else logger
            trainer = _trainer(options, config, [stop, *callbacks], loggers, storage)
            _fit(trainer, method, data, resume_from)
        for run in each:
            write_state(run.run_dir, "interrupted" if stop.received else "finished")
    metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    return Run(method, trainer, options.run_dir, metrics, stop.received)


def train(
    implementation: str, gamename: str, *, callbacks: Sequence[Callback] = (),
    logger: Logger | Sequence[Logger] | bool = True, networks: Mapping[str, nn.Module] | None = None, **options: Any,
) -> Run:  # fmt: skip
    """Trains a method on an environment, as ``trainer.py`` does.

    Checkpoints, logs and ``config.yaml`` are written to ``exp_dir/<gamename>/<exp_name>/<implementation>/seed_<seed>/``.

    Args:
        implementation: e.g. ``"RCP-A"``.
        gamename: the environment, e.g. ``"lunarlander"``.
        callbacks: Lightning callbacks besides the run's own.
        logger: loggers in place of TensorBoard's; False for none.
        networks: own networks, by the names that the method takes (``network_names``).
        options: fields of ``RunOptions``, e.g. ``seed``, ``preset``, ``logdir``, ``num_workers``, ``resume``; any other
            name is a key of the method's config.

    Returns:
        The run: ``.method``, ``.trainer``, ``.path`` (its folder), ``.metrics`` (of the last evaluation).

    Raises:
        UserError: what is asked for cannot be done, in one line.
    """
    fields = {field.name for field in dataclasses.fields(RunOptions)} - {"settings"}
    own = {name: value for name, value in options.items() if name in fields}
    if "logdir" in own:
        own["logdir"] = Path(own["logdir"])
    settings = {name: value for name, value in options.items() if name not in fields}
    return run_training(RunOptions(implementation, gamename, settings=settings, **own), callbacks, logger, networks)


def train_and_report(options: RunOptions) -> int:
    """``run_training`` as a command: sets up the process, prints what came out; the exit code (0, or 128 + signal)."""
    prepare_process()
    run = run_training(options)
    print(_summary(run))
    return 128 + run.received if run.received else 0


def _resume_from(options: RunOptions, last: Path, config: MethodConfig) -> Path | None:
    """``last`` if it is to be gone on from; UserError where going on, or starting, would mix or overwrite runs."""
    if not options.resume:
        refuse_second(options.run_dir)
        return None
    if not last.exists():
        return None
    checkpoint = read_checkpoint(last)
    before = checkpoint["hyper_parameters"]
    if before["implementation"] != options.implementation or before["gamename"] != options.gamename:
        raise UserError(f"'{last}' is of {before['implementation']} on {before['gamename']}; choose another --exp_name")
    if before["seed"] != options.seed:
        raise UserError(
            f"--resume: '{last}' is of seed {before['seed']}, this run's is {options.seed}; move it back to "
            f"seed_{before['seed']}, or start anew from its weights with --reload"
        )
    for key, value in dataclasses.asdict(config).items():
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


def _fit(trainer: Trainer, method: Method, data: Rollouts, resume_from: Path | None) -> None:
    try:
        trainer.fit(method, datamodule=data, ckpt_path=resume_from, weights_only=True)
    except SystemExit as leaving:  # what Lightning makes of a KeyboardInterrupt
        raise KeyboardInterrupt from leaving


@contextlib.contextmanager
def _collecting(data: Rollouts) -> Iterator[None]:
    """Stops the workers at the end, and names the requests if one of them died."""
    try:
        yield
    except RuntimeError as error:
        if (death := worker_died(error, data.collectors())) is not None:
            raise death from error
        raise
    finally:
        data.teardown("fit")


def _trainer(
    options: RunOptions, config: MethodConfig, callbacks: Sequence[Callback], loggers: Any, storage: AtomicCheckpointIO
) -> Trainer:
    last = f" to {options.seed + options.num_seeds - 1}" if options.num_seeds > 1 else ""
    name = f"{options.implementation} {options.gamename} seed {options.seed}{last}"
    every = list(callbacks)
    if config.max_env_steps is not None:
        every.append(StopAtEnvSteps(config.max_env_steps))
    if options.recording_epoch_interval > 0:
        every.append(Recorder(options.run_dir, options.recording_epoch_interval))
    if options.checkpoint:
        every += [BestCheckpoint([run.run_dir for run in options.seeds()])]
        every += [LastCheckpoint(options.run_dir, config.checkpoint_interval)]
    every.append(RunProgress(name, config.epoch_budget, config.max_env_steps))
    return Trainer(
        accelerator=options.accelerator,
        default_root_dir=options.run_dir,
        devices=1,
        max_epochs=config.epoch_budget,
        # An epoch is one batch. Counted in batches, not in epochs, Lightning also evaluates the one in which a run stops.
        check_val_every_n_epoch=None,
        val_check_interval=config.eval_interval,
        num_sanity_val_steps=0,
        callbacks=every,
        logger=loggers,
        plugins=[storage],
        enable_checkpointing=options.checkpoint,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def _loggers(options: RunOptions, method: Method) -> list[TensorBoardLogger]:
    """One for each seed, in its folder."""
    each, version = options.seeds(), options.log_version
    loggers = [TensorBoardLogger(run.run_dir, name="logger", version=version, default_hp_metric=False) for run in each]
    for logger, run in zip(loggers, each, strict=True):
        _log_hparams(logger, method, run.seed)
    return loggers


def _log_hparams(logger: TensorBoardLogger, method: Method, seed: int) -> None:
    """Fills TensorBoard's hparams tab, with the evaluation returns as its metrics."""
    outer: dict[str, Any] = {**method.hparams, "seed": seed}
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


def _summary(run: Run) -> str:
    state = "interrupted" if run.received else "finished"
    line = f"{state} at {int(run.method.env_steps):,} training steps, {int(run.method.eval_env_steps):,} evaluation steps"
    returns = last_returns(run.method.scalars)
    line += f"; last returns: {', '.join(returns)}" if returns else ""
    return line + (f"\ngo on with --resume; run directory: {run.path}" if run.received else f"\nrun directory: {run.path}")
