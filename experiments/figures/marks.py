"""What learning curves say at chosen points of their axis, beside published ones."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures.curves import Reference, read_reference
from lightning_rl.lab.figures.groups import read_runs, units_text
from lightning_rl.lab.figures.scores import show_rows
from lightning_rl.lab.tables import counted, interval


def near_reference(reference: Reference, mark: float, window: float) -> tuple[float, bool]:
    """(mean, False) of the values less than half a window from ``mark``; (upper bound of it,
    True) if some are bounds.

    nan where there is none. Values exactly on the edge are left out: they belong to the next
    mark just as much.
    """
    inside = np.abs(reference.x - mark) < window / 2 * (1 - 1e-9)
    if not inside.any():
        return float("nan"), False
    unseen = np.isnan(reference.value)
    value = np.where(unseen, reference.below, reference.value)[inside]
    return float(value.mean()), bool(unseen[inside].any())


def near(x: pd.Series, value: pd.Series, mark: float, window: float) -> float:
    """Mean of the values within half a window of ``mark``; nan where there is none."""
    return float(value[(x - mark).abs() <= window / 2 * (1 + 1e-9)].mean())


def mark_table(
    table: pd.DataFrame, axis: str, marks: Sequence[float], window: float
) -> pd.DataFrame:
    """gamename, group, seeds, ``axis``, value, low, high: mean over runs at each mark; nan where
    a run does not reach it.
    """
    rows = []
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        runs = [run for _, run in group.groupby("run", sort=False)]
        for mark in marks:
            values = [near(run[axis], run["value"], mark, window) for run in runs]
            rows.append((game, label, len(runs), mark, *map(float, mean_interval(values))))
    return pd.DataFrame(rows, columns=["gamename", "group", "seeds", axis, "value", "low", "high"])


def mark_rows(
    table: pd.DataFrame,
    references: Sequence[Reference],
    unit: str,
    marks: Sequence[float],
    window: float,
) -> list[list[str]]:
    """Header, a row per group, a row per published curve. unit: what the x axis counts."""
    header = [f"{mark / 1e6:g}M" if mark >= 1e6 else f"{mark:,.6g}" for mark in marks]
    rows = [[unit, *header]]
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        name = ", ".join(filter(None, (str(label), str(game), counted(group["seeds"]))))
        values = group[["value", "low", "high"]].itertuples(index=False)
        rows.append([name, *(_cell(*row) for row in values)])
    for reference in references:
        row = [reference.label]
        for mark in marks:
            value, is_bound = near_reference(reference, mark, window)
            row.append(f"< {_cell(value)}" if is_bound else _cell(value))
        rows.append(row)
    return rows


def _cell(value: float, low: float = float("nan"), high: float = float("nan")) -> str:
    return "" if np.isnan(value) else interval(value, low, high)


def show(given: Namespace) -> None:
    """Prints the table, and writes it without ``--markdown``."""
    references = [read_reference(source, given.x) for source in given.reference]
    runs = read_runs(given)
    table = mark_table(runs, given.x, given.at, given.window)
    rows = mark_rows(table, references, units_text(runs["unit"]), given.at, given.window)
    show_rows(given, "marks", table, rows, given.title, "mean over seeds and its 95 % interval")
