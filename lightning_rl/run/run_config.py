"""The checked config of a run, and the hardware that it trains on."""

from __future__ import annotations

import torch

from lightning_rl.core.catalogue import entry
from lightning_rl.core.config import OFFLINE, load_config, require_offline
from lightning_rl.core.errors import UserError
from lightning_rl.core.schema import MethodConfig
from lightning_rl.methods.registry import implementation
from lightning_rl.run.options import RunOptions


def run_config(options: RunOptions, where: str = "--set") -> MethodConfig:
    """The checked config of a run; where: its settings come from."""
    schema, o = implementation(options.implementation).Config, options
    settings = o.settings
    if o.dataset is not None:
        require_offline(entry(o.implementation))
        if settings.get(OFFLINE) is False:
            raise UserError("--dataset contradicts offline=False; leave one of them out")
        settings = {**settings, OFFLINE: True}
    config = load_config(schema, o.implementation, o.gamename, o.preset, o.config, settings, where)
    if getattr(config, OFFLINE, False) and o.dataset is None:
        raise UserError(
            "offline is true, which learns from a dataset; give --dataset SOURCE as well, or leave "
            "out what sets it"
        )
    return config


def check_accelerator(options: RunOptions) -> None:
    """UserError where ``--accelerator`` does not go with the other flags, whatever hardware there
    is.
    """
    if options.accelerator != "gpu":
        return
    if not implementation(options.implementation).has_population:
        return
    if options.executor != "serial":
        raise UserError(
            f"--accelerator gpu: --executor {options.executor} evaluates on CPUs; use serial, or "
            "--accelerator cpu"
        )
    if (options.num_workers or 0) > 1:
        raise UserError(
            f"--accelerator gpu: --num_workers {options.num_workers} would evaluate in processes "
            "that cannot share it; use 1, or "
            "--accelerator cpu"
        )


def accelerator_of(options: RunOptions, config: MethodConfig) -> str:
    """``cpu`` or ``gpu``: what ``--accelerator`` means for the run on this machine; UserError
    where it cannot be had.
    """
    check_accelerator(options)
    there, auto = torch.cuda.is_available(), implementation(options.implementation).auto_gpu
    if options.accelerator == "gpu" and not there:
        raise UserError(
            "--accelerator gpu: no GPU that torch can use was found; use --accelerator cpu"
        )
    if options.accelerator == "gpu" or (options.accelerator == "auto" and auto and there):
        return "gpu"
    reason = config.gpu_only()
    if reason is not None and not options.resume:  # a run may go on elsewhere
        raise UserError(f"--accelerator {options.accelerator}: {reason}, or --accelerator gpu")
    return "cpu"
