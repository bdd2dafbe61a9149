"""Learning curves: every seed thin, mean, interquartile mean and 95 % band over seeds, beside
published curves.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lightning_rl.core import catalogue
from lightning_rl.functional.statistics import IQM_RUNS
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv, require
from lightning_rl.lab.figures.groups import LABELS, Group, all_groups, read_groups, units_text
from lightning_rl.lab.figures.runs import split_label
from lightning_rl.lab.scalars import Floats
from lightning_rl.lab.tables import counted

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


def read_reference(source: str, axis: str) -> Reference:
    """``CSV:LABEL`` with columns ``axis`` and value; ``below`` may be a third: 1 where the value
    is but a bound.
    """
    path, label = split_label(source)
    table = read_csv(path, (axis, "value", "below"))
    require(table, (axis, "value"), f"--reference '{path}' has: {', '.join(map(str, table))}")
    value = table["value"].to_numpy(float)
    unseen = np.zeros(len(table), bool)
    if "below" in table:
        unseen = table["below"].to_numpy(float) == 1
    return Reference(
        label or path.stem,
        table[axis].to_numpy(float),
        np.where(unseen, np.nan, value),
        np.where(unseen, value, np.nan),
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

    marked: with markers on its mean, or on its only run, as it may lie on that of another group.
    """
    several = len(group.seeds) > 1
    lines = {}
    for seed, values in zip(group.seeds, group.values, strict=True):
        lines[f"seed_{seed}"] = (group.x, values)
        axes.plot(
            group.x,
            values,
            color=colour,
            alpha=0.3 if several else 1,
            linewidth=0.7 if several else 1.5,
            zorder=2,
            **style.points(colour, values, marked and not several),
        )
    cue: dict[str, Any] = {"marker": style.MARKERS[colour], "markersize": 6} if marked else {}
    axes.plot([], [], color=colour, linewidth=2.0, label=group.name, **cue)
    statistics = group.statistics() if several else {}
    if not statistics:
        return lines
    x, mean = statistics["mean"]
    if banded and len(group.seeds) >= BAND_RUNS:
        band = (x, statistics["low"][1], statistics["high"][1])
        axes.fill_between(*band, color=colour, alpha=0.18, linewidth=0, zorder=1)
        if len(x) == 1:  # of which a band would not be seen
            axes.vlines(*band, color=colour, alpha=0.5, linewidth=4, zorder=1)
    look = style.points(colour, mean, marked)
    axes.plot(x, mean, color=colour, linewidth=2.0, zorder=3, **look)
    if "iqm" in statistics:
        axes.plot(*statistics["iqm"], color=colour, linewidth=1.2, linestyle=":", zorder=3)
    return lines | statistics


def group_colours(games: Mapping[str, Sequence[Group]]) -> dict[str, str]:
    """The colour of each group, the same in the panels of all environments.

    The first group of an implementation has the colour of its place among those of its kind, the
    same in all figures.
    """
    labels = dict.fromkeys(group.label for group in all_groups(games))
    chosen: dict[str, str] = {}
    for label in labels:
        place = place_of(label.split(", ")[0])
        if place is not None and style.colour(place) not in chosen.values():
            chosen[label] = style.colour(place)
    free = [colour for colour in style.COLOURS if colour not in chosen.values()] or style.COLOURS
    others = itertools.cycle(free)
    return {label: chosen.get(label) or next(others) for label in labels}


def place_of(implementation: str) -> int | None:
    """The place in the catalogue among the implementations of its module; None if there is no
    such implementation.
    """
    entries = catalogue.entries()
    if implementation not in entries:
        return None
    kind = entries[implementation].module
    return [name for name, entry in entries.items() if entry.module == kind].index(implementation)


def draw_means(
    axes: Axes, groups: Sequence[Group], colours: Mapping[str, str], beside: Axes
) -> None:
    """The means of all groups, which have panels of their own ``beside``."""
    axes.sharex(beside)
    axes.sharey(beside)
    axes.set(xlabel=beside.get_xlabel(), ylabel=beside.get_ylabel())
    drawn: set[str] = set()
    for group in groups:
        statistics = group.statistics()
        if "mean" in statistics:
            colour = colours[group.label]
            x, mean = statistics["mean"]
            look = style.cue(colour, mean)
            look["linestyle"] = "--" if colour in drawn else "-"
            drawn.add(colour)
            axes.plot(x, mean, color=colour, linewidth=1.6, label=group.label, **look)
    axes.set_title("all means")
    axes.legend(loc="lower right", fontsize=8)


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
    panels = []
    for game, groups in games.items():
        for group in groups:
            others = [other for other in groups if other is not group]
            panels.append(Panel(game, [group], others))
    return panels


def crowded(games: Mapping[str, Sequence[Group]]) -> bool:
    """Whether the groups of an environment would hide each other in one panel."""
    for groups in games.values():
        seeds = [len(group.seeds) for group in groups if len(group.seeds) > 1]
        if len(seeds) > TOGETHER or (len(seeds) > 1 and sum(seeds) > SEEDS_TOGETHER):
            return True
    return False


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
    parts = []

    def keep(label: str, run: str, x: Floats, value: Floats) -> None:
        names = {"gamename": panel.game, "group": label, "run": run}
        parts.append(pd.DataFrame({**names, look.axis: x, "value": value}))

    for group in groups:
        lines = draw_group(axes, group, colours[group.label], banded, len(groups) > 1)
        for run, (x, value) in lines.items():
            keep(group.label, run, x, value)
    for reference, colour in zip(references, itertools.cycle(style.REFERENCE_COLOURS)):
        inside = reference.x <= groups[0].x[-1]
        x, value = reference.x[inside], reference.value[inside]
        axes.plot(
            x,
            value,
            color=colour,
            linestyle="--",
            linewidth=1.4,
            marker=style.marker(value),
            label=reference.label,
        )
        keep(reference.label, "reference", x, value)
    axes.set_xlabel(units_text(group.unit for group in groups))
    axes.set_ylabel(look.ylabel or LABELS.get(look.tag, look.tag))
    axes.set_title(panel.game)
    style.big_numbers(axes.xaxis)
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
    panels = panels_of(games)
    split = crowded(games)
    colours = group_colours(games)
    banded = split or len(colours) <= TOGETHER
    together = split and len(games) == 1
    figure, every = style.panels(len(panels) + together)
    last = every.pop() if together else None
    parts = []
    first: dict[str, Axes] = {}
    for axes, panel in zip(every, panels, strict=True):
        parts.append(draw_panel(axes, panel, look, colours, references, banded))
        titles = [panel.game] if len(games) > 1 or not look.title else []
        if split:
            titles += [group.name for group in panel.groups]
            if panel.game in first:
                axes.sharex(first[panel.game])
                axes.sharey(first[panel.game])
        axes.set_title(", ".join(titles))
        if references or not (split or style.has_free_place(every)):
            axes.legend(loc=look.legend)
        first.setdefault(panel.game, axes)
    if last is not None:
        draw_means(last, all_groups(games), colours, every[0])
    for axes in first.values():
        axes.autoscale()  # to what all that share its axes hold
    if style.has_free_place(every) and not (split or references):
        style.shared_legend(figure, every)
    caption = [f"{explained(games, split)}; averaged over bins of {width:,.6g}"]
    if look.low is not None:
        for axes in every:
            axes.set_ylim(bottom=look.low)
        caption.append(f"below {look.low:g} not shown")
    bounds = [float(np.nanmax(each.below)) for each in references if np.isfinite(each.below).any()]
    if bounds:
        caption.append(f"published curves have gaps where they are below {max(bounds):g}")
    style.describe(figure, look.title, f"{'; '.join(caption)}.")
    # Published curves are in each panel.
    return figure, pd.concat(parts).drop_duplicates(ignore_index=True)


def explained(games: Mapping[str, Sequence[Group]], split: bool = False) -> str:
    """How many seeds the lines of the panels are of, and what each kind of line means. split: a
    panel for each group.
    """
    every = all_groups(games)
    counts = [len(group.seeds) for group in every]
    kinds = [counted(counts)]
    if max(counts) > 1:
        kinds.append(f"{LINES}, {UNEVEN}" if any(map(uneven, every)) else LINES)
    if max(counts) >= IQM_RUNS:
        kinds.append(MIDDLE)
    if max(counts) >= BAND_RUNS and (split or len(group_colours(games)) <= TOGETHER):
        kinds.append(BANDS)
    if split:
        kinds.append(OTHERS)
    return "; ".join(kinds)


def uneven(group: Group) -> bool:
    """Whether a run has a part of the axis that another lacks."""
    present = np.isfinite(group.values)
    return bool((present.any(axis=0) != present.all(axis=0)).any())


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    references = [read_reference(source, given.x) for source in given.reference]
    games, width = read_groups(given)
    look = Look(given.tag, given.x, given.title, given.ylabel, given.legend, given.low)
    figure, table = curves_figure(games, width, look, references)
    style.save(figure, given.out, table.assign(scalar=given.tag))
