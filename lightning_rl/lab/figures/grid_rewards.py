"""What reward networks pay in a grid world, a triangle for each action of each cell, and how often agents are where."""

from __future__ import annotations

import argparse

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.protocol_csv import ordered, read_protocol
from lightning_rl.lab.figures.reward_curves import FIRST

COLUMNS = ("gamename", "trained_on", "proxy", "agent", "agents", "quantity", "row", "column", "cell", "action", "value")
_CORNERS = {"right": ((1, 0), (1, 1)), "left": ((0, 0), (0, 1)), "down": ((0, 1), (1, 1)), "up": ((0, 0), (1, 0))}
"""The side of a cell, (column, row) of its two corners, that is the base of an action's triangle; its tip is the middle."""
_MOVES = {"right": (0, 1), "left": (0, -1), "down": (1, 0), "up": (-1, 0)}
_NAMES = {"O": "hole", "#": "wall", "G": "goal", "S": "start"}


def mean_values(table: pd.DataFrame) -> pd.DataFrame:
    """trained_on, quantity, row, column, cell, action, value: means over proxies; visits as shares of all of the kind."""
    keys = ["trained_on", "quantity", "row", "column", "cell", "action"]
    means = table.assign(action=table["action"].fillna("")).groupby(keys, sort=False, as_index=False)["value"].mean()
    visits = means["quantity"] == "visits"
    total = means[visits].groupby("trained_on")["value"].transform("sum")
    means.loc[visits, "value"] /= total.clip(lower=1e-12)
    return means


def steps_into_holes(cells: pd.DataFrame) -> pd.Series:
    """Which actions lead to a hole: their real cost would hide all other differences."""
    letters = cells.drop_duplicates(["row", "column"]).set_index(["row", "column"])["cell"].to_dict()

    def into_hole(step: pd.Series) -> bool:
        down, right = _MOVES[step["action"]]
        return bool(letters.get((step["row"] + down, step["column"] + right)) == "O")

    return cells.apply(into_hole, axis=1)


def draw_board(axes: Axes, cells: pd.DataFrame, title: str) -> None:
    """An empty board with its letters."""
    height, width = int(cells["row"].max()) + 1, int(cells["column"].max()) + 1
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[], title=title)
    axes.grid(visible=False)
    for _, place in cells.drop_duplicates(["row", "column"]).iterrows():
        if place["cell"] in _NAMES:
            dark = place["cell"] in "O#"
            if dark:
                axes.add_patch(Rectangle((place["column"], place["row"]), 1, 1, color="#555555", zorder=3))
            axes.annotate(place["cell"], (place["column"] + 0.5, place["row"] + 0.5), ha="center", va="center", zorder=4,
                          fontsize=9, fontweight="bold", color="white" if dark else "black",
                          path_effects=[] if dark else [withStroke(linewidth=3, foreground="white")])  # fmt: skip


def draw_rewards(axes: Axes, cells: pd.DataFrame, title: str) -> PolyCollection:
    """A triangle for each action of each cell, coloured from the lowest to the highest reward but for steps into holes."""
    draw_board(axes, cells, title)
    paid = cells[~cells["cell"].isin(["O", "#", "G"])]  # those that actions are taken in
    usual = paid[~steps_into_holes(cells).loc[paid.index]]["value"]
    shapes = []
    for row, column, action in zip(paid["row"], paid["column"], paid["action"], strict=True):
        side = [(column + dx, row + dy) for dx, dy in _CORNERS[action]]
        shapes.append([*side, (column + 0.5, row + 0.5)])
    scale = Normalize(usual.min(), usual.max())
    triangles = PolyCollection(shapes, cmap="viridis", norm=scale, edgecolors="white", linewidths=0.4)
    triangles.set_array(paid["value"].to_numpy(float))
    axes.add_collection(triangles)
    return triangles


def draw_visits(axes: Axes, cells: pd.DataFrame, title: str) -> PolyCollection:
    """A square for each cell, the darker the more visits."""
    draw_board(axes, cells, title)
    squares = [[(c, r), (c + 1, r), (c + 1, r + 1), (c, r + 1)] for r, c in zip(cells["row"], cells["column"], strict=True)]
    shades = PolyCollection(squares, cmap="Blues", norm=Normalize(0, cells["value"].max()), edgecolors="#DDDDDD", linewidths=0.4)
    shades.set_array(cells["value"].to_numpy(float))
    axes.add_collection(shades)
    return shades


def draw(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    table = read_protocol(given.sources, COLUMNS, "grid-rewards")
    kinds, first = ordered(table["trained_on"], FIRST), table.iloc[0]
    means = mean_values(table)
    height, width = int(table["row"].max()) + 1, int(table["column"].max()) + 1
    each = min(0.62 * width + 1.6, 9.0)
    tall = each * height / width * 0.8 + 0.5
    figure, grid = plt.subplots(len(kinds), 2, figsize=(2 * each, tall * len(kinds) + 0.9), squeeze=False)
    for (left, right), kind in zip(grid, kinds, strict=True):
        cells = means[means["trained_on"] == kind]
        paid = draw_rewards(left, cells[cells["quantity"] == "reward"], f"{kind}: reward")
        figure.colorbar(paid, ax=left, label="reward of the action", extend="min", shrink=0.75)
        visits = draw_visits(right, cells[cells["quantity"] == "visits"], f"{kind}: where {first['agent']} agents are")
        figure.colorbar(visits, ax=right, label="share of visits", shrink=0.75)
    proxies = "; ".join(f"{kind}: {table[table['trained_on'] == kind]['proxy'].nunique()}" for kind in kinds if kind != "real")
    style.describe(
        figure, given.title or f"Learned rewards on {first['gamename']}",
        f"Mean over reward networks ({proxies}). A triangle is the action towards its side; steps into a hole (O) may lie below "
        f"the colours' range. Visits: one greedy episode of each of {int(first['agents'])} agents per network.",
    )  # fmt: skip
    style.save(figure, given.out, means.assign(gamename=first["gamename"]))
