"""What fresh agents that were trained on proxies reach on the real task: densities of test returns, bars of training steps.

Of the supervised baseline of synthetic environments also the model's loss.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv, require
from lightning_rl.lab.figures.protocol_csv import counts_text, numbers, ordered, read_protocol, told_apart
from lightning_rl.lab.figures.runs import Run, find_runs, split_label
from lightning_rl.lab.scalars import attempt, read_scalar
from lightning_rl.lab.tables import interval, markdown

COLUMNS = (
    "gamename", "trained_on", "proxy", "agent", "protocol", "number", "return_mean", "train_steps", "episodes", "test_returns",
)  # fmt: skip
FIRST = {"real": 0, "SE, varied": 1, "SE": 2, "MBRL": 3}
LOSSES = {"state": "next observation, squared error", "reward": "reward, squared error", "done": "end, log loss"}
_CLAIMED = {"model/state_loss": "state", "model/reward_loss": "reward"}
_POINTS = 200
_NARROWEST = 0.01
"""Least bandwidth of a density, as a share of the range of all returns."""


def read_transfer(sources: Sequence[str]) -> pd.DataFrame:
    """The rows of the sources with their ``group``."""
    return with_groups(read_protocol(sources, COLUMNS, "transfer"))


def with_groups(table: pd.DataFrame) -> pd.DataFrame:
    """With a column ``group``: what the agents trained on and, where protocols meet, what of their own is not the same in all."""
    if table.groupby("agent")["protocol"].nunique().max() == 1:
        return table.assign(group=table["trained_on"])
    _, own = told_apart(table["protocol"].unique())
    named = {protocol: f" (agents: {text})" if text else "" for protocol, text in own.items()}
    return table.assign(group=table["trained_on"] + table["protocol"].map(named))


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
    """agent, group, quantity ``density``, x (return), value: over a grid that all groups share.

    It goes from the lowest return to the highest; what a kernel has beyond them is folded back, as no return is there.
    """
    everything = np.array(all_returns(table))
    low, high = everything.min(), max(everything.max(), everything.min() + 1.0)
    grid = np.linspace(low, high, _POINTS)
    parts = []
    for (agent, group), rows in table.groupby(["agent", "group"], sort=False):
        own, least = all_returns(rows), _NARROWEST * (high - low)
        value = sum(kernel_density(own, at, least) for at in (grid, 2 * low - grid, 2 * high - grid))
        parts.append(pd.DataFrame({"agent": agent, "group": group, "quantity": "density", "x": grid, "value": value}))
    return pd.concat(parts, ignore_index=True)


def bars(table: pd.DataFrame) -> pd.DataFrame:
    """agent, group, quantity, value: mean return, and mean and standard deviation of training steps and episodes."""
    groups = table.groupby(["agent", "group"], sort=False)
    values = pd.DataFrame({"return mean": groups["return_mean"].mean(), "agents": groups.size().astype(float)})
    for name in ("train_steps", "episodes"):
        values[f"{name} mean"], values[f"{name} sd"] = groups[name].mean(), groups[name].std().fillna(0.0)
    return values.rename_axis(columns="quantity").stack().reset_index(name="value")


def draw_density(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """One curve for each group of one agent."""
    for index, group in enumerate(groups):
        line = table[table["group"] == group]
        if len(line):
            style.banded_line(axes, line["x"], line["value"], 0, line["value"], style.colour(index), label=group, linewidth=1.8)
    axes.set(xlabel="return of a real test episode", ylabel="density", ylim=(0, None))


def draw_bars(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """Training steps (left axis, full) and episodes (right axis, hatched) of each group of one agent; below, the mean return."""
    right, labels = axes.twinx(), [""] * len(groups)
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
    """Header and one row per agent and group; mean and interval are over proxies, or over agents where there is one proxy."""
    rows: list[tuple[str, ...]] = [("agent", "trained on", "proxies", "agents", "mean return", "median", "training steps")]
    for (agent, group), agents in table.groupby(["agent", "group"], sort=False):
        proxies = agents.groupby("proxy")["return_mean"].mean().to_numpy()
        mean, low, high = mean_interval(proxies if len(proxies) > 1 else agents["return_mean"].to_numpy(float))
        score = interval(float(mean), float(low), float(high))
        steps = f"{agents['train_steps'].mean():,.0f} ± {agents['train_steps'].std():,.0f}"
        count = "-" if str(group).startswith("real") else str(len(proxies))
        rows.append((str(agent), str(group), count, str(len(agents)), score, f"{agents['return_mean'].median():.1f}", steps))
    return rows


def groups_text(table: pd.DataFrame) -> str:
    """Of how many agents and proxies each group is."""
    groups = ordered(table["group"], FIRST)
    return "; ".join(f"{group}: {counts_text(table[table['group'] == group])}" for group in groups)


def draw_agents(above: Sequence[Axes], below: Sequence[Axes], table: pd.DataFrame) -> pd.DataFrame:
    """A panel of densities and one of bars for each agent; the rows of the CSV."""
    groups, shapes, steps = ordered(table["group"], FIRST), densities(table), bars(table)
    for upper, lower, agent in zip(above, below, table["agent"].unique(), strict=True):
        draw_density(upper, shapes[shapes["agent"] == agent], groups)
        draw_bars(lower, steps[steps["agent"] == agent], groups)
        upper.set_title(f"{agent}: test returns")
        lower.set_title(f"{agent}: training")
    above[0].legend(loc="best", title="trained on")
    return pd.concat([shapes, steps], ignore_index=True)


def draw(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv, or the table of ``--markdown``."""
    table = read_transfer(given.sources)
    if given.markdown:
        print(markdown(summary_rows(table)))
        return
    columns, game = table["agent"].nunique(), table["gamename"].iloc[0]
    figure, (above, below) = plt.subplots(2, columns, figsize=(max(4.6 * columns, 6.4), 7.4), squeeze=False)
    rows = draw_agents(above, below, table)
    tests = min(len(numbers(cell)) for cell in table["test_returns"])
    style.describe(
        figure, given.title or f"Agents trained on proxies of {game}, tested on the real task",
        f"{groups_text(table)}; {tests} test episodes of each agent. Below: mean and standard deviation over agents, and the "
        "mean return under each pair of bars.",
    )  # fmt: skip
    style.save(figure, given.out, rows.assign(gamename=game))


def read_losses(sources: Sequence[Path]) -> pd.DataFrame:
    """run, loss, epoch (passes over the data, from 1), value of the held-out losses of MBRL runs, or of CSVs that have them."""
    parts = [_losses_of_csv(path) for path in sources if not path.is_dir()]
    for path in filter(Path.is_dir, sources):
        for run in itertools.chain(*attempt(path, find_runs, [path])):
            for name in LOSSES:
                parts += attempt(run.path, _read_loss, run, name)
    if not parts:
        raise UserError("no loss to draw: name run directories of MBRL beside the CSV of lightning-rl proxies transfer")
    return pd.concat(parts, ignore_index=True)


def _has_losses(path: Path) -> bool:
    """Runs, the CSV of a figure like this one, and that of a claim about MBRL."""
    if path.is_dir():
        return True
    columns = set(read_csv(path))
    return {"quantity", "run", "x", "value"} <= columns or _CLAIMED.keys() <= columns


def _losses_of_csv(path: Path) -> pd.DataFrame:
    table = read_csv(path, ("env_steps", *_CLAIMED))
    if "quantity" in table:
        losses = table[table["quantity"] == "loss"].rename(columns={"group": "loss", "x": "epoch"})
        return losses[["run", "loss", "epoch", "value"]]
    require(table, ("seed", "env_steps"))
    epoch = (table["env_steps"] / table.groupby("seed")["env_steps"].transform("min")).round()  # a claim's curve has the first
    table = table.rename(columns=_CLAIMED).assign(run="seed " + table["seed"].astype(str), epoch=epoch)
    return table.melt(["run", "epoch"], list(_CLAIMED.values()), "loss", "value").dropna()


def _read_loss(run: Run, name: str) -> pd.DataFrame:
    value = read_scalar(run.path, f"model/{name}_loss").value
    table = pd.DataFrame({"epoch": range(1, len(value) + 1), "value": value})
    return table.assign(run=f"{run.key('exp_name')}, seed {run.key('seed')}", loss=name)


def draw_losses(axes: Axes, table: pd.DataFrame) -> None:
    """Thin lines of the runs and their mean."""
    for index, (name, label) in enumerate(LOSSES.items()):
        curves = table[table["loss"] == name].pivot_table(index="epoch", columns="run", values="value")
        if curves.empty:
            continue
        axes.plot(curves.index, curves, color=style.colour(index), alpha=0.3, linewidth=0.8)
        axes.plot(curves.index, curves.mean(axis=1, skipna=False), color=style.colour(index), linewidth=2.0, label=label)
    axes.set(xlabel="passes over the data", ylabel="loss on held-out transitions", yscale="log", title="the model")
    style.plain_ticks(axes.yaxis)
    axes.legend(loc="best")


def draw_supervised(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    losing = [source for source in given.sources if _has_losses(split_label(source)[0])]
    tables, losses = [source for source in given.sources if source not in losing], read_losses(list(map(Path, losing)))
    if not tables:
        raise UserError("no agents to draw: name a CSV of lightning-rl proxies transfer beside the run directories")
    table = read_transfer(tables)
    rows, game = table["agent"].nunique(), table["gamename"].iloc[0]
    figure, grid = plt.subplots(rows, 3, figsize=(15, 4.4 * rows), squeeze=False)
    draw_losses(grid[0, 0], losses)
    for extra in grid[1:, 0]:
        extra.remove()
    shown = draw_agents(list(grid[:, 1]), list(grid[:, 2]), table)
    style.describe(
        figure, given.title or f"A model of {game} learned from transitions, as a proxy",
        f"Loss: {style.counted([losses['run'].nunique()])}, thin: single runs, thick: their mean. {groups_text(table)}. "
        "Bars: mean and standard deviation over agents, with the mean return below.",
    )  # fmt: skip
    curves = losses.rename(columns={"loss": "group", "epoch": "x"}).assign(quantity="loss", agent="")
    style.save(figure, given.out, pd.concat([shown, curves], ignore_index=True).assign(gamename=game))
