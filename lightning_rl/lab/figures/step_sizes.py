"""Step sizes and score transforms of searches for proxies, a point for each run, and what share of runs is solved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.success import add_limit, limit_of, read_generations, solved_at

STUDY = ("score_transform", "step_size", "mirrored")


def run_table(table: pd.DataFrame, asked: float | None) -> pd.DataFrame:
    """A row per run: gamename, seed, ``STUDY``, generations until solved, or all that it took, and whether it was solved."""
    rows = []
    for _, run in table.groupby("run", sort=False):
        first = run.iloc[0]
        when = solved_at(run["fitness_mean"].to_numpy(float), limit_of(first["gamename"], run, asked))
        about = {name: first[name] for name in ("gamename", "seed", *STUDY)}
        rows.append({**about, "generations": when or len(run), "solved": when is not None})
    return pd.DataFrame(rows)


def draw_runs(axes: Axes, runs: pd.DataFrame, transforms: Sequence[str], scale: Normalize) -> PathCollection:
    """Every run as a point: step size, score transform, and in how many generations it was solved."""
    lane = np.array([transforms.index(name) for name in runs["score_transform"]], dtype=float)
    lane += np.random.default_rng(0).uniform(-0.28, 0.28, len(runs))  # runs of one lane side by side
    solved, size = runs["solved"].to_numpy(bool), runs["step_size"].to_numpy(float)
    axes.scatter(size[~solved], lane[~solved], marker="x", color="#B0B0B0", s=22, linewidths=1, label="not solved")
    points = axes.scatter(size[solved], lane[solved], c=runs["generations"][solved], cmap="viridis_r", norm=scale, s=34,
                          edgecolors="black", linewidths=0.3, label="solved")  # fmt: skip
    axes.set(xscale="log", xlabel="step size", yticks=range(len(transforms)), yticklabels=transforms)
    style.plain_ticks(axes.xaxis)
    axes.set_ylim(-0.5, len(transforms) - 0.5)
    return points


def draw_solved_share(axes: Axes, runs: pd.DataFrame, transforms: Sequence[str], ways: Sequence[bool]) -> None:
    """Bars: the share of the runs of each transform that was solved."""
    height = 0.8 / len(ways)
    for index, mirrored in enumerate(ways):
        chosen = runs[runs["mirrored"] == mirrored]
        share = chosen.groupby("score_transform")["solved"].agg(["mean", "size"]).reindex(transforms).fillna(0)
        place = np.arange(len(transforms)) + (index - (len(ways) - 1) / 2) * height
        label = "mirrored" if mirrored else "not mirrored"
        axes.barh(place, share["mean"], 0.9 * height, color=style.colour(index), alpha=0.85, label=label)
        for y, width, number in zip(place, share["mean"], share["size"], strict=True):
            axes.annotate(f" n={int(number)}", (width, y), fontsize=7, va="center")
    axes.set(xlabel="share of runs solved", yticks=range(len(transforms)), yticklabels=[], xlim=(0, 1.15))
    axes.set_ylim(-0.5, len(transforms) - 0.5)
    if len(ways) > 1:
        axes.legend(loc="best")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``step-sizes``."""
    style.add_sources(parser)
    add_limit(parser)


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    runs = run_table(read_generations(arguments.sources, STUDY), arguments.threshold)
    if runs["gamename"].nunique() > 1:
        raise UserError(f"runs of {' and '.join(runs['gamename'].unique())} do not share a figure; draw them apart")
    transforms, ways = sorted(runs["score_transform"].unique()), sorted(runs["mirrored"].unique(), reverse=True)
    size = (5.6 * len(ways) + 4.2, 0.55 * len(transforms) + 3.2)
    figure, (axes,) = plt.subplots(1, len(ways) + 1, figsize=size, squeeze=False)
    scale = Normalize(1, int(runs["generations"].max()))
    for panel, mirrored in zip(axes, ways, strict=False):
        points = draw_runs(panel, runs[runs["mirrored"] == mirrored], transforms, scale)
        panel.set_title("mirrored sampling" if mirrored else "without mirrored sampling", loc="right")
    axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)  # points are everywhere
    figure.colorbar(points, ax=axes[len(ways) - 1], label="generations until solved")
    draw_solved_share(axes[-1], runs, transforms, ways)
    style.heading(figure, arguments.title or f"Step sizes and score transforms on {runs['gamename'].iloc[0]}")
    style.caption(figure, f"{len(runs)} runs of a seed each, up to {runs['generations'].max()} generations long.")
    style.save(figure, arguments.out, runs)
