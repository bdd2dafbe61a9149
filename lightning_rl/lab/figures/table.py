"""A table of runs: the mean of each scalar's last values, one row per run and one per experiment.

Runs of one environment, experiment and implementation are one group; its rows mean, sd (over runs) and min come below them.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.table import Table

from lightning_rl.core.arguments import checked_path, count, number
from lightning_rl.core.console import put
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.runs import find_runs
from lightning_rl.lab.scalars import Curve, attempt, read_scalar
from lightning_rl.lab.tables import save_table

DEFAULT_TAGS = ("eval/return_mean", "eval_greedy/return_mean")


def last_mean(curve: Curve, last: int, until: float) -> float:
    """Mean of the ``last`` values at no more than ``until`` env_steps (fewer if there are fewer)."""
    chosen = curve.value[curve.env_steps <= until][-last:]
    if not chosen.size:
        raise UserError(f"'{curve.name}' has no value before {until:g} env_steps; raise --until")
    return float(chosen.mean())


def group_of(run_dir: Path) -> str:
    """``gamename/exp_name/implementation`` of ``.../gamename/exp_name/implementation/seed_n``."""
    return "/".join(run_dir.resolve().parts[-4:-1])


def run_row(run_dir: Path, tags: Sequence[str], last: int, until: float) -> dict[str, object]:
    """group, run, env_steps and the mean of each scalar, nan where it is missing; UserError where the first is."""
    first = read_scalar(run_dir, tags[0])
    score = last_mean(first, last, until)
    steps = int(first.env_steps[first.env_steps <= until].max())
    row: dict[str, object] = {"group": group_of(run_dir), "run": run_dir.name, "env_steps": str(steps), tags[0]: score}
    for tag in tags[1:]:
        try:
            row[tag] = last_mean(read_scalar(run_dir, tag), last, until)
        except UserError:
            row[tag] = float("nan")
    return row


def run_table(run_dirs: Sequence[Path], tags: Sequence[str], last: int, until: float) -> pd.DataFrame:
    """All runs with mean, sd and lowest of each group below its runs, as texts. A scalar that a run lacks is left empty."""
    rows = []
    for run_dir in sorted(run_dirs, key=lambda path: (group_of(path), path.name)):
        rows += attempt(run_dir, functools.partial(run_row, run_dir, tags, last, until))
    if not rows:
        raise UserError(f"no table: none of {', '.join(map(str, run_dirs)) or 'the folders'} holds values of '{tags[0]}'")
    parts = []
    for group, runs in pd.DataFrame(rows).groupby("group", sort=False):
        values = runs[list(tags)]
        below = pd.DataFrame([values.mean(skipna=False), values.std(ddof=0, skipna=False), values.min(skipna=False)])
        parts += [runs, below.assign(group=group, run=["mean", "sd", "min"], env_steps="")]
    table = pd.concat(parts, ignore_index=True)
    table[list(tags)] = table[list(tags)].map(lambda value: "" if pd.isna(value) else f"{value:.2f}")
    return table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``table``."""
    style.add_out(parser, "written as OUT-table.csv; OUT.csv with the ending stays as it is")
    parser.add_argument("sources", type=checked_path, nargs="+", metavar="SOURCE", help="run directory, or folder above some")
    parser.add_argument("--tag", action="append", help=f"scalar; repeatable (default {', '.join(DEFAULT_TAGS)})")
    parser.add_argument("--last", type=count, default=20, metavar="N", help="how many values (20)")
    parser.add_argument("--until", type=number, default=float("inf"), metavar="STEPS", help="only up to here")


def draw(arguments: argparse.Namespace) -> None:
    """Prints the table and writes it."""
    run_dirs = [run.path for run in find_runs(arguments.sources)]
    table = run_table(run_dirs, arguments.tag or DEFAULT_TAGS, arguments.last, arguments.until)
    save_table(arguments.out, table, "table")
    shown = Table(*table.columns)
    for row in table.itertuples(index=False):
        shown.add_row(*row, end_section=row[1] == "min")
    put(shown)
