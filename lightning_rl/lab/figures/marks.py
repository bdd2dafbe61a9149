"""What the curves say at chosen points: mean and interval over seeds, beside published curves."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lightning_rl.core.arguments import number
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.curves import Reference, add_reference, read_reference
from lightning_rl.lab.figures.groups import add_group_arguments, positive, read_runs
from lightning_rl.lab.figures.runs import AXES
from lightning_rl.lab.scalars import Floats
from lightning_rl.lab.tables import add_markdown, interval, markdown, put_rows, save_table


def near(x: Floats, value: Floats, mark: float, window: float) -> float:
    """Mean of the values within half a window of ``mark``; nan where there is none."""
    inside = np.abs(x - mark) <= window / 2 * (1 + 1e-9)
    return float(value[inside].mean()) if inside.any() else float("nan")


def mark_table(table: pd.DataFrame, axis: str, marks: Sequence[float], window: float) -> pd.DataFrame:
    """gamename, group, seeds, ``axis``, value, low, high: mean over runs at each mark; nan where a run does not reach it."""
    rows = []
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        runs = [(run[axis].to_numpy(), run["value"].to_numpy()) for _, run in group.groupby("run", sort=False)]
        values = np.array([[near(*run, mark, window) for mark in marks] for run in runs])
        for mark, *numbers in zip(marks, *mean_interval(values), strict=True):
            rows.append((game, label, len(runs), mark, *map(float, numbers)))
    return pd.DataFrame(rows, columns=["gamename", "group", "seeds", axis, "value", "low", "high"])


def shown_rows(
    table: pd.DataFrame, references: Sequence[Reference], axis: str, marks: Sequence[float], window: float
) -> list[list[str]]:
    """Header, a row per group, a row per published curve."""
    rows = [[AXES[axis].label, *(_short(mark) for mark in marks)]]
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        name = ", ".join(filter(None, (str(label), str(game), style.seeds_text([int(group["seeds"].iloc[0])]))))
        rows.append([name, *(_cell(*row) for row in group[["value", "low", "high"]].itertuples(index=False))])
    for reference in references:
        rows.append([reference.label, *(_cell(near(reference.x, reference.value, mark, window)) for mark in marks)])
    return rows


def _cell(value: float, low: float = float("nan"), high: float = float("nan")) -> str:
    return "" if np.isnan(value) else interval(value, low, high)


def _short(mark: float) -> str:
    return f"{mark / 1e6:g}M" if mark >= 1e6 else f"{mark:,.6g}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``marks``."""
    style.add_sources(parser, "written as OUT-marks.csv; OUT.csv with the ending stays as it is")
    parser.add_argument("--at", type=number, nargs="+", required=True, metavar="X", help="points of the axis")
    parser.add_argument("--window", type=positive, required=True, metavar="WIDTH", help="average over so much around each")
    add_group_arguments(parser)
    add_reference(parser)
    add_markdown(parser)


def draw(arguments: argparse.Namespace) -> None:
    """Prints the table, and writes it without ``--markdown``."""
    references = [read_reference(source, arguments.x) for source in arguments.reference]
    table = mark_table(read_runs(arguments), arguments.x, arguments.at, arguments.window)
    rows = shown_rows(table, references, arguments.x, arguments.at, arguments.window)
    if arguments.markdown:
        print(markdown(rows))
        return
    path = save_table(arguments.out, table, "marks")
    put_rows(rows, arguments.title, "mean over seeds and its 95 % interval")
    print(f"wrote {path}")
