"""Learning curves: every seed thin, mean, interquartile mean and 95 % band over seeds, beside
published curves.

Beside them, where asked for, the area under each: the mean of the curve over the steps that all
runs of an environment have, in the unit of the curve, with its interval over seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lightning_rl.core import catalogue
from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.functional.statistics import IQM_RUNS
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv, require
from lightning_rl.lab.figures.groups import LABELS, Group, in_common, read_groups, units_text
from lightning_rl.lab.figures.runs import split_label
from lightning_rl.lab.scalars import Floats
from lightning_rl.lab.tables import put_rows, save_table

LINES = "thin: single seeds; thick: their mean"
UNEVEN = "which ends with the shortest run"
MIDDLE = f"dotted: interquartile mean (from {IQM_RUNS} seeds on)"
BAND_RUNS = 5
"""From so many runs on a mean has a band: the interval of three is so wide that nothing else
would be seen.
"""
BANDS = f"band (from {BAND_RUNS}): 95 % interval of the mean"
TOGETHER = 3
"""At most so many groups, with their bands, share a panel, ..."""
SEEDS_TOGETHER = 20
"""... and only if they have at most so many seeds in all."""
OTHERS = "grey: the means of the others"
AREA_COLUMNS = ("gamename", "group", "seeds", "steps", "mean", "low", "high")


@dataclass(frozen=True)
class Reference:
    """A published curve.

    Attributes:
        value: nan where the published figure does not show it, as it is less than ``below``.
        below: nan where the value is known.
    """

    label: str
    x: Floats
    value: Floats
    below: Floats

    def near(self, mark: float, window: float) -> tuple[float, bool]:
        """(mean, False) of the values less than half a window from ``mark``; (upper bound of it,
        True) if some are bounds.

        nan where there is none. Values exactly on the edge are left out: they belong to the next
        mark just as much.
        """
        inside = np.abs(self.x - mark) < window / 2 * (1 - 1e-9)
        unseen = np.isnan(self.value)
        value = np.where(unseen, self.below, self.value)[inside]
        return (
            (float(value.mean()), bool(unseen[inside].any()))
            if len(value)
            else (float("nan"), False)
        )


def read_reference(source: str, axis: str) -> Reference:
    """``CSV:LABEL`` with columns ``axis`` and value; ``below`` may be a third: 1 where the value
    is but a bound.
    """
    path, label = split_label(source)
    table = read_csv(path, (axis, "value", "below"))
    require(table, (axis, "value"), f"--reference '{path}' has: {', '.join(map(str, table))}")
    x, value = (table[name].to_numpy(float) for name in (axis, "value"))
    unseen = table["below"].to_numpy(float) == 1 if "below" in table else np.zeros(len(x), bool)
    return Reference(
        label or path.stem, x, np.where(unseen, np.nan, value), np.where(unseen, value, np.nan)
    )


@dataclass(frozen=True)
class Look:
    """How a figure of curves is labelled."""

    tag: str
    axis: str = "env_steps"
    title: str = ""
    ylabel: str = ""
    legend: Any = "best"
    low: float | None = None


def draw_group(
    axes: Axes, group: Group, colour: str, banded: bool = True, marked: bool = False
) -> dict[str, tuple[Floats, Floats]]:
    """One group: thin lines of its runs, and over several seeds its statistics; (x, value) of all
    lines.

    marked: with markers on its mean, as it may lie on that of another group.
    """
    several = len(group.seeds) > 1
    lines = {
        f"seed_{seed}": (group.x, values)
        for seed, values in zip(group.seeds, group.values, strict=True)
    }
    for values in group.values:
        mark, alpha, width = style.marker(values), 0.3 if several else 1, 0.7 if several else 1.5
        axes.plot(
            group.x, values, color=colour, alpha=alpha, linewidth=width, marker=mark, zorder=2
        )
    cue = style.cue(colour, group.x.size) if marked else {}
    axes.plot(
        [],
        [],
        color=colour,
        linewidth=2.0,
        label=f"{group.label}, {style.counted([len(group.seeds)])}",
        **cue,
    )
    if several and (statistics := group.statistics()):
        band = (statistics["low"][0], statistics["low"][1], statistics["high"][1])
        mark = style.marker(statistics["mean"][1])
        if banded and len(group.seeds) >= BAND_RUNS:
            axes.fill_between(*band, color=colour, alpha=0.18, linewidth=0, zorder=1)
            if mark:
                axes.vlines(*band, color=colour, alpha=0.5, linewidth=4, zorder=1)
        axes.plot(
            *statistics["mean"], color=colour, linewidth=2.0, zorder=3, **({"marker": mark} | cue)
        )
        if "iqm" in statistics:
            axes.plot(*statistics["iqm"], color=colour, linewidth=1.2, linestyle=":", zorder=3)
        lines |= statistics
    return lines


def group_colours(games: Mapping[str, Sequence[Group]]) -> dict[str, str]:
    """The colour of each group, the same in the panels of all environments.

    The first group of an implementation has the colour of its place among those of its kind, the
    same in all figures.
    """
    labels = list(dict.fromkeys(group.label for groups in games.values() for group in groups))
    chosen = dict[str, str]()
    for label in labels:
        place = place_of(label.split(", ")[0])
        if place is not None and style.colour(place) not in chosen.values():
            chosen[label] = style.colour(place)
    free = [colour for colour in style.COLOURS if colour not in chosen.values()] or style.COLOURS
    chosen |= zip((label for label in labels if label not in chosen), itertools.cycle(free))
    return {label: chosen[label] for label in labels}


def place_of(implementation: str) -> int | None:
    """The place in the catalogue among the implementations of its module; None if there is no
    such implementation.
    """
    entries = catalogue.entries()
    if implementation not in entries:
        return None
    kind = entries[implementation].module
    return [name for name, entry in entries.items() if entry.module == kind].index(implementation)


@dataclass(frozen=True)
class Panel:
    """The groups of one environment that are drawn together; others: those whose means stand
    behind them.
    """

    game: str
    groups: Sequence[Group]
    others: Sequence[Group] = ()


def panels_of(games: Mapping[str, Sequence[Group]]) -> list[Panel]:
    """A panel for each environment; or for each group, where they would hide each other."""
    if not crowded(games):
        return [Panel(game, groups) for game, groups in games.items()]
    alone = [(game, group, groups) for game, groups in games.items() for group in groups]
    return [
        Panel(game, [group], [other for other in groups if other is not group])
        for game, group, groups in alone
    ]


def crowded(games: Mapping[str, Sequence[Group]]) -> bool:
    """Whether the groups of an environment would hide each other in one panel."""
    several = [
        [len(group.seeds) for group in groups if len(group.seeds) > 1] for groups in games.values()
    ]
    return any(
        len(seeds) > TOGETHER or (len(seeds) > 1 and sum(seeds) > SEEDS_TOGETHER)
        for seeds in several
    )


def draw_panel(
    axes: Axes,
    panel: Panel,
    look: Look,
    colours: Mapping[str, str],
    references: Sequence[Reference] = (),
    banded: bool = True,
) -> pd.DataFrame:
    """Its groups, and published curves up to their end, dashed; the rows of the CSV."""
    groups = panel.groups
    for other in panel.others:
        if "mean" in (statistics := other.statistics()):
            axes.plot(*statistics["mean"], color="#bbbbbb", linewidth=1.2, zorder=1.5)
    lines = {
        (group.label, run): line
        for group in groups
        for run, line in draw_group(
            axes, group, colours[group.label], banded, len(groups) > 1
        ).items()
    }
    for reference, colour in zip(
        references, style.REFERENCE_COLOURS * len(references), strict=False
    ):
        inside = reference.x <= groups[0].x[-1]
        line = (reference.x[inside], reference.value[inside])
        axes.plot(
            *line,
            color=colour,
            linestyle="--",
            linewidth=1.4,
            marker=style.marker(line[1]),
            label=reference.label,
        )
        lines[reference.label, "reference"] = line
    unit = units_text(group.unit for group in groups)
    axes.set(xlabel=unit, ylabel=look.ylabel or LABELS.get(look.tag, look.tag), title=panel.game)
    style.big_numbers(axes.xaxis)
    parts = [
        pd.DataFrame(
            {"gamename": panel.game, "group": label, "run": run, look.axis: x, "value": value}
        )
        for (label, run), (x, value) in lines.items()
    ]
    return pd.concat(parts).dropna()


def curves_figure(
    games: Mapping[str, Sequence[Group]],
    width: float,
    look: Look,
    references: Sequence[Reference] = (),
) -> tuple[Figure, pd.DataFrame]:
    """One panel per environment, or group where there are many, and the numbers of all its
    lines.
    """
    panels, split = panels_of(games), crowded(games)
    figure, every = style.panels(len(panels))
    parts, colours, first = [], group_colours(games), dict[str, Axes]()
    for axes, panel in zip(every, panels, strict=True):
        parts.append(
            draw_panel(axes, panel, look, colours, references, split or len(colours) <= TOGETHER)
        )
        several = len(games) > 1 or not look.title
        names = [
            f"{group.label}, {style.counted([len(group.seeds)])}" for group in panel.groups if split
        ]
        axes.set_title(", ".join([*([panel.game] if several else []), *names]))
        if not split or references:
            axes.legend(loc=look.legend)
        if split and first.setdefault(panel.game, axes) is not axes:
            axes.sharex(first[panel.game])
            axes.sharey(first[panel.game])
    for axes in first.values():
        axes.autoscale()  # to what all that share its axes hold
    if look.low is not None:
        for axes in every:
            axes.set_ylim(bottom=look.low)
    cut = "" if look.low is None else f"; below {look.low:g} not shown"
    bounds = [float(np.nanmax(each.below)) for each in references if np.isfinite(each.below).any()]
    cut += f"; published curves have gaps where they are below {max(bounds):g}" if bounds else ""
    style.describe(
        figure, look.title, f"{explained(games, split)}; averaged over bins of {width:,.6g}{cut}."
    )
    return figure, pd.concat(parts, ignore_index=True).drop_duplicates(
        ignore_index=True
    )  # published curves are in each panel


def explained(games: Mapping[str, Sequence[Group]], split: bool = False) -> str:
    """How many seeds the lines of the panels are of, and what each kind of line means. split: a
    panel for each group.
    """
    every = [group for groups in games.values() for group in groups]
    counts = [len(group.seeds) for group in every]
    lines = f"{LINES}, {UNEVEN}" if any(map(uneven, every)) else LINES
    kinds = [lines] if max(counts) > 1 else []
    if max(counts) >= IQM_RUNS:
        kinds.append(MIDDLE)
    if max(counts) >= BAND_RUNS and (split or len(group_colours(games)) <= TOGETHER):
        kinds.append(BANDS)
    return "; ".join([style.counted(counts), *kinds, *([OTHERS] if split else [])])


def uneven(group: Group) -> bool:
    """Whether a run has a part of the axis that another lacks."""
    present = np.isfinite(group.values)
    return bool((present.any(axis=0) != present.all(axis=0)).any())


def draw(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    references = [read_reference(source, given.x) for source in given.reference]
    games, width = read_groups(given)
    look = Look(given.tag, given.x, given.title, given.ylabel, given.legend, given.low)
    figure, table = curves_figure(games, width, look, references)
    style.save(figure, given.out, table)


def areas(groups: Sequence[Group]) -> list[tuple[str, int, float, float, float, float]]:
    """(label, seeds, end, mean, low, high) of each group: the mean over the bins that every run of
    all groups has.

    low, high: 95 % interval over seeds, nan for a single one.
    """
    rows = []
    for group in in_common(groups):
        mean, low, high = mean_interval(group.values.mean(axis=1))
        rows.append(
            (
                group.label,
                len(group.seeds),
                float(group.x[-1]),
                float(mean),
                float(low),
                float(high),
            )
        )
    return rows


def draw_areas(
    axes: Axes,
    rows: Sequence[tuple[str, int, float, float, float, float]],
    lines: Sequence[tuple[float, str]],
    colours: Mapping[str, str],
    unit: str,
) -> None:
    """A dot for the area of each group below its name, with its interval, and the ``lines`` that
    are across the curves, too.

    They are the legend of the curves as well. unit: what the curves are over.
    """
    for index, (label, seeds, _, mean, low, high) in enumerate(rows):
        error = np.nan_to_num([[mean - low], [high - mean]])
        axes.errorbar(
            mean,
            index,
            xerr=error,
            color=colours[label],
            fmt=style.MARKERS[colours[label]],
            markersize=8,
            linewidth=2,
            capsize=4,
            zorder=4,
        )
        blank = {
            "facecolor": "white",
            "edgecolor": "none",
            "pad": 1,
        }  # or the dots of a line would stand between words
        axes.annotate(
            f"{label}, {style.counted([seeds])}",
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
    axes.set(
        yticks=[], xlabel=f"mean over the {over} up to {rows[0][2]:,.0f} (area under the curve)"
    )
    axes.set_ylim(len(rows) - 0.6, -0.8)


def read_line(text: str) -> tuple[float, str]:
    """``VALUE:LABEL``, e.g. ``1.6:random policy``."""
    value, _, label = text.partition(":")
    with contextlib.suppress(ValueError):
        if label and math.isfinite(float(value)):
            return float(value), label
    raise UserError(f"--line '{text}' is no finite number with a label; write VALUE:LABEL")


def draw_with_areas(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv of the curves, and OUT-areas.csv."""
    lines = [read_line(text) for text in given.line]
    games, width = read_groups(given)
    figure, panels = style.panels(2 * len(games), columns=2)
    parts, table, colours = [], [], group_colours(games)
    for (game, groups), left, right in zip(games.items(), panels[::2], panels[1::2], strict=True):
        parts.append(
            draw_panel(
                left,
                Panel(game, groups),
                Look(given.tag, given.x),
                colours,
                banded=len(colours) <= TOGETHER,
            )
        )
        for value, label in lines:
            left.axhline(value, color="black", linestyle=":", linewidth=1)
            left.annotate(
                label,
                (0.01, value),
                xycoords=("axes fraction", "data"),
                fontsize=9,
                va="bottom",
                path_effects=style.outlined(),
            )
        if len(games) == 1 and given.title:
            left.set_title("")
        found = areas(groups)
        draw_areas(right, found, lines, colours, left.get_xlabel())
        table += [(game, *row) for row in found]
    dots = "whiskers: 95 % interval of the area; colours as on the right"
    style.describe(
        figure, given.title, f"{explained(games)}; {dots}; averaged over bins of {width:,.6g}."
    )
    style.save(figure, given.out, pd.concat(parts, ignore_index=True))
    beside = given.out.at(style.stem(given.out.path))
    path = save_table(beside, pd.DataFrame(table, columns=list(AREA_COLUMNS)), "areas")
    shown = [
        [f"{cell:,.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in table
    ]
    put_rows([AREA_COLUMNS, *shown], f"area under {given.tag}: {path}")
