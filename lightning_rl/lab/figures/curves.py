"""Learning curves: every seed thin, mean, interquartile mean and 95 % band over seeds, beside published curves."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv
from lightning_rl.lab.figures.groups import LABELS, Group, add_bin, add_group_arguments, read_groups
from lightning_rl.lab.figures.runs import AXES, split_label
from lightning_rl.lab.scalars import Floats

Row = tuple[str, str, str, float, float]
"""gamename, group, run, x, value."""


@dataclass(frozen=True)
class Reference:
    """A published curve."""

    label: str
    x: Floats
    value: Floats


def read_reference(source: str, axis: str) -> Reference:
    """``CSV:LABEL`` with columns ``axis`` and value."""
    path, label = split_label(source)
    table = read_csv(path, (axis, "value"))
    if missing := [name for name in (axis, "value") if name not in table]:
        raise UserError(f"--reference '{path}' lacks the column {', '.join(missing)}; it has: {', '.join(table.columns)}")
    return Reference(label or path.stem, table[axis].to_numpy(float), table["value"].to_numpy(float))


def draw_group(axes: Axes, game: str, group: Group, colour: str) -> list[Row]:
    """One group: thin lines of its runs, and over several seeds its statistics; the rows of the CSV."""
    several = len(group.seeds) > 1
    lines = {f"seed_{seed}": (group.x, values) for seed, values in zip(group.seeds, group.values, strict=True)}
    for values in group.values:
        mark, alpha, width = style.marker(values), 0.3 if several else 1, 0.7 if several else 1.5
        axes.plot(group.x, values, color=colour, alpha=alpha, linewidth=width, marker=mark)
    axes.plot([], [], color=colour, linewidth=2.0, label=f"{group.label}, {style.seeds_text([len(group.seeds)])}")
    if several and (statistics := group.statistics()):
        band = (statistics["low"][0], statistics["low"][1], statistics["high"][1])
        mark = style.marker(statistics["mean"][1])
        if len(group.seeds) > 2:  # the interval of two is so wide that nothing else would be seen
            axes.fill_between(*band, color=colour, alpha=0.18, linewidth=0)
            if mark:
                axes.vlines(*band, color=colour, alpha=0.5, linewidth=4)
        axes.plot(*statistics["mean"], color=colour, linewidth=2.0, marker=mark)
        if "iqm" in statistics:
            axes.plot(*statistics["iqm"], color=colour, linewidth=1.2, linestyle=":")
        lines |= statistics
    return [row for run, points in lines.items() for row in _rows(game, group.label, run, *points)]


def draw_references(axes: Axes, game: str, references: Sequence[Reference], end: float) -> list[Row]:
    """Published curves up to ``end``, dashed; the rows of the CSV."""
    rows = []
    for reference, colour in zip(references, style.REFERENCE_COLOURS * len(references), strict=False):
        inside = reference.x <= end
        x, value = reference.x[inside], reference.value[inside]
        axes.plot(x, value, color=colour, linestyle="--", linewidth=1.4, label=reference.label)
        rows += _rows(game, reference.label, "reference", x, value)
    return rows


def _rows(game: str, label: str, run: str, x: Floats, value: Floats) -> list[Row]:
    return [(game, label, run, float(a), float(b)) for a, b in zip(x, value, strict=True) if np.isfinite(b)]


@dataclass(frozen=True)
class Look:
    """How a figure of curves is labelled."""

    tag: str
    axis: str = "env_steps"
    title: str = ""
    ylabel: str = ""
    legend: Any = "best"


def curves_figure(
    games: Mapping[str, Sequence[Group]], width: float, look: Look, references: Sequence[Reference] = ()
) -> tuple[Figure, pd.DataFrame]:
    """One panel per environment, and the numbers of all its lines."""
    figure, panels = style.panels(len(games))
    rows: list[Row] = []
    for axes, (game, groups) in zip(panels, games.items(), strict=True):
        for index, group in enumerate(groups):
            rows += draw_group(axes, game, group, style.colour(index))
        rows += draw_references(axes, game, references, groups[0].x[-1])
        axes.set(xlabel=AXES[look.axis].label, ylabel=look.ylabel or LABELS.get(look.tag, look.tag))
        axes.set_title(game if len(games) > 1 or not look.title else "")
        style.big_numbers(axes.xaxis)
        axes.legend(loc=look.legend)
    if look.title:
        style.heading(figure, look.title)
    counts = [len(group.seeds) for groups in games.values() for group in groups]
    lines = "; thin: single seeds; thick: their mean; dotted: interquartile mean (from ten seeds on)"
    lines += "; band (from three): 95 % interval of the mean"
    seeds = style.seeds_text(counts) + (lines if max(counts) > 1 else "")
    style.caption(figure, f"{seeds}; averaged over bins of {width:,.6g}.")
    return figure, rows_table(rows, look.axis)


def rows_table(rows: Sequence[Row], axis: str) -> pd.DataFrame:
    """The CSV of a figure of curves."""
    return pd.DataFrame(rows, columns=["gamename", "group", "run", axis, "value"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``curves``."""
    style.add_sources(parser)
    add_group_arguments(parser)
    add_bin(parser)
    add_reference(parser)
    parser.add_argument("--ylabel", default="", help="of the vertical axis, with its unit (default: that of the scalar)")
    parser.add_argument("--legend", default="best", metavar="PLACE", help="e.g. 'lower right' (default: best)")


def add_reference(parser: argparse.ArgumentParser) -> None:
    """``--reference``."""
    parser.add_argument(
        "--reference", action="append", default=[], metavar="CSV[:LABEL]",
        help="published curve with columns of the axis and value; repeatable",
    )  # fmt: skip


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    references = [read_reference(source, arguments.x) for source in arguments.reference]
    games, width = read_groups(arguments)
    look = Look(arguments.tag, arguments.x, arguments.title, arguments.ylabel, arguments.legend)
    figure, table = curves_figure(games, width, look, references)
    style.save(figure, arguments.out, table)
