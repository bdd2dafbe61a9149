"""What fresh agents that were trained on proxies reach on the real task: densities of test returns, bars of training steps."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from lightning_rl.functional.bootstrap import bootstrap_interval, mean
from lightning_rl.functional.statistics import kernel_density
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.evaluations import counts_text, numbers, ordered, read_evaluations
from lightning_rl.lab.figures.scores import interval, markdown

COLUMNS = (
    "gamename", "trained_on", "proxy", "agent", "protocol", "number", "return_mean", "train_steps", "episodes", "test_returns",
)  # fmt: skip
FIRST = {"real": 0, "SE, varied": 1, "SE": 2, "MBRL": 3}
_POINTS = 200
_NARROWEST = 0.01
"""Least bandwidth of a density, as a share of the range of all returns."""


def with_groups(table: pd.DataFrame) -> pd.DataFrame:
    """With a column ``group``: what the agents trained on, and how, where several protocols meet."""
    several = table.groupby("agent")["protocol"].nunique().max() > 1
    return table.assign(group=table["trained_on"] + (" (" + table["protocol"] + ")" if several else ""))


def all_returns(own: pd.DataFrame) -> list[float]:
    """Every test return of a group."""
    return [value for cell in own["test_returns"] for value in numbers(cell)]


def densities(table: pd.DataFrame) -> pd.DataFrame:
    """agent, group, quantity ``density``, x (return), value: over a grid that all groups share."""
    everything = np.array(all_returns(table))
    margin = 0.05 * (np.ptp(everything) or 1.0)
    grid = np.linspace(everything.min() - margin, everything.max() + margin, _POINTS)
    parts = []
    for (agent, group), own in table.groupby(["agent", "group"], sort=False):
        value = kernel_density(all_returns(own), grid, _NARROWEST * float(grid[-1] - grid[0]))
        parts.append(pd.DataFrame({"agent": agent, "group": group, "quantity": "density", "x": grid, "value": value}))
    return pd.concat(parts, ignore_index=True)


def bars(table: pd.DataFrame) -> pd.DataFrame:
    """agent, group, quantity, value: mean return, and mean and standard deviation of training steps and episodes."""
    rows = []
    for (agent, group), own in table.groupby(["agent", "group"], sort=False):
        values = {"return mean": float(np.mean(own["return_mean"])), "agents": float(len(own))}
        for name in ("train_steps", "episodes"):
            values |= {f"{name} mean": float(np.mean(own[name])), f"{name} sd": float(np.std(own[name]))}
        rows += [{"agent": agent, "group": group, "quantity": key, "value": value} for key, value in values.items()]
    return pd.DataFrame(rows)


def draw_density(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """One curve for each group of one agent."""
    for index, group in enumerate(groups):
        own = table[table["group"] == group]
        if len(own):
            axes.plot(own["x"], own["value"], color=style.colour(index), label=group, linewidth=1.8)
            axes.fill_between(own["x"], 0, own["value"], color=style.colour(index), alpha=0.12, linewidth=0)
    axes.set(xlabel="return of a real test episode", ylabel="density", ylim=(0, None))


def draw_bars(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """Training steps (left axis, full) and episodes (right axis, hatched) of each group of one agent; below, the mean return."""
    right = axes.twinx()
    labels = []
    for index, group in enumerate(groups):
        value = table[table["group"] == group].set_index("quantity")["value"]
        if value.empty:
            labels.append("")
            continue
        for side, name, place, hatch in ((axes, "train_steps", -0.2, None), (right, "episodes", 0.2, "///")):
            low = min(value[f"{name} sd"], value[f"{name} mean"])  # no whisker below nothing
            error = [[low], [value[f"{name} sd"]]]
            side.bar(index + place, value[f"{name} mean"], 0.38, yerr=error, capsize=3, hatch=hatch, color=style.colour(index),
                     alpha=0.85 if hatch is None else 0.35)  # fmt: skip
        labels.append(f"return\n{value['return mean']:.1f}")
    axes.set(xticks=range(len(groups)), xticklabels=labels, ylabel="training steps", ylim=(0, None))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    right.set(ylabel="training episodes (hatched)", ylim=(0, None))
    right.grid(visible=False)
    right.spines["right"].set_visible(True)


def summary_rows(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Header and one row per agent and group; the interval is over proxies, or over agents where there is one proxy."""
    rows: list[tuple[str, ...]] = [("agent", "trained on", "proxies", "agents", "mean return", "median", "training steps")]
    for (agent, group), own in table.groupby(["agent", "group"], sort=False):
        models = own.groupby("proxy")["return_mean"].mean().to_numpy()
        each = models if len(models) > 1 else own["return_mean"].to_numpy(float)
        low, high = bootstrap_interval([each], mean)
        steps = f"{own['train_steps'].mean():,.0f} ± {own['train_steps'].std(ddof=0):,.0f}"
        value = interval(float(own["return_mean"].mean()), float(low), float(high))
        own_proxies = "-" if str(group).startswith("real") else str(len(models))
        rows.append((str(agent), str(group), own_proxies, str(len(own)), value, f"{own['return_mean'].median():.1f}", steps))
    return rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``proxy-transfer``."""
    style.add_sources(parser)
    parser.add_argument("--markdown", action="store_true", help="print a table for a README instead of writing OUT")


def draw(arguments: argparse.Namespace) -> None:
    """The figure that the arguments ask for."""
    table = with_groups(read_evaluations(arguments.sources, COLUMNS, "transfer"))
    if arguments.markdown:
        print(markdown(summary_rows(table)))
        return
    agents, groups = list(dict.fromkeys(table["agent"])), ordered(table["group"], FIRST)
    shapes, steps = densities(table), bars(table)
    figure, grid = plt.subplots(2, len(agents), figsize=(max(4.6 * len(agents), 6.4), 7.4), squeeze=False)
    for column, agent in enumerate(agents):
        draw_density(grid[0, column], shapes[shapes["agent"] == agent], groups)
        grid[0, column].set_title(agent)
        draw_bars(grid[1, column], steps[steps["agent"] == agent], groups)
    grid[0, 0].legend(loc="best", title="trained on")
    style.heading(figure, arguments.title or f"Agents trained on proxies of {table['gamename'].iloc[0]}, tested on the real task")
    tests = {len(numbers(cell)) for cell in table["test_returns"]}
    said = "; ".join(f"{group}: {counts_text(table[table['group'] == group])}" for group in groups)
    text = f"{said}; {min(tests)} test episodes of each agent. "
    style.caption(figure, text + "Below: mean and standard deviation over agents, and the mean return under each pair of bars.")
    style.save(figure, arguments.out, pd.concat([shapes, steps], ignore_index=True).assign(gamename=table["gamename"].iloc[0]))
