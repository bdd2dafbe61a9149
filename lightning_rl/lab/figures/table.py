"""A table of runs: the mean of each scalar's last values, one row per run and one per experiment.

Runs of one environment, experiment and implementation are one group; its row holds mean, sd (over runs) and lowest.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table

from lightning_rl.core.arguments import checked_path, count, number
from lightning_rl.core.console import put
from lightning_rl.core.types import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.runs import Curve, attempt, find_runs, read_scalar

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


def table_rows(run_dirs: Sequence[Path], tags: Sequence[str], last: int, until: float) -> list[tuple[str, ...]]:
    """Header, then for each group its runs and their mean, sd and lowest. A scalar that a run lacks is left empty."""
    rows: list[tuple[str, ...]] = [("group", "run", "env_steps", *tags)]
    for group, members in itertools.groupby(sorted(run_dirs, key=lambda d: (group_of(d), d.name)), key=group_of):
        values = []
        for run_dir in members:
            for steps, own in attempt(run_dir, functools.partial(last_means, run_dir, tags, last, until)):
                values.append(own)
                rows.append((group, run_dir.name, str(steps), *_cells(own)))
        for name, statistic in (("mean", np.mean), ("sd", np.std), ("min", np.min)) if values else ():
            rows.append((group, name, "", *_cells(statistic(values, axis=0).tolist())))
    if len(rows) == 1:
        raise UserError(f"no table: none of {', '.join(map(str, run_dirs)) or 'the folders'} holds values of '{tags[0]}'")
    return rows


def last_means(run_dir: Path, tags: Sequence[str], last: int, until: float) -> tuple[int, list[float]]:
    """The run's last env_steps and the mean of each scalar; UserError where it lacks the first of them."""
    first = read_scalar(run_dir, tags[0])
    means = [last_mean(first, last, until), *(_or_nan(run_dir, tag, last, until) for tag in tags[1:])]
    return int(first.env_steps[first.env_steps <= until].max()), means


def _or_nan(run_dir: Path, tag: str, last: int, until: float) -> float:
    try:
        return last_mean(read_scalar(run_dir, tag), last, until)
    except UserError:
        return float("nan")


def _cells(values: Sequence[float]) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``table``."""
    style.add_out(parser, "written as OUT-table.csv; OUT.csv with the ending stays as it is")
    parser.add_argument("sources", type=checked_path, nargs="+", metavar="SOURCE", help="run directory, or folder above some")
    parser.add_argument("--tag", action="append", help=f"scalar; repeatable (default {', '.join(DEFAULT_TAGS)})")
    parser.add_argument("--last", type=count, default=20, metavar="N", help="how many values (20)")
    parser.add_argument("--until", type=number, default=float("inf"), metavar="STEPS", help="only up to here")


def draw(arguments: argparse.Namespace) -> None:
    """The table that the arguments ask for."""
    run_dirs = [run.path for run in find_runs(arguments.sources)]
    header, *rows = table_rows(run_dirs, arguments.tag or DEFAULT_TAGS, arguments.last, arguments.until)
    style.save_table(arguments.out, pd.DataFrame(rows, columns=list(header)), "table")
    table = Table(*header)
    for row in rows:
        table.add_row(*row, end_section=row[1] == "min")
    put(table)
