"""A table of runs: the mean of each scalar's last values, one row per run and one per experiment.

    python -m lightning_rl.figures.table OUT.csv RUN_DIR... [--tag eval/return_mean ...] [--last 20] [--until STEPS]

Runs of one environment, experiment and implementation are one group; its row holds mean, sd (over runs) and lowest.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from lightning_rl.figures.curves import Curve, read_scalar
from lightning_rl.types import UserError

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
            first = read_scalar(run_dir, tags[0])
            steps = int(first.env_steps[first.env_steps <= until].max(initial=0))
            values.append([last_mean(first, last, until), *(_or_nan(run_dir, tag, last, until) for tag in tags[1:])])
            rows.append((group, run_dir.name, str(steps), *_cells(values[-1])))
        for name, statistic in (("mean", np.mean), ("sd", np.std), ("min", np.min)):
            rows.append((group, name, "", *_cells(statistic(values, axis=0).tolist())))
    return rows


def _or_nan(run_dir: Path, tag: str, last: int, until: float) -> float:
    try:
        return last_mean(read_scalar(run_dir, tag), last, until)
    except UserError:
        return float("nan")


def _cells(values: Sequence[float]) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="lightning_rl.figures.table", description="The last values of runs.")
    parser.add_argument("out", type=Path, help="CSV to write")
    parser.add_argument("run_dirs", type=Path, nargs="+", metavar="RUN_DIR")
    parser.add_argument("--tag", action="append", help=f"scalar; repeatable (default {', '.join(DEFAULT_TAGS)})")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="how many values (20)")
    parser.add_argument("--until", type=float, default=float("inf"), metavar="STEPS", help="only up to here")
    arguments = parser.parse_args(argv)
    if arguments.last < 1:
        parser.error(f"--last {arguments.last} is too small, it must be 1 or more")
    try:
        rows = table_rows(arguments.run_dirs, arguments.tag or DEFAULT_TAGS, arguments.last, arguments.until)
    except UserError as error:
        parser.error(str(error))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    table = Table(*rows[0])
    for row in rows[1:]:
        table.add_row(*row, end_section=row[1] == "min")
    Console().print(table)


if __name__ == "__main__":
    main()
