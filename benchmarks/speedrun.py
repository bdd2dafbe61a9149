"""Time to a return: how long until the evaluation return of every seed stays at a value, on the
cores that there are.

    make speedrun                                                    # RCP-A on LunarLander, 250,
    five seeds make speedrun ARGS="--implementation UDRL --stop_return 200"     # all flags are
    those of trainer.py

The rule. A seed has reached 250 at the end of the fifth evaluation in a row with a mean return of
250 or more. Evaluations are
those of training: their episodes (actions sampled), and how often they happen, are the config's.
Its seconds are those on the wall from the start of this program, imports included, to that moment.
All seeds run at once, each in a process with one more that plays its episodes. The record is the
time at which the last of the five is there. A seed that spends its budget first has not reached
250, and then there is no record.

Every seed is a row of results/speedrun.csv, whatever came of it. The runs stay under
exp_dir/<gamename>/speedrun_<time>/, with what they printed in seed_<n>.log. The exit code is 1 if a
seed failed, 130 if the runs were stopped.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine
from rich.table import Table

from lightning_rl.cli.commands import run_options
from lightning_rl.cli.parser import parse
from lightning_rl.core.console import ProgressBar, put
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import appending, make_folder
from lightning_rl.core.workers import cores, finish_epoch, leave_with_parent

if TYPE_CHECKING:
    from lightning_rl.core.schema import MethodConfig
    from lightning_rl.run.options import RunOptions

STARTED = time.monotonic()  # the imports above take a tenth of a second; the heavy ones come later
RECORDS = machine.ROOT / "results" / "speedrun.csv"
DEFAULTS = (
    *(
        "--implementation",
        "RCP-A",
        "--gamename",
        "lunarlander",
        "--num_seeds",
        "5",
        "--num_workers",
        "1",
    ),
    *(
        "--stop_return",
        "250",
        "--stop_evaluations",
        "5",
        "--exp_name",
        time.strftime("speedrun_%Y%m%d_%H%M%S"),
    ),
)
COLUMNS = (
    *(
        "date",
        "commit",
        "processor",
        "cores",
        "load",
        "flags",
        "implementation",
        "gamename",
        "return",
        "evaluations",
    ),
    *("episodes", "seed", "outcome", "seconds", "env_steps", "last_return"),
)
RUNNING, REACHED, SPENT, STOPPED = "running", "reached", "not reached", "interrupted"


@dataclass(frozen=True)
class Report:
    """How far a seed is.

    outcome: one of the above, or ``failed: <why>``.
    seconds: from the start of this program to the end of its last evaluation.
    last_return: of that evaluation.
    share: of its budget that is spent.
    """

    outcome: str = RUNNING
    seconds: float = math.nan
    env_steps: int = 0
    last_return: float = math.nan
    share: float = 0.0


def train_seed(options: RunOptions, started: float, pipe: Connection, log: Path) -> None:
    """One run in a process of its own, which reports after every epoch, and at last what came of
    it.
    """
    leave_with_parent(finish_epoch)
    os.environ["TTY_COMPATIBLE"] = "0"  # lines instead of progress bars
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    from pytorch_lightning.callbacks import LambdaCallback

    from lightning_rl.run.callbacks import RunProgress, StopAtReturn
    from lightning_rl.run.runtime import prepare_process
    from lightning_rl.run.train import run_training

    report = Report()

    def epoch_over(trainer: Any, method: Any) -> None:
        nonlocal report
        steps = int(method.env_steps)
        budget = next(each for each in trainer.callbacks if isinstance(each, RunProgress))
        share = budget.share(trainer.current_epoch + 1, steps, float(method.episodes))
        report = dataclasses.replace(report, env_steps=steps, share=share)
        pipe.send(report)

    def evaluated(trainer: Any, method: Any) -> None:
        nonlocal report
        value = float(trainer.callback_metrics[method.monitor])
        report = dataclasses.replace(report, seconds=time.monotonic() - started, last_return=value)

    try:
        prepare_process()
        run = run_training(
            options, [LambdaCallback(on_validation_end=evaluated, on_train_epoch_end=epoch_over)]
        )
        stop = next(each for each in run.trainer.callbacks if isinstance(each, StopAtReturn))  # type: ignore[attr-defined]
        outcome = REACHED if stop.reached else STOPPED if run.signal else SPENT
    except KeyboardInterrupt:
        outcome = STOPPED
    except Exception as error:
        traceback.print_exc()
        outcome = f"failed: {' '.join(str(error).split()) or type(error).__name__}"
    pipe.send(dataclasses.replace(report, outcome=outcome, share=1.0))


def race(runs: Sequence[RunOptions], show: Callable[[Sequence[Report]], None]) -> list[Report]:
    """What came of the runs, all at once. show: is given the reports once a second, and whenever
    a run ends.
    """
    from lightning_rl.run.processes import signals_to

    # A fork needs no imports; elsewhere than on Linux it is not safe.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    reports, processes, pipes = [Report() for _ in runs], [], {}
    for number, options in enumerate(runs):
        ours, theirs = context.Pipe(duplex=False)
        log = options.run_dir.parent / f"{options.run_dir.name}.log"
        processes.append(context.Process(target=train_seed, args=(options, STARTED, theirs, log)))
        processes[-1].start()
        theirs.close()
        pipes[ours] = number
    with signals_to(processes):
        while pipes:
            for pipe in wait(list(pipes), timeout=1.0):
                assert isinstance(pipe, Connection)
                number = pipes[pipe]
                try:
                    reports[number] = pipe.recv()
                except EOFError:
                    processes[number].join()
                    if reports[number].outcome == RUNNING:
                        killed = f"failed: the process ended with code {processes[number].exitcode}"
                        reports[number] = dataclasses.replace(
                            reports[number], outcome=killed, share=1.0
                        )
                    del pipes[pipe]
            show(reports)
    return reports


class Board:
    """A progress bar over all seeds, and a line for each that ends."""

    def __init__(self, runs: Sequence[RunOptions]):
        self.seeds, self.ended = [run.seed for run in runs], set[int]()
        self.bar = ProgressBar("speedrun")

    def show(self, reports: Sequence[Report]) -> None:
        for seed, report in zip(self.seeds, reports, strict=True):
            if report.outcome != RUNNING and seed not in self.ended:
                self.ended.add(seed)
                put(
                    f"seed {seed}: {report.outcome}, {report.seconds:,.0f} s, {report.env_steps:,} "
                    "steps"
                )
        running = [
            f"seed {seed}: {report.last_return:.0f}"
            for seed, report in zip(self.seeds, reports, strict=True)
            if report.outcome == RUNNING and not math.isnan(report.last_return)
        ]
        share = sum(report.share for report in reports) / len(
            reports
        )  # the time left is that of seeds that spend all
        self.bar.show(share, [f"{len(self.ended)} of {len(reports)} over", *running])


def facts(options: RunOptions, config: MethodConfig, words: Sequence[str]) -> dict[str, Any]:
    """What all rows of a race have in common."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "commit": machine.commit(),
        "processor": machine.processor(),
        "cores": cores(),
        "load": round(machine.load(), 1),
        "flags": " ".join(words),
        "implementation": options.implementation,
        "gamename": options.gamename,
        "return": options.stop_return,
        "evaluations": options.stop_evaluations,
        "episodes": config.eval_episodes,
    }


def row(common: dict[str, Any], seed: int, report: Report) -> dict[str, Any]:
    """A row of the table; nothing where a seed was never evaluated."""
    measured = {"seconds": report.seconds, "last_return": report.last_return}
    numbers = {
        name: "" if math.isnan(value) else round(value, 1) for name, value in measured.items()
    }
    return {
        **common,
        "seed": seed,
        "outcome": report.outcome,
        "env_steps": report.env_steps,
        **numbers,
    }


def print_table(common: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """The seeds, the record, and where it was."""
    rule = (
        f"{common['evaluations']} evaluations of {common['episodes']} episodes in a row at "
        f"{common['return']:g} or more"
    )
    table = Table(title=f"{common['implementation']} on {common['gamename']}: {rule}")
    for name in ("seed", "outcome", "seconds", "env_steps", "last_return"):
        table.add_column(name.replace("_", " "), justify="left" if name == "outcome" else "right")
    for each in rows:
        count = f"{each['env_steps']:,}"
        table.add_row(
            str(each["seed"]),
            each["outcome"],
            str(each["seconds"]),
            count,
            str(each["last_return"]),
        )
    reached = [each["seconds"] for each in rows if each["outcome"] == REACHED]
    record = f"all {len(rows)} seeds: {max(reached, default=0):,.1f} s"
    none = f"no record: {len(reached)} of {len(rows)} seeds reached {common['return']:g}"
    where = f"{common['processor']}, {common['cores']} cores, load {common['load']} before"
    put(
        table,
        record if len(reached) == len(rows) else none,
        f"{where}; commit {common['commit']}, {common['date']}",
    )


def speedrun(words: Sequence[str], records: Path = RECORDS) -> int:
    """The whole program; the exit code."""
    _, arguments = parse([*DEFAULTS, *words], "speedrun.py")
    for flag, given in (
        ("--resume", arguments.resume),
        ("--num_processes", arguments.num_processes > 1),
    ):
        if given:
            raise UserError(
                f"{flag}: each seed is timed from its start in a process of its own; leave it out"
            )
    options = run_options(arguments)
    from lightning_rl.run.run_config import run_config

    config, runs = run_config(options), options.single_runs()
    if (folder := runs[0].run_dir.parent).exists():
        raise UserError(f"'{folder}' exists; choose another --exp_name")
    with appending(records, ",".join(COLUMNS), "move it away") as table:
        make_folder(folder)
        common, board = facts(options, config, words), Board(runs)
        try:
            reports = race(runs, board.show)
        finally:
            board.bar.close()
        rows = [row(common, run.seed, report) for run, report in zip(runs, reports, strict=True)]
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS, lineterminator="\n").writerows(rows)
        table.append(text.getvalue())
    print_table(common, rows)
    outcomes = [report.outcome for report in reports]
    return (
        1
        if any(outcome.startswith("failed") for outcome in outcomes)
        else 130
        if STOPPED in outcomes
        else 0
    )


if __name__ == "__main__":
    try:
        sys.exit(speedrun(sys.argv[1:]))
    except UserError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
