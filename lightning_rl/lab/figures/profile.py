"""The performance profile: for every score, the share of runs above it (Agarwal et al. 2021, arXiv 2108.13264)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lightning_rl.functional.intervals import above, share_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import LABELS, Group, add_bin, add_group_arguments, read_groups
from lightning_rl.lab.figures.scores import SCORES, run_scores


def profiles(game: str, groups: Sequence[Group], score: str) -> pd.DataFrame:
    """gamename, group, threshold, share of runs above it, and the 95 % interval of that share (low, high)."""
    scores = {group.label: run_scores(group, None)[score].to_numpy(float) for group in groups}
    everything = np.concatenate(list(scores.values()))
    margin = 0.05 * (np.ptp(everything) or 1.0)
    thresholds = np.linspace(everything.min() - margin, everything.max() + margin, 101)
    parts = []
    for label, values in scores.items():
        share, low, high = share_interval(above(values, thresholds))
        columns = {"threshold": thresholds, "share": share, "low": low, "high": high}
        parts.append(pd.DataFrame({"gamename": game, "group": label, **columns}))
    return pd.concat(parts, ignore_index=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``profile``."""
    style.add_sources(parser)
    add_group_arguments(parser)
    add_bin(parser)
    parser.add_argument("--score", choices=SCORES, default="final", help="which number of a run (default final)")


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    games, _ = read_groups(arguments)
    figure, panels = style.panels(len(games))
    parts = []
    for axes, (game, groups) in zip(panels, games.items(), strict=True):
        parts.append(profiles(game, groups, arguments.score))
        for index, group in enumerate(groups):
            line = parts[-1][parts[-1]["group"] == group.label]
            label = f"{group.label}, {style.seeds_text([len(group.seeds)])}"
            axes.step(line["threshold"], line["share"], where="post", color=style.colour(index), linewidth=1.8, label=label)
            band = (line["threshold"], line["low"], line["high"])
            axes.fill_between(*band, step="post", color=style.colour(index), alpha=0.18, linewidth=0)
        xlabel = f"{arguments.score}: {LABELS.get(arguments.tag, arguments.tag)}"
        axes.set(xlabel=xlabel, ylabel="share of runs above", ylim=(-0.03, 1.03))
        axes.set_title(game if len(games) > 1 or not arguments.title else "")
        axes.legend(loc="best")
    style.heading(figure, arguments.title)
    counts = [len(group.seeds) for groups in games.values() for group in groups]
    style.caption(figure, f"{style.seeds_text(counts)} per group; band: 95 % interval over seeds.")
    style.save(figure, arguments.out, pd.concat(parts, ignore_index=True))
