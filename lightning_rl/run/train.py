"""One training run, from options to checkpoints and logs."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import get_start_method
from pathlib import Path
from typing import Any

from pytorch_lightning import Callback, Trainer
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.loggers import CSVLogger, Logger
from torch import nn

from lightning_rl.core.catalogue import entry
from lightning_rl.core.checks import check_workers, listed, refuse_other_lightning
from lightning_rl.core.config import OFFLINE, keys
from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.core.extras import lacking, require
from lightning_rl.core.files import adopt
from lightning_rl.core.gamenames import OWN_IDS
from lightning_rl.core.limits import nearest, shorten, shown
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.modules import allow
from lightning_rl.core.schema import ImageConfig, MethodConfig
from lightning_rl.core.seeding import kept_generators
from lightning_rl.core.stopping import Stopped
from lightning_rl.core.workers import default_workers
from lightning_rl.envs.gym import can_film, gives_masks
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.base import Method
from lightning_rl.methods.own_networks import refuse_sizes
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.restoring import data_key
from lightning_rl.methods.single_process import SingleProcess, first_rank
from lightning_rl.rollouts.data_module import Rollouts
from lightning_rl.rollouts.player import Collector
from lightning_rl.run.callbacks import (
    BestCheckpoint,
    EvaluateBeside,
    LastCheckpoint,
    Recorder,
    RunProgress,
    StopAtBudget,
    StopAtReturn,
    StopOnSignal,
    last_returns,
)
from lightning_rl.run.checkpoints import AtomicCheckpointIO, load_weights, settle
from lightning_rl.run.footprint import require_memory
from lightning_rl.run.member_checkpoints import MemberCheckpointIO
from lightning_rl.run.options import RunOptions, checked
from lightning_rl.run.resuming import begun_again, checkpoint_to_resume
from lightning_rl.run.run_config import accelerator_of, run_config
from lightning_rl.run.runtime import NO_ADVICE, prepare_process, quiet
from lightning_rl.run.state import (
    LAST,
    config_content,
    first_start,
    owned,
    refuse_changed,
    write_config,
    write_state,
)


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished training run.

    Attributes:
        method: the trained LightningModule.
        trainer: the Lightning Trainer that trained it.
        path: the folder of its files.
        metrics: of the last evaluation; empty where there was none (see ``eval_interval``).
        signal: the number of the signal that ended it, or 0.
    """

    method: Method
    trainer: Trainer
    path: Path
    metrics: Mapping[str, float]
    signal: int = 0

    def __repr__(self) -> str:
        method = self.method
        facts = [f"{int(method.env_steps):,} steps"]
        if method.monitor in method.scalars:
            facts.append(f"eval {three_digits(method.scalars[method.monitor])}")
        where = f"{method.implementation}, {method.gamename}, seed {method.seed}"
        return f"Run({where}: {', '.join(facts)}, {self.path})"


def train(
    implementation: str,
    gamename: str,
    *,
    callbacks: Callback | Sequence[Callback] = (),
    logger: Logger | Sequence[Logger] | bool = True,
    networks: Mapping[str, nn.Module] | None = None,
    **options: Any,
) -> Run:
    """Trains a method on an environment, as ``trainer.py`` does.

    Threads of torch and how it treats denormal numbers are left as they are:
    ``torch.set_num_threads(1)``, as the command line has it, is faster with small networks.
    Rounding may differ from that of the command line.

    Checkpoints, logs and ``config.yaml`` are written to
    ``exp_dir/<gamename>/<exp_name>/<implementation>/seed_<seed>/``, which holds one run: give a
    second one another seed, ``exp_name`` or ``logdir``. With ``checkpoint=False, logger=False`` its
    settings and its state stay there alone.

    Args:
        implementation: e.g. ``"RCP-A"``; short names and any case are understood, as on the command
            line.
        gamename: the environment, e.g. ``"lunarlander"``.
        callbacks: Lightning callbacks besides the run's own.
        logger: Lightning loggers in place of TensorBoard's; False for none. Each is given the
            config and all scalars.
        networks: own networks, by the names that the method takes (``network_names``).
        options: fields of ``RunOptions``, e.g. ``seed``, ``preset``, ``logdir``, ``num_workers``,
            ``dataset``, ``resume``; any other name is a key of the method's config.

    Returns:
        The run: ``.method``, ``.trainer``, ``.path`` (its folder), ``.metrics`` (of the last
        evaluation).

    Raises:
        UserError: what is asked for cannot be done, in one line.
    """
    fields = {field.name for field in dataclasses.fields(RunOptions)} - {"settings"}
    given = {name: value for name, value in options.items() if name in fields}
    settings = {name: value for name, value in options.items() if name not in fields}
    found = entry(implementation)
    for name in settings:
        near = nearest(name, [*fields, *keys(found)])
        if name.partition(".")[0] not in keys(found) and near in fields:
            raise UserError(f"lrl.train: unknown option '{shorten(name)}'; did you mean '{near}'?")
    for each in (*listed(callbacks), *listed(logger)):
        refuse_other_lightning(each)
    callbacks = [callbacks] if isinstance(callbacks, Callback) else callbacks
    if not _all_are(Callback, callbacks):
        raise UserError(
            f"callbacks {shown(callbacks)}: give Lightning callbacks, e.g. [LearningRateMonitor()]"
        )
    if not (isinstance(logger, bool | Logger) or _all_are(Logger, logger)):
        raise UserError(
            f"logger {shown(logger)}: give Lightning loggers, e.g. CSVLogger('logs'), or False for "
            "none"
        )
    name = found.name  # paths, configs and checkpoints carry the long one
    asked = checked(RunOptions(name, gamename, settings=settings, **given))
    if asked.num_workers is not None:
        check_workers(asked.num_workers)
    return run_training(asked, callbacks, logger, networks, "lrl.train")


def _all_are(kind: type, given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(each, kind) for each in given)


def run_training(
    options: RunOptions,
    callbacks: Sequence[Callback] = (),
    logger: Logger | Sequence[Logger] | bool = True,
    networks: Mapping[str, nn.Module] | None = None,
    where: str = "--set",
) -> Run:
    """``train`` with its options in one object: trains until the budget is spent or a signal
    arrives.

    where: its settings come from, for messages.
    """
    allow(options.gamename)
    me = (os.getpid(), threading.get_ident())
    if any(process == me[0] and thread != me[1] for process, thread in _trains):
        remedy = "train in processes, e.g. by multiprocessing or bash_train.sh"
        raise UserError(
            "another thread of this process trains, and both would draw from torch's global "
            f"generator; {remedy}"
        )
    _trains.append(me)
    try:
        with first_rank(), kept_generators():
            return _run(options, callbacks, logger, networks, where)
    finally:
        _trains.remove(me)


_trains: list[tuple[int, int]] = []
"""Process and thread of each training under way: a forked process has those of the one before,
too.
"""


def _run(
    options: RunOptions,
    callbacks: Sequence[Callback],
    logger: Logger | Sequence[Logger] | bool,
    networks: Mapping[str, nn.Module] | None,
    where: str,
) -> Run:
    config = run_config(options, where)
    num_workers = options.num_workers
    if num_workers is None:
        population = implementation(options.implementation).has_population
        num_workers = default_workers(1 if population else 2)
    accelerator = accelerator_of(options, config)
    options = dataclasses.replace(options, accelerator=accelerator, num_workers=num_workers)
    _check_feasible(options, config)
    resume_from = checkpoint_to_resume(options, config)
    if options.resume and resume_from is None:
        options = begun_again(options)
    method = _build_method(options, config, networks)
    _say_unused_masks(method)
    given: dict[str, Any] = {}
    about_data = None
    if options.dataset is not None:
        from lightning_rl.run.datasets import read_dataset

        given["dataset"] = read_dataset(options.dataset, method.spec)
        about_data = str(given["dataset"])
        say(about_data)
    runs = options.single_runs()
    folders = [run.run_dir for run in runs]
    with contextlib.ExitStack() as held:
        held.enter_context(_quiet_writers())
        held.enter_context(quiet("pytorch_lightning", logging.WARNING, *NO_ADVICE))
        begins = [held.enter_context(owned(folder)) for folder in folders]
        settle(folders)
        data = method.rollouts(num_workers, **given)
        storage = AtomicCheckpointIO()
        if len(folders) > 1:
            storage = MemberCheckpointIO(folders, data_key(data))
        # nobody else has use for an evaluation at once
        beside = data.plays_beside and not callbacks and options.stop_return is None
        callbacks = [*callbacks, StopAtReturn(options.stop_return, options.stop_evaluations)]
        with _collecting(data):
            if resume_from is not None:
                storage.resume(resume_from, method, data, callbacks)
            contents = []
            for run in runs:
                begun = {} if resume_from is None else first_start(run.run_dir)
                own_networks = method.hparams.get("networks")
                contents.append(config_content(run, config, own_networks, begun, about_data))
                refuse_changed(run.run_dir)
            for begin, folder, content in zip(begins, folders, contents, strict=True):
                begin()
                write_config(folder, content)
                if resume_from is not None:
                    adopt(folder / LAST)
            stop = StopOnSignal(folders)
            held.callback(stop.restore)
            loggers = own_loggers(options) if logger is True else logger
            trainer = _trainer(options, config, [stop, *callbacks], loggers, storage, beside)
            _fit(trainer, method, data, resume_from, stop)
        for folder in folders:
            write_state(folder, "interrupted" if stop.signal else "finished")
    metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    return Run(method, trainer, options.run_dir, metrics, stop.signal)


def train_and_report(options: RunOptions) -> int:
    """``run_training`` as a command: sets up the process, prints what came out; the exit code
    (0, or 128 + signal).
    """
    prepare_process()
    run = run_training(options)
    say(*_summary(run).split("\n"))
    return 128 + run.signal if run.signal else 0


def _check_feasible(options: RunOptions, config: MethodConfig) -> None:
    """UserError where the method or this machine cannot do what is asked for."""
    spec, cls = env_spec(options.gamename), implementation(options.implementation)
    if options.num_seeds > 1 and not cls.stackable:
        raise UserError(
            f"--num_seeds {options.num_seeds}: {options.implementation} trains one seed at a time; "
            "use bash_train.sh"
        )
    population = None
    if options.executor != "serial":
        population = f"--executor {options.executor}"
    elif options.ray_address is not None:
        population = "--ray_address"
    if population is not None and not cls.has_population:
        raise UserError(
            f"{population}: {options.implementation} evaluates no population; leave it out (SE, RN "
            "and SD do)"
        )
    require_memory(config, config.seen(spec), options.num_seeds)
    if options.stop_return is not None and config.epoch_budget < config.eval_interval:
        raise UserError(
            f"--stop_return {options.stop_return:g}: an evaluation comes every "
            f"{config.eval_interval} epochs, of {config.epoch_budget} in all; --set "
            f"eval_interval={config.epoch_budget}, or more epochs"
        )
    if options.recording_epoch_interval > 0 and not can_film(spec):
        raise UserError(
            f"gamename '{options.gamename}' cannot render; leave out --recording_epoch_interval"
        )
    if options.recording_epoch_interval > 0:
        require("--recording_epoch_interval", "moviepy")


def _say_unused_masks(method: Method) -> None:
    """Says that an environment gives masks of its actions, where the method does not use them."""
    spec = method.spec
    if spec.masked or (isinstance(spec.env, str) and spec.env.startswith(OWN_IDS)):
        return
    with contextlib.suppress(RolloutError):  # training says it with the request
        if not gives_masks(spec):
            return
        remedy = f"{method.implementation} cannot; UDRL, RCP, policy gradients, DDQN and PPO can"
        if isinstance(method.cfg, ImageConfig):
            remedy = "to use it: action_masks=true"
        say(f"'{spec.gamename}' says in info which actions are possible (action_mask); {remedy}")


def own_loggers(options: RunOptions) -> list[Logger]:
    """The loggers in the folders of a run, one for each seed: TensorBoard's, or CSV files where it
    is not installed.
    """
    runs = options.single_runs()
    line = lacking("TensorBoard's log", "tensorboard")
    if line is not None:
        say(f"{line}; scalars go to '{runs[0].run_dir}/logger/version_N/metrics.csv'", error=True)
        return [CSVLogger(run.run_dir, name="logger") for run in runs]
    from lightning_rl.run.logger import RunLogger

    return [RunLogger(run) for run in runs]


def _build_method(
    options: RunOptions, config: MethodConfig, networks: Mapping[str, nn.Module] | None
) -> Method:
    """The method with fresh weights, or with those of ``--reload``."""
    stack: dict[str, Any] = {"num_seeds": options.num_seeds} if options.num_seeds > 1 else {}
    method: Any = implementation(options.implementation)(
        options.gamename,
        implementation=options.implementation,
        seed=options.seed,
        config=config,
        networks=networks,
        **stack,
    )
    if networks:
        refuse_sizes(method, "lrl.train", options.settings)
    if options.reload is not None:
        load_weights(method, options.reload)
    if options.executor == "ray":
        from lightning_rl.evolution.cluster import RayExecutor

        method.executor = RayExecutor(options.ray_address)
    return method


def _fit(
    trainer: Trainer, method: Method, data: Rollouts, resume_from: Path | None, stop: StopOnSignal
) -> None:
    try:
        trainer.fit(method, datamodule=data, ckpt_path=resume_from, weights_only=True)
    except SystemExit as leaving:  # what Lightning makes of a KeyboardInterrupt
        cause = leaving.__context__
        if not isinstance(cause, Stopped):
            cause = Stopped(stop.signal or signal.SIGINT)
        raise cause from leaving


_WRITERS = "tensorboard.summary.writer.event_file_writer"


@contextlib.contextmanager
def _quiet_writers() -> Iterator[None]:
    """Meanwhile TensorBoard's threads end without a traceback where they cannot write: the main
    thread says it, in one line.
    """
    before = threading.excepthook

    def failed(failure: threading.ExceptHookArgs) -> None:
        is_writer = type(failure.thread).__module__ == _WRITERS
        if not (is_writer and isinstance(failure.exc_value, OSError)):
            before(failure)

    threading.excepthook = failed
    try:
        yield
    finally:
        threading.excepthook = before


@contextlib.contextmanager
def _collecting(data: Rollouts) -> Iterator[None]:
    """Stops the workers at the end, and names the requests if one of them died."""
    try:
        yield
    except RuntimeError as error:
        if (death := worker_died(error, data.collectors)) is not None:
            raise death from error
        raise
    finally:
        data.close()


def worker_died(cause: BaseException, collectors: Sequence[Collector]) -> RolloutError | None:
    """What ``cause`` is reported as if it says that a worker of one of ``collectors`` died, else
    None.

    torch raises ``cause`` from a signal handler, at any point of the main process: also while a
    collection is being started, or when none is under way.
    """
    # What a worker raised says "Caught ... in DataLoader worker".
    if not str(cause).startswith("DataLoader worker (pid"):
        return None
    names = [name for collector in collectors for name in collector.outstanding]
    what = "no episode was outstanding"
    if names:
        what = f"{names[0]} .. {names[-1]} ({len(names)} requests) were outstanding"
    remedy = "free memory or lower --num_workers, then --resume"
    if get_start_method() != "fork":
        remedy = (
            "in a script, put the call below `if __name__ == '__main__':` and your own classes "
            f"above it; else {remedy}"
        )
    return RolloutError(f"a roll-out worker died ({cause}) while {what}; {remedy}")


def _trainer(
    options: RunOptions,
    config: MethodConfig,
    callbacks: Sequence[Callback],
    loggers: Any,
    storage: AtomicCheckpointIO,
    beside: bool,
) -> Trainer:
    """The Trainer of a run; beside: evaluations are played beside training."""
    last = f" to {options.seed + options.num_seeds - 1}" if options.num_seeds > 1 else ""
    name = f"{options.implementation} {options.gamename} seed {options.seed}{last}"
    every = list(callbacks)
    if config.max_env_steps is not None:
        every.append(StopAtBudget("max_env_steps", config.max_env_steps))
    if options.recording_epoch_interval > 0:
        every.append(Recorder(options.run_dir, options.recording_epoch_interval))
    best = None
    if options.checkpoint:
        best = BestCheckpoint([run.run_dir for run in options.single_runs()])
        every += [best, LastCheckpoint(options.run_dir, config.checkpoint_interval)]
    validation_interval = config.eval_interval
    if beside:
        every.append(EvaluateBeside(config.eval_interval, config.checkpoint_interval, best))
        validation_interval = sys.maxsize
    own_bar = any(isinstance(each, ProgressBar) for each in callbacks)
    if not own_bar:
        episodes = getattr(config, "train_episodes", None)
        offline = getattr(config, OFFLINE, False)
        budgets = config.epoch_budget, config.max_env_steps, episodes
        searches = implementation(options.implementation).has_population
        epoch = "generation" if searches else "epoch"
        every.append(RunProgress(name, *budgets, offline, epoch))
    return Trainer(
        accelerator=options.accelerator,
        default_root_dir=options.run_dir,
        devices=1,
        max_epochs=config.epoch_budget,
        # An epoch is one batch. Counted in batches, not in epochs, Lightning also evaluates the one
        # in which a run is stopped, but not the last of max_epochs, which is none when the run is
        # resumed with more.
        check_val_every_n_epoch=None,
        val_check_interval=validation_interval,
        num_sanity_val_steps=0,
        log_every_n_steps=1,  # an epoch is one batch
        callbacks=every,
        logger=loggers,
        plugins=[storage, SingleProcess()],
        enable_checkpointing=options.checkpoint,
        enable_progress_bar=own_bar,
        enable_model_summary=False,
    )


def _summary(run: Run) -> str:
    state = "interrupted" if run.signal else "finished"
    line = f"{state} at {int(run.method.env_steps):,} training steps, "
    if getattr(run.method.cfg, OFFLINE, False):
        data, updates = int(run.method.env_steps), int(run.method.num_updates)
        line = f"{state} at {updates:,} updates on {data:,} steps of data, "
    line += f"{int(run.method.eval_env_steps):,} evaluation steps"
    returns = last_returns(run.method.scalars)
    if returns:
        line += f"; last returns: {', '.join(returns)}"
    line += _ended_early(run)
    if run.signal:
        return f"{line}\ncontinue with --resume; run directory: {run.path}"
    return f"{line}\nrun directory: {run.path}"


def _ended_early(run: Run) -> str:
    """What ended a run before the steps that were asked for, e.g. train_episodes; nothing if
    they were played.
    """
    method, asked = run.method, run.method.cfg.max_env_steps
    if asked is None or run.signal or int(method.env_steps) >= asked:
        return ""
    done = {
        "train_episodes": int(method.episodes),
        "max_episodes": int(method.episodes),
        "max_epochs": run.trainer.current_epoch,
    }
    limits = {key: getattr(method.cfg, key, None) for key in done}
    reached = [
        f"{key}={limit:,}"
        for key, limit in limits.items()
        if limit is not None and done[key] >= limit
    ]
    if not reached:
        return f"\nended before max_env_steps={asked:,}: the return that it stops at was reached"
    return (
        f"\nended before max_env_steps={asked:,}: {' and '.join(reached)} came first; raise it "
        "to play all steps"
    )
