"""The Pareto front of a policy: what it was asked for, and what it obtained."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures import style

_MOST = 6  # panels, of pairs of objectives


def draw_front(out: Out, report: Mapping[str, Any]) -> None:
    """OUT.png, .svg and .csv of a report of ``lab.front``, a panel for each pair of objectives."""
    table = pd.DataFrame(report["rows"])
    pairs = list(itertools.combinations(report["objectives"], 2))[:_MOST]
    figure, panels = style.panels(len(pairs), (6.4, 4.8))
    for axes, pair in zip(panels, pairs, strict=True):
        draw_pair(axes, table, *pair)
    panels[0].legend(loc="best")
    title = f"{report['implementation']} on {report['gamename']}, {report['env_steps']:,} steps"
    episodes = f"mean of {report['episodes']} episodes" if report["episodes"] > 1 else "one episode"
    style.describe(
        figure, title, f"{episodes} of each command; hypervolume {report['hypervolume']:,.1f}"
    )
    style.save(figure, out, table)


def draw_pair(axes: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    """Two objectives: each command, joined to what it obtained."""
    asked = table[f"commanded_{x}"], table[f"commanded_{y}"]
    got = table[x], table[y]
    for row in range(len(table)):
        ends = [(a[row], b[row]) for a, b in zip(asked, got, strict=True)]
        axes.plot(*ends, color="grey", linewidth=1)
    axes.plot(*asked, "o", markersize=9, fillstyle="none", color="black", label="commanded")
    axes.plot(*got, "o", markersize=5, color=style.colour(0), label="obtained")
    axes.set(xlabel=x, ylabel=y)
