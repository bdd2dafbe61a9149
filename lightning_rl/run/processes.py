"""Groups of stacked seeds side by side, one process each: several cores at work on
``--num_seeds``.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from lightning_rl.core.errors import UserError, user_message
from lightning_rl.core.lines import say
from lightning_rl.core.stopping import LEAVE_S, SIGNALS, after, exit_code, give_back, stoppable
from lightning_rl.core.workers import default_workers, finish_epoch, leave_with_parent
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import accelerator_of, run_config
from lightning_rl.run.train import train_and_report


def split_seeds(options: RunOptions, count: int) -> list[RunOptions]:
    """``count`` runs with a consecutive share of the seeds each, the sizes equal or one apart."""
    if count > options.num_seeds:
        raise UserError(
            f"--num_processes {count}: more than the {options.num_seeds} seed(s) of --num_seeds; "
            f"use {options.num_seeds} or fewer"
        )
    share, more = divmod(options.num_seeds, count)
    sizes = [share + (group < more) for group in range(count)]
    firsts = [options.seed + sum(sizes[:group]) for group in range(count)]
    num_workers = default_workers(1) if options.num_workers is None else options.num_workers
    return [
        dataclasses.replace(options, seed=first, num_seeds=size, num_workers=num_workers)
        for first, size in zip(firsts, sizes, strict=True)
    ]


def train_groups(options: RunOptions, count: int) -> int:
    """``train_and_report`` for each group of seeds in a process of its own; the highest exit code.

    A seed's run is a function of its seed, so the groups change nothing but the time. Where this
    process is killed, each group finishes its epoch and leaves.
    """
    accelerator = accelerator_of(options, run_config(options))  # said once, not by every process
    # A forked process has torch and Lightning at once, but could not use a GPU; on macOS forks are
    # not safe.
    forks = sys.platform == "linux" and accelerator == "cpu"
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    groups = [
        context.Process(target=_train_one, args=(group,)) for group in split_seeds(options, count)
    ]
    for process in groups:
        process.start()
    with signals_to(groups):
        for process in groups:
            process.join()
    codes = [process.exitcode or 0 for process in groups]
    # A process that a signal killed has its negative number.
    return max(code if code >= 0 else 128 - code for code in codes)


@contextmanager
def signals_to(processes: Sequence[BaseProcess]) -> Iterator[None]:
    """Leaves stopping to these processes: signals are passed on, and who is still there when it
    should have left is ended.
    """
    timers: list[threading.Timer] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, number)
                timers.append(after(LEAVE_S + 0.2, process.kill))

    before = {number: signal.signal(number, pass_on) for number in SIGNALS}
    try:
        yield
    finally:
        give_back(before, timers)


def _train_one(options: RunOptions) -> None:
    leave_with_parent(finish_epoch)
    # lines instead of progress bars, which would write over each other
    os.environ["TTY_COMPATIBLE"] = "0"
    try:
        with stoppable():
            code = train_and_report(options)
    except KeyboardInterrupt as stop:  # a second Ctrl-C, or an epoch that takes long
        code = exit_code(stop)
    except Exception as error:
        if (message := user_message(error, resumable=True)) is None:
            raise
        say(f"error: {message}", error=True)
        code = 2
    sys.exit(code)
