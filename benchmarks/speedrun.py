"""Time to a return: how long until the evaluation return of every seed stays at a value, on the
cores that there are.

    make speedrun                                     # RCP-A on LunarLander, 250, five seeds
    make speedrun ARGS="--set learning_rate=1e-3"     # all flags are those of trainer.py

The rule. A seed holds 250 at the end of the fifth evaluation in a row with a mean return of 250 or
more. Evaluations are those of training: their episodes (actions sampled), and how often they
happen, are the config's. All seeds run at once, each in a process with one more that plays its
episodes. Seconds are those on the wall from the start of this program, imports included, to the end
of a seed's run; the record is that of the last seed. A seed that spends its budget first does not
hold 250, and then there is no record.

Every seed is a row of results/speedrun.csv, whatever came of it. The runs stay under
exp_dir/<gamename>/speedrun_<time>/.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine

from lightning_rl.cli.commands import begin_run, run_options
from lightning_rl.cli.parser import parse
from lightning_rl.cli.tools import use
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import appending
from lightning_rl.core.lines import say
from lightning_rl.core.workers import cores
from lightning_rl.lab.tables import csv_lines

if TYPE_CHECKING:
    from lightning_rl.run.options import RunOptions

STARTED = time.time()  # the imports above take a tenth of a second; the heavy ones come later
RECORDS = machine.ROOT / "results" / "speedrun.csv"
DEFAULTS = (
    *("--implementation", "RCP-A", "--gamename", "lunarlander", "--num_seeds", "5"),
    *("--num_workers", "1", "--stop_return", "250", "--stop_evaluations", "5"),
    *("--exp_name", time.strftime("speedrun_%Y%m%d_%H%M%S")),
)
COLUMNS = (
    *("date", "commit", "processor", "cores", "load", "flags", "implementation", "gamename"),
    *("return", "evaluations", "episodes", "seed", "outcome", "seconds", "env_steps"),
    "last_return",
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
    begin_run(options)
    from lightning_rl.run.processes import train_groups
    from lightning_rl.run.run_config import run_config

    runs = options.single_runs()
    if (folder := runs[0].run_dir.parent).exists():
        raise UserError(f"'{folder}' exists; choose another --exp_name")
    common = {
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
        "episodes": run_config(options).eval_episodes,
    }
    with appending(records, ",".join(COLUMNS), "move it away") as table:
        code = train_groups(options, options.num_seeds)
        rows = [common | outcome(run) for run in runs]
        table.append(csv_lines([[row[name] for name in COLUMNS] for row in rows]))
    for row in rows:
        result = f"{row['outcome']}, {row['seconds'] or '–'} s, {row['env_steps']:,} steps"
        say(f"seed {row['seed']}: {result}")
    use(["speed", "records", str(records)])
    return code


def outcome(run: RunOptions) -> dict[str, Any]:
    """What the folder of a seed's run says came of it."""
    from lightning_rl.lab.scalars import read_scalar
    from lightning_rl.methods.registry import implementation
    from lightning_rl.run.state import STATE, read_state

    found = {"seed": run.seed, "seconds": "", "env_steps": 0, "last_return": ""}
    state, reason = read_state(run.run_dir)
    try:
        curve = read_scalar(run.run_dir, implementation(run.implementation).monitor)
    except UserError:  # it has none
        return {**found, "outcome": f"failed: {reason or 'before its first evaluation'}"}
    found["seconds"] = round((run.run_dir / STATE).stat().st_mtime - STARTED, 1)
    found["env_steps"] = int(curve.env_steps[-1])
    found["last_return"] = round(float(curve.value[-1]), 1)
    last = curve.value[-run.stop_evaluations :]
    held = len(last) == run.stop_evaluations and last.min() >= run.stop_return
    if state != "finished":
        return {**found, "outcome": f"{state}: {reason}".removesuffix(": ")}
    return {**found, "outcome": "reached" if held else "not reached"}


if __name__ == "__main__":
    try:
        sys.exit(speedrun(sys.argv[1:]))
    except UserError as problem:
        say(f"error: {problem}", error=True)
        sys.exit(2)
