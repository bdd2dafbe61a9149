"""Performance profiles: for every score, the share of the runs above it.

Agarwal et al. 2021, arXiv 2108.13264.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from experiments.intervals import share_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import LABELS, Group, all_groups, read_groups
from lightning_rl.lab.figures.scores import run_scores
from lightning_rl.lab.tables import counted

POINTS = 101
"""Thresholds of a profile."""


def above(scores: npt.ArrayLike, thresholds: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """``[n, K]``: 1 where score n is above threshold k, else 0."""
    higher = np.asarray(scores)[:, None] > np.asarray(thresholds)
    return higher.astype(np.float64)


def profiles(groups: Sequence[Group], score: str) -> pd.DataFrame:
    """group, threshold, share of its runs above that, and that share's 95 % interval: low, high.

    The thresholds are the same for all groups, from below the lowest score to above the highest.
    """
    scores = [run_scores(group, None)[score].to_numpy(float) for group in groups]
    every = np.concatenate(scores)
    margin = 0.05 * (np.ptp(every) or 1.0)
    thresholds = np.linspace(every.min() - margin, every.max() + margin, POINTS)
    parts = []
    for group, own in zip(groups, scores, strict=True):
        share, low, high = share_interval(above(own, thresholds))
        columns = {"threshold": thresholds, "share": share, "low": low, "high": high}
        parts.append(pd.DataFrame({"group": group.label, **columns}))
    return pd.concat(parts, ignore_index=True)


def draw_panel(axes: Axes, groups: Sequence[Group], table: pd.DataFrame) -> None:
    """The profiles of one environment."""
    for index, group in enumerate(groups):
        own = table[table["group"] == group.label]
        style.banded_line(
            axes,
            own["threshold"],
            own["share"],
            own["low"],
            own["high"],
            style.colour(index),
            step="post",
            linewidth=1.8,
            label=group.name,
        )
    axes.set(ylabel="share of runs above", ylim=(-0.03, 1.03))
    axes.legend(loc="best")


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    games, _ = read_groups(given)
    figure, panels = style.panels(len(games))
    parts = []
    for axes, (game, groups) in zip(panels, games.items(), strict=True):
        table = profiles(groups, given.score)
        draw_panel(axes, groups, table)
        axes.set_xlabel(f"{given.score}: {LABELS.get(given.tag, given.tag)}")
        if len(games) > 1 or not given.title:
            axes.set_title(game)
        table.insert(0, "gamename", game)
        parts.append(table)
    seeds = counted(len(group.seeds) for group in all_groups(games))
    style.describe(figure, given.title, f"{seeds} per group; band: 95 % interval over seeds.")
    style.save(figure, given.out, pd.concat(parts, ignore_index=True))
