"""``lightning-rl runs DIR``: a table of all runs."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import track

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.outputs import File, Out, owned_table
from lightning_rl.lab.figures.runs import IDENTITY, SPEED, Run, find_runs
from lightning_rl.lab.reports.registry import RUN_COLUMNS
from lightning_rl.lab.scalars import Curve, attempt, natural_order, read_scalar
from lightning_rl.lab.tables import counted, csv_text, put_rows
from lightning_rl.run.state import read_state

RETURNS = ("eval/return_mean", "rollout/return_mean", "es/fitness_mean")
"""The score of a run: the first of these that it has."""


def score_curve(run: Run) -> tuple[str, Curve | None]:
    """The score of a run and its values; None where it has none (yet)."""
    for tag in RETURNS:
        try:
            return tag, read_scalar(run.path, tag)
        except UserError:
            continue
    return "", None


def run_row(run: Run) -> dict[str, object]:
    """One row of the table, without what the run does not have."""
    tag, curve = score_curve(run)
    state, reason = read_state(run.path)
    row = {name: run.about.get(name, "") for name in IDENTITY}
    row |= {"state": state, "scalar": tag, "run": str(run.path), "reason": reason}
    speed = attempt(run.path, read_scalar, run.path, SPEED, skip=lambda *_: None)
    clock = speed[0] if speed else curve
    if clock is not None:
        row |= {"env_steps": float(clock.env_steps[-1]), "hours": float(clock.seconds[-1]) / 3600}
    if curve is not None:
        row |= {"last": float(curve.value[-1]), "best": float(curve.value.max())}
    return row


def list_runs(
    folders: Sequence[Path], sort: Sequence[str] = (), reverse: bool = False
) -> pd.DataFrame:
    """All runs below the folders, one row each; UserError where there is none."""
    runs = find_runs(folders)
    console = Console(stderr=True)
    steps = track(runs, "reading", transient=True, console=console, disable=len(runs) < 8)
    table = pd.DataFrame([run_row(run) for run in steps], columns=list(RUN_COLUMNS))
    if not sort:
        return table
    return table.sort_values(list(sort), ascending=not reverse, kind="stable", key=_sortable)


def _sortable(column: pd.Series) -> pd.Series:
    """Numbers as such; texts, and a column of both, in natural order."""
    if column.dtype.kind in "if":
        return column
    return column.map(lambda value: tuple(natural_order(str(value))))


def show(given: Namespace) -> None:
    """Prints the table that the arguments ask for."""
    out = None if given.csv is None else Out(given.csv, (), given.force)
    if out is not None:
        out.check(out.path, owned_table(RUN_COLUMNS))  # before the work
    rows = list_runs(given.folders, given.sort, given.reverse)
    if out is not None:
        out.write(File(out.path, csv_text(rows), owned_table(RUN_COLUMNS)))
    names = [name for name in RUN_COLUMNS if name not in ("scalar", "run", "reason")]
    title = counted([len(rows)], "run")
    for name in IDENTITY:  # what all have in common, or the table would be too wide for a terminal
        if name != "seed" and rows[name].nunique() == 1:
            names.remove(name)
            title += f", {name} {rows[name].iloc[0]}"
    tags = sorted({tag for tag in rows["scalar"] if tag})
    caption = f"last and best: {', '.join(tags)}" if tags else None
    styles = ["red" if state == "failed" else None for state in rows["state"]]
    put_rows([names, *cells(rows, names)], title, caption, styles)
    for _, row in rows[rows["reason"] != ""].iterrows():
        say(f"{row['state']}: {row['run']}: {row['reason']}")


FORMATS = {"env_steps": "{:,.0f}", "hours": "{:.2f}"}


def cells(table: pd.DataFrame, names: Sequence[str]) -> list[list[str]]:
    """The columns ``names`` of each row for people; empty where there is no value."""

    def text(name: str, value: object) -> str:
        if not isinstance(value, float):
            return str(value)
        if math.isnan(value):
            return ""
        return FORMATS[name].format(value) if name in FORMATS else three_digits(value)

    rows = table[list(names)].itertuples(index=False)
    return [[text(name, value) for name, value in zip(names, row, strict=True)] for row in rows]
