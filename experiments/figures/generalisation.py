"""Learning curves beside the area under each: the mean of the curve over the steps that all runs of
an environment have, in the unit of the curve, with its interval over seeds.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.curves import (
    TOGETHER,
    Look,
    Panel,
    draw_panel,
    explained,
    group_colours,
)
from lightning_rl.lab.figures.groups import Group, in_common, read_groups
from lightning_rl.lab.tables import Rows, counted, put_rows, save_table


class Area(NamedTuple):
    """The mean of the curves of a group over the bins that every run of all groups has, up to
    ``steps``; low, high: its 95 % interval over seeds, nan for a single one.
    """

    group: str
    seeds: int
    steps: float
    mean: float
    low: float
    high: float


def areas(groups: Sequence[Group]) -> list[Area]:
    """The area under the curves of each group."""
    rows = []
    for group in in_common(groups):
        mean, low, high = map(float, mean_interval(group.values.mean(axis=1)))
        rows.append(Area(group.label, len(group.seeds), float(group.x[-1]), mean, low, high))
    return rows


def draw_areas(
    axes: Axes,
    rows: Sequence[Area],
    lines: Sequence[tuple[float, str]],
    colours: Mapping[str, str],
    unit: str,
) -> None:
    """A dot for the area of each group below its name, with its interval, and the ``lines`` that
    are across the curves, too.

    They are the legend of the curves as well. unit: what the curves are over.
    """
    blank = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # or lines run through the names
    for index, row in enumerate(rows):
        style.interval_dot(axes, row, index, colours[row.group])
        axes.annotate(
            f"{row.group}, {counted([row.seeds])}",
            (0.02, index - 0.2),
            xycoords=("axes fraction", "data"),
            fontsize=9,
            va="bottom",
            bbox=blank,
            zorder=3,
        )
    for value, label in lines:
        axes.axvline(value, color="black", linestyle=":", linewidth=1)
        axes.annotate(
            label, (value, 1.01), xycoords=("data", "axes fraction"), fontsize=9, ha="center"
        )
    over = unit.removeprefix("environment ")
    axes.set(yticks=[], xlabel=f"mean over the {over} up to {rows[0].steps:,.0f}")
    axes.set_ylim(len(rows) - 0.6, -0.8)


def read_line(text: str) -> tuple[float, str]:
    """``VALUE:LABEL``, e.g. ``1.6:random policy``."""
    number, _, label = text.partition(":")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not label or not math.isfinite(value):
        raise UserError(f"--line '{text}' is no finite number with a label; write VALUE:LABEL")
    return value, label


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv of the curves, and OUT-areas.csv."""
    lines = [read_line(text) for text in given.line]
    games, width = read_groups(given)
    figure, panels = style.panels(2 * len(games), columns=2)
    colours = group_colours(games)
    banded = len(colours) <= TOGETHER
    parts = []
    table = []
    for (game, groups), left, right in zip(games.items(), panels[::2], panels[1::2], strict=True):
        look = Look(given.tag, given.x)
        parts.append(draw_panel(left, Panel(game, groups), look, colours, banded=banded))
        for value, label in lines:
            left.axhline(value, color="black", linestyle=":", linewidth=1)
            left.annotate(
                label,
                (0.01, value),
                xycoords=("axes fraction", "data"),
                fontsize=9,
                va="bottom",
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )
        if len(games) == 1 and given.title:
            left.set_title("")
        found = areas(groups)
        draw_areas(right, found, lines, colours, left.get_xlabel())
        table += [(game, *row) for row in found]
    dots = "right: the area under the curve with its 95 % interval, in the same colours"
    style.describe(
        figure, given.title, f"{explained(games)}; {dots}; averaged over bins of {width:,.6g}."
    )
    style.save(figure, given.out, pd.concat(parts, ignore_index=True))
    columns = ("gamename", *Area._fields)
    beside = given.out.at(style.stem(given.out.path))
    path = save_table(beside, pd.DataFrame(table, columns=columns), "areas")
    rows: Rows = [columns]
    for game, group, seeds, *numbers in table:
        rows.append((game, group, str(seeds), *(f"{number:,.3f}" for number in numbers)))
    put_rows(rows, f"area under {given.tag}: {path}")
