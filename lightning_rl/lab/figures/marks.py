"""What the curves say at chosen points: mean and interval over seeds, beside published curves."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from rich.table import Table

from lightning_rl.core.arguments import number
from lightning_rl.core.console import put
from lightning_rl.functional.bootstrap import bootstrap_interval, mean
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.curves import Reference, read_reference
from lightning_rl.lab.figures.groups import label_groups, positive
from lightning_rl.lab.figures.runs import AXES, Floats, read_table, require_one_run_per_seed
from lightning_rl.lab.figures.scores import interval, markdown


def near(x: Floats, value: Floats, mark: float, window: float) -> float:
    """Mean of the values within half a window of ``mark``; nan where there is none."""
    inside = np.abs(x - mark) <= window / 2 * (1 + 1e-9)
    return float(value[inside].mean()) if inside.any() else float("nan")


def mark_table(table: pd.DataFrame, axis: str, marks: Sequence[float], window: float) -> pd.DataFrame:
    """gamename, group, seeds, ``axis``, value, low, high: mean over runs at each mark; nan where a run does not reach it."""
    rows = []
    for (game, label), own in table.groupby(["gamename", "group"], sort=False):
        runs = [(run[axis].to_numpy(), run["value"].to_numpy()) for _, run in own.groupby("run", sort=False)]
        values = np.array([[near(*run, mark, window) for mark in marks] for run in runs])
        low, high = bootstrap_interval([values], mean)
        for mark, *numbers in zip(marks, mean(values, axis=0), low, high, strict=True):
            rows.append((game, label, len(runs), mark, *map(float, numbers)))
    return pd.DataFrame(rows, columns=["gamename", "group", "seeds", axis, "value", "low", "high"])


def shown_rows(
    table: pd.DataFrame, references: Sequence[Reference], axis: str, marks: Sequence[float], window: float
) -> list[list[str]]:
    """Header, a row per group, a row per published curve."""
    rows = [[AXES[axis].label, *(_short(mark) for mark in marks)]]
    for (game, label), own in table.groupby(["gamename", "group"], sort=False):
        name = ", ".join(part for part in (str(label), str(game), style.seeds_text([int(own["seeds"].iloc[0])])) if part)
        rows.append([name, *(_cell(*row) for row in own[["value", "low", "high"]].itertuples(index=False))])
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
    parser.add_argument("--tag", default="rollout/return_mean", help="scalar (default rollout/return_mean)")
    parser.add_argument("--x", choices=tuple(AXES), default="env_steps", help="horizontal axis (default env_steps)")
    parser.add_argument("--group", action="append", metavar="KEY", help="as of curves; repeatable")
    parser.add_argument("--reference", action="append", default=[], metavar="CSV[:LABEL]", help="published curve; repeatable")
    parser.add_argument("--markdown", action="store_true", help="print a table for a README instead of writing OUT")


def draw(arguments: argparse.Namespace) -> None:
    """The table that the arguments ask for."""
    references = [read_reference(source, arguments.x) for source in arguments.reference]
    runs = label_groups(read_table(arguments.sources, arguments.tag, arguments.x, arguments.group or ()), arguments.group)
    require_one_run_per_seed(runs, ["gamename", "group"])
    table = mark_table(runs, arguments.x, arguments.at, arguments.window)
    rows = shown_rows(table, references, arguments.x, arguments.at, arguments.window)
    if arguments.markdown:
        print(markdown(rows))
        return
    path = style.save_table(arguments.out, table, "marks")
    shown = Table(*rows[0], title=arguments.title, caption="mean over seeds and its 95 % bootstrap interval")
    for row in rows[1:]:
        shown.add_row(*row)
    put(shown)
    print(f"wrote {path}")
