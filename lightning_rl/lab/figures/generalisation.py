"""Methods compared over their whole learning curve: the curves, and the area under each with its interval over seeds.

The area is given as the mean of the curve over the steps that all runs of an environment have, in the unit of the curve.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.curves import Row, draw_group, rows_table
from lightning_rl.lab.figures.groups import LABELS, Group, add_bin, add_group_arguments, read_groups
from lightning_rl.lab.figures.runs import AXES
from lightning_rl.lab.tables import put_rows, save_table

_COLUMNS = ("gamename", "group", "seeds", "steps", "mean", "low", "high")


def areas(groups: Sequence[Group]) -> list[tuple[str, int, float, float, float, float]]:
    """(label, seeds, end, mean, low, high) of each group: the mean over the bins that every run of all groups has.

    low, high: 95 % interval over seeds, nan for a single one.
    """
    whole = np.logical_and.reduce([np.isfinite(group.values).all(axis=0) for group in groups])
    if not whole.any():
        raise UserError("the runs have no part of the axis in common; compare runs that overlap")
    end = float(groups[0].x[whole][-1])
    rows = []
    for group in groups:
        mean, low, high = mean_interval(group.values[:, whole].mean(axis=1))
        rows.append((group.label, len(group.seeds), end, float(mean), float(low), float(high)))
    return rows


def draw_areas(axes: Axes, rows: Sequence[tuple[str, int, float, float, float, float]]) -> None:
    """One bar for each group, from nothing to its area, and the interval. They are the legend of the curves as well."""
    for index, (_, _, _, mean, low, high) in enumerate(rows):
        error = np.nan_to_num([[mean - low], [high - mean]])
        axes.barh(index, mean, xerr=error, color=style.colour(index), alpha=0.8, capsize=4)
    labels = [f"{row[0]}, {style.seeds_text([row[1]])}" for row in rows]
    axes.set(yticks=range(len(rows)), yticklabels=labels, xlabel="mean over the steps (area under the curve)")
    axes.invert_yaxis()


def read_line(text: str) -> tuple[float, str]:
    """``VALUE:LABEL``, e.g. ``1.6:random policy``."""
    value, _, label = text.partition(":")
    try:
        return float(value), label
    except ValueError as error:
        raise UserError(f"--line '{text}': '{value}' is not a number; write VALUE:LABEL") from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``generalisation``."""
    style.add_sources(parser)
    add_group_arguments(parser)
    add_bin(parser)
    parser.set_defaults(tag="eval_greedy/return_mean")
    parser.add_argument(
        "--line", action="append", default=[], metavar="VALUE:LABEL", help="return to draw across, e.g. 1.6:random; repeatable"
    )


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv of the curves, and OUT-areas.csv."""
    lines = [read_line(text) for text in arguments.line]
    games, width = read_groups(arguments)
    figure, panels = style.panels(2 * len(games))
    rows: list[Row] = []
    table = []
    for (game, groups), left, right in zip(games.items(), panels[::2], panels[1::2], strict=True):
        for index, group in enumerate(groups):
            rows += draw_group(left, game, group, style.colour(index))
        for value, label in lines:
            left.axhline(value, color="black", linestyle=":", linewidth=1)
            left.annotate(label, (0.01, value), xycoords=("axes fraction", "data"), fontsize=8, va="bottom")
        left.set(xlabel=AXES[arguments.x].label, ylabel=LABELS.get(arguments.tag, arguments.tag), title=game)
        style.big_numbers(left.xaxis)
        bars = areas(groups)
        draw_areas(right, bars)
        table += [(game, *bar) for bar in bars]
    if arguments.title:
        figure.suptitle(arguments.title)
    counts = [len(group.seeds) for groups in games.values() for group in groups]
    legend = "Thin: single seeds; thick: their mean; dotted: interquartile mean (from ten seeds on); "
    over = f"over {style.seeds_text(counts)}; averaged over bins of {width:,.6g}."
    style.caption(figure, f"{legend}band (from three seeds), bar: 95 % interval of the mean {over}")
    style.save(figure, arguments.out, rows_table(rows, arguments.x))
    beside = arguments.out.at(style.stem(arguments.out.path))
    path = save_table(beside, pd.DataFrame(table, columns=list(_COLUMNS)), "areas")
    shown = [[f"{cell:,.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in table]
    put_rows([_COLUMNS, *shown], f"area under {arguments.tag}: {path}")
