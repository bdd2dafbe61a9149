"""Reward networks: learning curves of agents with learned rewards, a panel for each agent.

In a grid world also what they pay, a triangle for each action of each cell, and how often agents
are where.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from experiments.figures.protocol_csv import numbers, ordered, read_protocol, split_common
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.envs.grids import MOVES
from lightning_rl.envs.spec import solved_return
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import require_cells
from lightning_rl.lab.figures.curves import BAND_RUNS, TOGETHER
from lightning_rl.lab.scalars import Floats
from lightning_rl.lab.tables import Rows, markdown

CURVE_COLUMNS = (
    "gamename",
    "trained_on",
    "proxy",
    "agent",
    "protocol",
    "number",
    "every",
    "returns",
)
TITLE_WIDTH = 60  # letters above a panel
FIRST = {
    "exclusive_potential": 0,
    "additive_potential": 1,
    "exclusive": 2,
    "additive": 3,
    "real": 9,
}
_LINES = {"real": "--", "real, curious agents": ":"}
GRID_COLUMNS = (
    "gamename",
    "trained_on",
    "proxy",
    "agent",
    "agents",
    "quantity",
    "row",
    "column",
    "cell",
    "action",
    "value",
)
_BAND = (
    f"band (from {BAND_RUNS}): 95 % interval over proxies, over agents (or groups of agents, "
    "one a seed) where there is one. "
)
_DOTS = (
    "dots: the last value of each proxy, or of each agent (or group of agents, one a seed) "
    "where there is one. "
)
_CORNERS = {
    "right": ((1, 0), (1, 1)),
    "left": ((0, 0), (0, 1)),
    "down": ((0, 1), (1, 1)),
    "up": ((0, 0), (1, 0)),
}
"""The side of a cell, (column, row) of its two corners, that is the base of an action's
triangle; its tip is the middle.
"""


def curve_table(agents: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """(steps ``[K]``, curves ``[n, K]`` of the agents, curves of what intervals are drawn over).

    These are means of the agents of each proxy where there are several proxies: agents with one
    reward are not independent.
    """
    if agents["every"].nunique() > 1:
        every = " and ".join(map(str, agents["every"].unique()))
        raise UserError(f"curves with values every {every} steps do not share an axis")
    values = [numbers(cell) for cell in agents["returns"]]
    if len({len(row) for row in values}) > 1:
        raise UserError("curves of different lengths do not share an axis; draw them apart")
    curves = np.array(values)
    steps = np.arange(1, curves.shape[1] + 1, dtype=np.float64) * int(agents["every"].iloc[0])
    units = pd.DataFrame(curves).groupby(agents["proxy"].to_numpy(), sort=False).mean().to_numpy()
    return steps, curves, units if len(units) > 1 else curves


def in_words(kind: str) -> str:
    """The name of a kind of rewards as it stands in a figure."""
    return kind.replace("_", " ")


def num_agents(rows: pd.DataFrame) -> int:
    """How many agents the rows are of; those of a file with such a column are means of several."""
    return int(rows["agents"].fillna(1).sum()) if "agents" in rows else len(rows)


def draw_curve(
    axes: Axes, agents: pd.DataFrame, colour: str, label: str, banded: bool = True
) -> pd.DataFrame:
    """The mean over proxies, or agents of the only one, with its interval; the rows of the CSV."""
    steps, _, units = curve_table(agents)
    mean, low, high = mean_interval(units)
    line = _LINES.get(str(agents["trained_on"].iloc[0]), "-")
    style.banded_line(
        axes,
        steps,
        mean,
        low,
        high,
        colour,
        banded=banded and len(units) >= BAND_RUNS,
        linewidth=1.8,
        linestyle=line,
        label=label,
    )
    return pd.DataFrame({"env_steps": steps, "mean": mean, "low": low, "high": high})


def draw_ends(axes: Axes, agents: pd.DataFrame, index: int) -> None:
    """The last value of each line that the mean is of, as a dot in a column beside their end."""
    steps, _, units = curve_table(agents)
    place = np.full(len(units), steps[-1] * (1.02 + 0.015 * index))
    axes.plot(place, units[:, -1], ".", color=style.colour(index), markersize=5, alpha=0.7)


def first_step(steps: Floats, curve: Floats, limit: float) -> str:
    """Where a curve first reaches the limit, or an empty string."""
    reached = np.flatnonzero(curve >= limit)
    return f"{steps[reached[0]]:,.0f}" if reached.size else ""


def summary_rows(table: pd.DataFrame, limit: float | None) -> Rows:
    """Per agent and reward: the step at which the mean reaches the limit, its best and its last."""
    at = f"steps until {limit:g}" if limit is not None else "steps until solved"
    rows: Rows = [("agent", "reward", "proxies", "agents", at, "best", "at the end")]
    for (agent, protocol), part in table.groupby(["agent", "protocol"], sort=False):
        for reward in ordered(part["trained_on"], FIRST):
            agents = part[part["trained_on"] == reward]
            steps, curves, _ = curve_table(agents)
            mean = curves.mean(axis=0)
            count = "-" if reward.startswith("real") else str(agents["proxy"].nunique())
            when = "" if limit is None else first_step(steps, mean, limit)
            numbers_of = (str(num_agents(agents)), when, f"{mean.max():.1f}", f"{mean[-1]:.1f}")
            rows.append((f"{agent}, {protocol}", reward, count, *numbers_of))
    return rows


def lines_text(table: pd.DataFrame, rewards: Sequence[str]) -> str:
    """How many agents and proxies each line is of."""
    parts = []
    for reward in rewards:
        rows = table[table["trained_on"] == reward]
        panels = [panel for _, panel in rows.groupby(["agent", "protocol"])]
        agents = " or ".join(map(str, sorted({num_agents(panel) for panel in panels})))
        networks = " or ".join(map(str, sorted({panel["proxy"].nunique() for panel in panels})))
        proxies = "" if reward.startswith("real") else f" with {networks} reward networks"
        parts.append(f"{in_words(reward)}: {agents} agents{proxies}")
    return "; ".join(parts)


def draw_curves(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv, or the table of ``--markdown``."""
    table = read_protocol(given.sources, CURVE_COLUMNS, "reward-curves")
    game = str(table["gamename"].iloc[0])
    limit = solved_return(game) if given.threshold is None else given.threshold
    if given.markdown:
        say(*markdown(summary_rows(table, limit)).split("\n"))
        return
    rewards = ordered(table["trained_on"], FIRST)
    kinds = []  # the protocols of an agent side by side
    for _, rows in table.groupby("agent", sort=False):
        kinds += list(rows.groupby(["agent", "protocol"], sort=False))
    same, own = split_common(table)
    figure, panels = style.panels(len(kinds), (7.0, 4.6), legend=2, sharey="row")
    parts = []
    for axes, ((agent, protocol), part) in zip(panels, kinds, strict=True):
        for index, reward in enumerate(rewards):
            agents = part[part["trained_on"] == reward]
            if len(agents):
                lines = draw_curve(
                    axes, agents, style.colour(index), in_words(reward), len(rewards) <= TOGETHER
                )
                parts.append(lines.assign(agent=agent, protocol=protocol, reward=reward))
                if len(rewards) > TOGETHER:
                    draw_ends(axes, agents, index)
        if limit is not None:
            style.solved_line(axes, limit)
        axes.set(xlabel="training steps", ylabel="return of a greedy real episode")
        title = f"{agent} ({own[protocol]})" if own[protocol] else agent
        axes.set_title(style.even_lines(title, TITLE_WIDTH), fontsize=10)
        style.big_numbers(axes.xaxis)
        if given.low is not None:
            axes.set_ylim(bottom=given.low)
    style.shared_legend(figure, panels, first=list(map(in_words, rewards)), title="reward")
    spread = _BAND if len(rewards) <= TOGETHER else _DOTS
    text = f"Mean over agents; {spread}{lines_text(table, rewards)}"
    if same:
        text += f"; protocol: {same}"
    style.describe(figure, given.title or f"Agents with learned rewards on {game}", f"{text}.")
    style.save(figure, given.out, pd.concat(parts, ignore_index=True).assign(gamename=game))


def read_cells(sources: Sequence[str]) -> pd.DataFrame:
    """Rewards and visits of all sources; UserError where one is missing or an action is unknown."""
    table = read_protocol(sources, GRID_COLUMNS, "grid-rewards")
    for quantity in ("reward", "visits"):
        if not (table["quantity"] == quantity).any():
            raise UserError(
                f"the sources have no row of quantity {quantity}; make one with lightning-rl "
                "proxies grid-rewards"
            )
    require_cells(
        table[table["quantity"] == "reward"],
        "action",
        MOVES.__contains__,
        f"one of: {', '.join(MOVES)}",
    )
    return table


def mean_values(table: pd.DataFrame) -> pd.DataFrame:
    """Means over reward networks, and in ``proxies`` over how many, a row for each value of a cell.

    Visits are shares of all of the kind. A kind may be such means already, of the CSV of a figure.
    """
    keys = ["trained_on", "agent", "agents", "quantity", "row", "column", "cell", "action"]
    proxies = table["proxies"].fillna(1) if "proxies" in table else 1
    table = table.assign(action=table["action"].fillna(""), proxies=proxies)
    if (table[table.duplicated(keys, keep=False)]["proxies"] > 1).any():
        raise UserError(
            "means over reward networks cannot be joined with others of their kind; name one "
            "source of each kind"
        )
    means = table.groupby(keys, sort=False, as_index=False).agg(
        value=("value", "mean"), proxies=("proxies", "sum")
    )
    visits = means["quantity"] == "visits"
    total = means[visits].groupby("trained_on")["value"].transform("sum")
    means.loc[visits, "value"] /= total.clip(lower=1e-12)
    return means


def steps_into_holes(cells: pd.DataFrame) -> pd.Series:
    """Which actions lead to a hole: their real cost would hide all other differences."""
    letters = dict(zip(zip(cells["row"], cells["column"], strict=True), cells["cell"], strict=True))

    def into_hole(step: pd.Series) -> bool:
        down, right = MOVES[step["action"]]
        return bool(letters.get((step["row"] + down, step["column"] + right)) == "O")

    return cells.apply(into_hole, axis=1)


def draw_board(axes: Axes, cells: pd.DataFrame, title: str) -> None:
    """An empty board with its letters."""
    height, width = int(cells["row"].max()) + 1, int(cells["column"].max()) + 1
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[], title=title)
    axes.grid(visible=False)
    places = cells[cells["cell"].isin(list("O#GS"))]  # hole, wall, goal, start
    for place in places.drop_duplicates(["row", "column"]).itertuples():
        dark = place.cell in "O#"
        if dark:
            axes.add_patch(Rectangle((place.column, place.row), 1, 1, color="#555555", zorder=3))
        axes.annotate(
            place.cell,
            (place.column + 0.5, place.row + 0.5),
            ha="center",
            va="center",
            zorder=4,
            fontsize=9,
            fontweight="bold",
            color="white" if dark else "black",
            path_effects=[] if dark else [withStroke(linewidth=3, foreground="white")],
        )


def paid_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Those that actions are taken in."""
    return cells[~cells["cell"].isin(["O", "#", "G"])]


def reward_scale(cells: pd.DataFrame) -> Normalize:
    """One scale for all boards, from the lowest to the highest reward but of steps into holes."""
    paid = paid_cells(cells)
    usual = paid[~steps_into_holes(cells).loc[paid.index]]["value"]
    return Normalize(usual.min(), usual.max())


def shown_rewards(cells: pd.DataFrame, above: float | None, each: bool) -> pd.DataFrame:
    """Rewards above a limit alone; each: those of a kind scaled to 0 .. 1, the paper's Figure 10.

    Its simplified variant has a limit of -50: the steps into the cliff are left out.
    """
    paid = paid_cells(cells)
    if above is not None:
        highest = paid["value"].max()
        paid = paid[paid["value"] > above]
        if paid.empty:
            raise UserError(
                f"--above {above:g}: the highest reward is {highest:g}; use a lower limit"
            )
    if not each:
        return paid
    by_kind = paid.groupby("trained_on")["value"]
    low, high = by_kind.transform("min"), by_kind.transform("max")
    return paid.assign(value=(paid["value"] - low) / (high - low).clip(lower=1e-12))


def add_shapes(
    axes: Axes, shapes: Any, values: pd.Series, colours: str, scale: Normalize
) -> PolyCollection:
    """Shapes on a board, each in the colour of its value."""
    added = PolyCollection(shapes, cmap=colours, norm=scale, edgecolors="#DDDDDD", linewidths=0.4)
    added.set_array(values.to_numpy(float))
    axes.add_collection(added)
    return added


def draw_rewards(
    axes: Axes, cells: pd.DataFrame, paid: pd.DataFrame, scale: Normalize, title: str
) -> PolyCollection:
    """A triangle for each action of each cell that is paid."""
    draw_board(axes, cells, title)
    shapes = []
    for row, column, action in zip(paid["row"], paid["column"], paid["action"], strict=True):
        side = [(column + dx, row + dy) for dx, dy in _CORNERS[action]]
        shapes.append([*side, (column + 0.5, row + 0.5)])
    return add_shapes(axes, shapes, paid["value"], "viridis", scale)


def draw_visits(axes: Axes, cells: pd.DataFrame, most: float, title: str) -> PolyCollection:
    """A square for each cell, the darker the more visits; most: on any board."""
    draw_board(axes, cells, title)
    squares = []
    for row, column in zip(cells["row"], cells["column"], strict=True):
        below, right = row + 1, column + 1
        squares.append([(column, row), (right, row), (right, below), (column, below)])
    return add_shapes(axes, squares, cells["value"], "Blues", Normalize(0, most))


def draw_grid(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    table = read_cells(given.sources)
    first = table.iloc[0]
    kinds = ordered(table["trained_on"], FIRST)
    means = mean_values(table)
    height, width = int(table["row"].max()) + 1, int(table["column"].max()) + 1
    each = min(0.42 * width + 1.6, style.WIDEST / 2)
    if given.each:  # as in the paper: without visits
        figure, lefts = style.panels(len(kinds), (7.2, 7.2 * height / width + 0.6), columns=3)
        rights = []
    else:
        size = (2 * each, (each * height / width * 0.8 + 0.5) * len(kinds) + 0.9)
        figure, grid = plt.subplots(len(kinds), 2, figsize=size, squeeze=False)
        lefts, rights = list(grid[:, 0]), list(grid[:, 1])
    rewards = means[means["quantity"] == "reward"]
    visits = means[means["quantity"] == "visits"]
    scale = Normalize(0, 1) if given.each else reward_scale(rewards)
    most = visits["value"].max()
    paid = shown_rewards(rewards, given.above, given.each)
    for left, kind in zip(lefts, kinds, strict=True):
        title = f"{in_words(kind)}: reward"
        cells, shown = rewards[rewards["trained_on"] == kind], paid[paid["trained_on"] == kind]
        triangles = draw_rewards(left, cells, shown, scale, title)
    for right, kind in zip(rights, kinds, strict=False):
        title = f"{in_words(kind)}: where {first['agent']} agents are"
        squares = draw_visits(right, visits[visits["trained_on"] == kind], most, title)
    if given.each:
        label = "reward of the action, lowest to highest"
        where: dict[str, Any] = {"ax": lefts, "aspect": 50, "shrink": 0.5}
        if style.has_free_place(lefts):
            places = lefts[0].get_gridspec()
            assert places is not None
            last = figure.add_subplot(places[-1])
            last.set_axis_off()
            where = {"cax": last.inset_axes((0.05, 0.5, 0.9, 0.12))}
        figure.colorbar(triangles, orientation="horizontal", label=label, **where)
    else:
        label = "reward of the action"
        figure.colorbar(triangles, ax=lefts, shrink=0.5, extend="min", label=label)
        figure.colorbar(squares, ax=rights, label="share of visits", shrink=0.5)
    count = means.groupby("trained_on")["proxies"].max()
    proxies = "; ".join(f"{in_words(kind)}: {count[kind]:.0f}" for kind in kinds if kind != "real")
    text = f"Mean over reward networks ({proxies}). A triangle is the action towards its side"
    if not given.each:
        text += "; steps into a hole (O) may lie below the colours' range"
    if given.above is not None:
        text += f"; rewards of {given.above:g} and less are left out"
    text += ". "
    if rights:
        text += f"Visits: one greedy episode of each of {int(first['agents'])} agents per network."
    style.describe(figure, given.title or f"Learned rewards on {first['gamename']}", text)
    style.save(figure, given.out, means.assign(gamename=first["gamename"], proxy="mean"))
