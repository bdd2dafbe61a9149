"""What fresh agents that were trained on proxies reach on the real task: densities of test returns, bars of training steps."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.protocol_csv import counts_text, numbers, ordered, read_protocol
from lightning_rl.lab.tables import add_markdown, interval, markdown

COLUMNS = (
    "gamename", "trained_on", "proxy", "agent", "protocol", "number", "return_mean", "train_steps", "episodes", "test_returns",
)  # fmt: skip
FIRST = {"real": 0, "SE, varied": 1, "SE": 2, "MBRL": 3}
_POINTS = 200
_NARROWEST = 0.01
"""Least bandwidth of a density, as a share of the range of all returns."""


def read_transfer(sources: Sequence[str]) -> pd.DataFrame:
    """The rows of the sources with their ``group``."""
    return with_groups(read_protocol(sources, COLUMNS, "transfer"))


def with_groups(table: pd.DataFrame) -> pd.DataFrame:
    """With a column ``group``: what the agents trained on, and how, where several protocols meet."""
    several = table.groupby("agent")["protocol"].nunique().max() > 1
    return table.assign(group=table["trained_on"] + (" (" + table["protocol"] + ")" if several else ""))


def all_returns(table: pd.DataFrame) -> list[float]:
    """Every test return of a group."""
    return [value for cell in table["test_returns"] for value in numbers(cell)]


def kernel_density(values: npt.ArrayLike, at: npt.ArrayLike, least: float) -> npt.NDArray[np.float64]:
    """Gaussian kernel density of ``values [n]`` at the points ``at [K]``, with Silverman's bandwidth, but no less than ``least``.

    The least keeps a density of values that are nearly all the same from becoming a needle; ``stats.gaussian_kde`` refuses these.
    """
    data, points = np.asarray(values, dtype=np.float64), np.asarray(at, dtype=np.float64)
    spread = min(data.std(), stats.iqr(data) / 1.34 or np.inf)
    width = max(0.9 * spread * len(data) ** -0.2, least)
    return np.asarray(stats.norm.pdf(points[:, None], data, width).mean(axis=1))


def densities(table: pd.DataFrame) -> pd.DataFrame:
    """agent, group, quantity ``density``, x (return), value: over a grid that all groups share."""
    everything = np.array(all_returns(table))
    margin = 0.05 * (np.ptp(everything) or 1.0)
    grid = np.linspace(everything.min() - margin, everything.max() + margin, _POINTS)
    parts = []
    for (agent, group), rows in table.groupby(["agent", "group"], sort=False):
        value = kernel_density(all_returns(rows), grid, _NARROWEST * float(grid[-1] - grid[0]))
        parts.append(pd.DataFrame({"agent": agent, "group": group, "quantity": "density", "x": grid, "value": value}))
    return pd.concat(parts, ignore_index=True)


def bars(table: pd.DataFrame) -> pd.DataFrame:
    """agent, group, quantity, value: mean return, and mean and standard deviation of training steps and episodes."""
    groups = table.groupby(["agent", "group"], sort=False)
    values = pd.DataFrame({"return mean": groups["return_mean"].mean(), "agents": groups.size().astype(float)})
    for name in ("train_steps", "episodes"):
        values[f"{name} mean"], values[f"{name} sd"] = groups[name].mean(), groups[name].std(ddof=0)
    return values.rename_axis(columns="quantity").stack().reset_index(name="value")


def draw_density(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """One curve for each group of one agent."""
    for index, group in enumerate(groups):
        line = table[table["group"] == group]
        if len(line):
            axes.plot(line["x"], line["value"], color=style.colour(index), label=group, linewidth=1.8)
            axes.fill_between(line["x"], 0, line["value"], color=style.colour(index), alpha=0.12, linewidth=0)
    axes.set(xlabel="return of a real test episode", ylabel="density", ylim=(0, None))


def draw_bars(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """Training steps (left axis, full) and episodes (right axis, hatched) of each group of one agent; below, the mean return."""
    right = axes.twinx()
    labels = [""] * len(groups)
    for index, group in enumerate(groups):
        value = table[table["group"] == group].set_index("quantity")["value"]
        if value.empty:
            continue
        for side, name, place, hatch in ((axes, "train_steps", -0.2, None), (right, "episodes", 0.2, "///")):
            mean, sd = value[f"{name} mean"], value[f"{name} sd"]
            error = [[min(sd, mean)], [sd]]  # no whisker below nothing
            side.bar(index + place, mean, 0.38, yerr=error, capsize=3, hatch=hatch, color=style.colour(index),
                     alpha=0.85 if hatch is None else 0.35)  # fmt: skip
        labels[index] = f"return\n{value['return mean']:.1f}"
    axes.set(xticks=range(len(groups)), xticklabels=labels, ylabel="training steps", ylim=(0, None))
    style.big_numbers(axes.yaxis)
    right.set(ylabel="training episodes (hatched)", ylim=(0, None))
    right.grid(visible=False)
    right.spines["right"].set_visible(True)


def summary_rows(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Header and one row per agent and group; the interval is over proxies, or over agents where there is one proxy."""
    rows: list[tuple[str, ...]] = [("agent", "trained on", "proxies", "agents", "mean return", "median", "training steps")]
    for (agent, group), agents in table.groupby(["agent", "group"], sort=False):
        proxies = agents.groupby("proxy")["return_mean"].mean().to_numpy()
        _, low, high = mean_interval(proxies if len(proxies) > 1 else agents["return_mean"].to_numpy(float))
        score = interval(float(agents["return_mean"].mean()), float(low), float(high))
        steps = f"{agents['train_steps'].mean():,.0f} ± {agents['train_steps'].std():,.0f}"
        count = "-" if str(group).startswith("real") else str(len(proxies))
        rows.append((str(agent), str(group), count, str(len(agents)), score, f"{agents['return_mean'].median():.1f}", steps))
    return rows


def groups_text(table: pd.DataFrame, groups: Sequence[str]) -> str:
    """Of how many agents and proxies each group is."""
    return "; ".join(f"{group}: {counts_text(table[table['group'] == group])}" for group in groups)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``proxy-transfer``."""
    style.add_sources(parser)
    add_markdown(parser)


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv, or the table of ``--markdown``."""
    table = read_transfer(arguments.sources)
    if arguments.markdown:
        print(markdown(summary_rows(table)))
        return
    agents, groups = list(dict.fromkeys(table["agent"])), ordered(table["group"], FIRST)
    shapes, steps = densities(table), bars(table)
    figure, (above, below) = plt.subplots(2, len(agents), figsize=(max(4.6 * len(agents), 6.4), 7.4), squeeze=False)
    for upper, lower, agent in zip(above, below, agents, strict=True):
        draw_density(upper, shapes[shapes["agent"] == agent], groups)
        upper.set_title(agent)
        draw_bars(lower, steps[steps["agent"] == agent], groups)
    above[0].legend(loc="best", title="trained on")
    game = table["gamename"].iloc[0]
    style.heading(figure, arguments.title or f"Agents trained on proxies of {game}, tested on the real task")
    tests = min(len(numbers(cell)) for cell in table["test_returns"])
    text = f"{groups_text(table, groups)}; {tests} test episodes of each agent. "
    style.caption(figure, text + "Below: mean and standard deviation over agents, and the mean return under each pair of bars.")
    style.save(figure, arguments.out, pd.concat([shapes, steps], ignore_index=True).assign(gamename=game))
