"""What is asked of a run, and the checked config that follows from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from lightning_rl.core.checks import (
    ACCELERATORS,
    EXECUTORS,
    check_apart,
    check_workers,
    checked_gamename,
    checked_name,
    one_number,
    one_of,
    seeds_from,
    truth,
    user_path,
    whole_number,
)
from lightning_rl.core.config import load_config
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import folder_name
from lightning_rl.core.limits import shown
from lightning_rl.core.schema import MethodConfig
from lightning_rl.core.workers import default_workers
from lightning_rl.methods.registry import implementation
from lightning_rl.run.footprint import inner_configs
from lightning_rl.run.state import check_folder_names, checkpoint_at


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """What is asked of a run: what ``lightning_rl.train`` takes by name, and the flags of
    ``trainer.py``.

    Attributes:
        implementation: the method's name, e.g. ``"RCP-A"``.
        gamename: the environment: a name of this project, a Gymnasium id, or ``module:Id-v0``.
        exp_name: a folder for runs that belong together.
        seed: of the run; all its randomness follows from it.
        num_seeds: how many runs, of seeds ``seed``, ``seed + 1``, .., are trained at once in one
            stack.
        preset: a named block of the method's configs.
        num_workers: processes that play episodes, 0 for none besides this one; results do not
            depend on it.
        logdir: the folder of all results.
        settings: values of config keys, above all others.
        accelerator: ``"cpu"``, ``"gpu"`` or ``"auto"``.
        checkpoint: whether checkpoints are written.
        executor: where a population is evaluated: ``"serial"`` or ``"ray"``.
        ray_address: of a running Ray cluster; None starts one here.
        recording_epoch_interval: films a sampled and a greedy episode every so many epochs; -1 for
            never.
        reload: a checkpoint whose policy the run starts from, a run directory, or the name of an
            agent of the package.
        resume: whether the run continues from its ``last.ckpt``, if there is one.
        config: values of config keys, below ``settings``, e.g. those of another run's
            ``config.yaml``.
        stop_return: stops the run when its mean evaluation return has been this or more in
            ``stop_evaluations`` evaluations in a row; None: only the budget does.
        stop_evaluations: see ``stop_return``.
    """

    implementation: str
    gamename: str
    exp_name: str = "default"
    seed: int = 25
    num_seeds: int = 1
    preset: str | None = None
    num_workers: int = dataclasses.field(default_factory=default_workers)
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
    stop_return: float | None = None
    stop_evaluations: int = 1

    @property
    def run_dir(self) -> Path:
        return (
            self.logdir
            / folder_name(self.gamename)
            / self.exp_name
            / self.implementation
            / f"seed_{self.seed}"
        )

    def single_runs(self) -> list[RunOptions]:
        """The run of each seed: seed, seed + 1, .."""
        return [
            dataclasses.replace(self, seed=self.seed + n, num_seeds=1)
            for n in range(self.num_seeds)
        ]


def checked(options: RunOptions) -> RunOptions:
    """The options of a Python caller as the command line would have taken them; UserError where
    it would refuse them.
    """
    o = options
    checked_gamename(o.gamename)
    checked_name("exp_name", o.exp_name, "'default'")
    evaluations = whole_number("--stop_evaluations", o.stop_evaluations, 1)
    resume, checkpoint = truth("resume", o.resume), truth("checkpoint", o.checkpoint)
    logdir, reload = (
        user_path("--logdir", o.logdir),
        None if o.reload is None else user_path("--reload", o.reload),
    )
    first, *others = seeds_from(o.seed, o.num_seeds)
    given = {
        "--resume": resume,
        "--reload": o.reload is not None,
        "--no_checkpoint": not checkpoint,
        "--stop_return": o.stop_return is not None,
        "--stop_evaluations": evaluations != 1,
    }
    check_apart({flag for flag, there in given.items() if there})
    check_folder_names(o.exp_name, o.gamename)
    stop_return = None if o.stop_return is None else one_number(o.stop_return)
    if o.stop_return is not None and (stop_return is None or not math.isfinite(stop_return)):
        raise UserError(
            f"--stop_return {shown(o.stop_return)}: it must be a finite number, e.g. 250"
        )
    if o.ray_address is not None:
        checked_name("--ray_address", o.ray_address, "'10.0.0.5:6379'")
    if (
        interval := whole_number("--recording_epoch_interval", o.recording_epoch_interval, -1)
    ) == 0:
        raise UserError("--recording_epoch_interval 0: it must be 1 or more, or -1 for never")
    return dataclasses.replace(
        o,
        seed=first,
        num_seeds=1 + len(others),
        num_workers=check_workers(o.num_workers),
        recording_epoch_interval=interval,
        accelerator=one_of("--accelerator", o.accelerator, ACCELERATORS),
        executor=one_of("--executor", o.executor, EXECUTORS),
        stop_evaluations=evaluations,
        logdir=logdir,
        reload=None if reload is None else checkpoint_at(reload),
        resume=resume,
        checkpoint=checkpoint,
        stop_return=stop_return,
    )


def run_config(options: RunOptions, where: str = "--set") -> MethodConfig:
    """The checked config of a run; where: its settings come from."""
    schema, o = implementation(options.implementation).Config, options
    return load_config(schema, o.implementation, o.gamename, o.preset, o.config, o.settings, where)


def check_accelerator(options: RunOptions, config: MethodConfig) -> None:
    """UserError where the config cannot run with the ``--accelerator`` that is asked for,
    whatever hardware there is.
    """
    if options.accelerator != "gpu":
        return
    for each in (config, *inner_configs(config)):
        if (reason := each.cpu_only()) is not None:
            raise UserError(f"--accelerator gpu: {reason}, or --accelerator cpu")
    if not implementation(options.implementation).has_population:
        return
    if options.executor != "serial":
        raise UserError(
            f"--accelerator gpu: --executor {options.executor} evaluates on CPUs; use serial, or "
            "--accelerator cpu"
        )
    if options.num_workers > 1:
        raise UserError(
            f"--accelerator gpu: --num_workers {options.num_workers} would evaluate in processes "
            "that cannot share it; use 1, or "
            "--accelerator cpu"
        )


def accelerator_of(options: RunOptions, config: MethodConfig) -> str:
    """``cpu`` or ``gpu``: what ``--accelerator`` means for the run on this machine; UserError
    where it cannot be had.
    """
    check_accelerator(options, config)
    there, auto = torch.cuda.is_available(), implementation(options.implementation).auto_gpu
    if options.accelerator == "gpu" and not there:
        raise UserError(
            "--accelerator gpu: no GPU that torch can use was found; use --accelerator cpu"
        )
    if options.accelerator == "gpu" or (options.accelerator == "auto" and auto and there):
        return "gpu"
    if (
        reason := config.gpu_only()
    ) is not None and not options.resume:  # a run may go on elsewhere
        raise UserError(f"--accelerator {options.accelerator}: {reason}, or --accelerator gpu")
    return "cpu"
