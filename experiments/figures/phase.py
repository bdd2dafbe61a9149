"""Where a method is ahead of another, by size of the environment and environment steps."""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from experiments.intervals import difference_chance, discoveries
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import unknown
from lightning_rl.functional.intervals import difference_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import Group, labelled_runs, make_groups
from lightning_rl.lab.scalars import natural_order
from lightning_rl.lab.tables import counted

COLUMNS = ["gamename", "family", "group", "env_steps", "difference", "low", "high", "chance"]


def family_of(gamename: str) -> str:
    """The environment without its last size: ``buttongrid-3`` of ``buttongrid-3-2``."""
    return gamename.rpartition("-")[0] or gamename


def differences(game: str, groups: Sequence[Group], baseline: str) -> pd.DataFrame:
    """Of each group less the baseline, in the bins where all seeds of both have values.

    Columns gamename, family, group, env_steps, difference, low, high, chance; no row where the game
    has no baseline.
    """
    rows = []
    for base, group in itertools.product(groups, groups):
        if base.label != baseline or group is base:
            continue
        whole = np.isfinite(group.values).all(axis=0) & np.isfinite(base.values).all(axis=0)
        for k in np.flatnonzero(whole):
            pair = group.values[:, k], base.values[:, k]
            gap, low, high = map(float, difference_interval(*pair))
            row = (game, family_of(game), group.label, float(group.x[k]))
            rows.append((*row, gap, low, high, difference_chance(*pair)))
    return pd.DataFrame(rows, columns=COLUMNS)


WIDTH = 8.2
"""Inches: as wide as a page shows it, for its numbers."""


def draw_panel(
    axes: Axes, table: pd.DataFrame, games: Sequence[str], steps: Sequence[float], limit: float
) -> AxesImage:
    """One family and one method: a row for each size, a cell for each bin, framed where sure."""
    cells = table.pivot_table(index="gamename", columns="env_steps", values="difference")
    cells = cells.reindex(index=games, columns=steps)
    image = axes.imshow(
        cells, cmap=plt.get_cmap("RdBu", 15), vmin=-limit, vmax=limit, aspect="auto"
    )
    size = style.fitting(9, WIDTH)
    for row in table.itertuples():
        place = (steps.index(row.env_steps), games.index(row.gamename))
        shade = "white" if abs(row.difference) > 0.6 * limit else "black"
        weight = "bold" if row.sure else "normal"
        text = f"{row.difference:+.1f}".replace("-0.0", "+0.0")
        axes.annotate(
            text, place, ha="center", va="center", fontsize=size, color=shade, fontweight=weight
        )
        if row.sure:
            corner = (place[0] - 0.48, place[1] - 0.45)
            axes.add_patch(Rectangle(corner, 0.96, 0.9, fill=False, edgecolor=shade, linewidth=1.4))
    axes.set(yticks=range(len(games)), yticklabels=games, xticks=range(len(steps)))
    axes.set_xticklabels([f"{step / 1000:g}k" for step in steps], fontsize=size + 1)
    axes.set_facecolor("#E4E4E4")
    axes.grid(visible=False)
    return image


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    runs = labelled_runs(given.sources, given.tag, keys=given.group)
    first = runs["env_steps"].min()
    if given.until < first:
        raise UserError(
            f"--until {given.until:g}: the first value is at {first:g} env_steps; raise --until"
        )
    games, width = make_groups(runs[runs["env_steps"] <= given.until], "env_steps", given.bin)
    labels = dict.fromkeys(group.label for groups in games.values() for group in groups)
    for asked in (given.baseline, *(given.method or ())):
        if asked not in labels:
            raise UserError(unknown("method", asked, labels))
    parts = [differences(game, groups, given.baseline) for game, groups in games.items()]
    table = pd.concat(parts, ignore_index=True)
    if given.method:
        table = table[table["group"].isin(given.method)]
    if table.empty:
        raise UserError(
            f"no environment has runs of '{given.baseline}' and of another method; name both, or "
            "another --baseline"
        )
    table = table.assign(sure=discoveries(table["chance"]))
    methods = list(table["group"].unique())
    families = dict(list(table.groupby("family", sort=False)))
    heights = [rows["gamename"].nunique() for rows in families.values()]
    lines = [height for height in heights for _ in methods]
    size = (WIDTH, 1.2 + sum(0.28 * height + 0.6 for height in lines))
    ratios = [height + 0.3 for height in lines]
    figure, grid = plt.subplots(len(lines), 1, figsize=size, squeeze=False, height_ratios=ratios)
    grid = grid.reshape(len(families), len(methods))
    for line, (family, rows) in zip(grid, families.items(), strict=True):
        names = sorted(rows["gamename"].unique(), key=natural_order)
        steps = sorted(rows["env_steps"].unique())
        limit = float(rows["difference"].abs().max()) or 1.0
        for axes, method in zip(line, methods, strict=True):
            image = draw_panel(axes, rows[rows["group"] == method], names, steps, limit)
            axes.set_title(f"{family}: {method} less {given.baseline}")
        line[-1].set_xlabel("environment steps")
        figure.colorbar(image, ax=list(line), label="return", aspect=8 * len(methods))
    seeds = counted(len(group.seeds) for groups in games.values() for group in groups)
    text = (
        f"{seeds}; difference of mean returns of the evaluations of the {width:,.6g} steps before; "
        "framed: no chance by Welch's test, where 5 % of all frames are expected to be false "
        f"(Benjamini and Hochberg, over {len(table)} cells)"
    )
    cells = 0
    for rows in families.values():
        cells += rows["gamename"].nunique() * rows["env_steps"].nunique() * len(methods)
    if len(table) < cells:
        text += "; grey: not run"
    style.describe(figure, given.title, f"{text}.")
    style.save(figure, given.out, table)
