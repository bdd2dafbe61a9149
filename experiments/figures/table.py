"""A table of runs: the mean of each scalar's last values, one row per run and one per experiment.

Runs of one environment, experiment and implementation are one group; its rows mean, sd (over runs)
and min come below them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table

from lightning_rl.core.console import put
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.runs import find_runs
from lightning_rl.lab.scalars import Curve, attempt, natural_order, read_scalar
from lightning_rl.lab.tables import save_table

TAGS = ("eval/return_mean", "eval_greedy/return_mean")
"""The scalars where ``--tag`` names none."""


def last_mean(curve: Curve, last: int, until: float) -> float:
    """Mean of the ``last`` values (or of all, if they are fewer) at ``until`` env_steps or before.

    UserError where there is none, or one of them is not finite.
    """
    chosen = curve.value[curve.env_steps <= until][-last:]
    if not chosen.size:
        raise UserError(f"'{curve.name}' has no value before {until:g} env_steps; raise --until")
    if not np.isfinite(chosen).all():
        raise UserError(
            f"'{curve.name}': not all of its last {chosen.size} values are finite; lower --until, "
            "or leave it out"
        )
    return float(chosen.mean())


def run_row(run_dir: Path, tags: Sequence[str], last: int, until: float) -> dict[str, object]:
    """group, run, env_steps and the mean of each scalar, without those that are missing.

    UserError where the first is.
    """
    first = read_scalar(run_dir, tags[0])
    row: dict[str, object] = {"group": group_of(run_dir), "run": run_dir.name}
    row[tags[0]] = last_mean(first, last, until)
    for tag in tags[1:]:
        with suppress(UserError):
            row[tag] = last_mean(read_scalar(run_dir, tag), last, until)
    row["env_steps"] = str(int(first.env_steps[first.env_steps <= until].max()))
    return row


def group_of(run_dir: Path) -> str:
    """``gamename/exp_name/implementation`` of ``.../gamename/exp_name/implementation/seed_n``."""
    return "/".join(run_dir.resolve().parts[-4:-1])


def run_table(
    run_dirs: Sequence[Path], tags: Sequence[str], last: int, until: float
) -> pd.DataFrame:
    """All runs, with mean, sd and lowest of each group below its runs, as texts.

    A scalar that a run lacks is left empty.
    """
    rows = []
    for run_dir in sorted(run_dirs, key=lambda path: (group_of(path), natural_order(path.name))):
        rows += attempt(run_dir, run_row, run_dir, tags, last, until)
    if not rows:
        folders = ", ".join(map(str, run_dirs))
        raise UserError(f"no table: none of {folders} holds values of '{tags[0]}'")
    table = pd.DataFrame(rows, columns=["group", "run", "env_steps", *tags])
    parts = []
    for group, runs in table.groupby("group", sort=False):
        below = runs[list(tags)].agg(["mean", "std", "min"], skipna=False)
        parts += [runs, below.assign(group=group, run=["mean", "sd", "min"], env_steps="")]
    table = pd.concat(parts, ignore_index=True)
    for tag in tags:
        table[tag] = table[tag].map("{:.2f}".format).replace("nan", "")
    return table


def show(given: Namespace) -> None:
    """Prints the table, and writes it."""
    run_dirs = [run.path for run in find_runs(given.sources)]
    table = run_table(run_dirs, given.tag or TAGS, given.last, given.until)
    save_table(given.out, table, "table")
    shown = Table(*table.columns)
    for row in table.itertuples(index=False):
        shown.add_row(*row, end_section=row.run == "min")
    put(shown)
