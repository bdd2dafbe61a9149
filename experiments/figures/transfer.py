"""Agents that were trained on proxies, tested on the real task: all returns, and means.

Of the supervised baseline of synthetic environments also the model's loss.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.figures.protocol_csv import (
    counts_text,
    numbers,
    ordered,
    read_protocol,
    split_common,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv, require
from lightning_rl.lab.figures.runs import Run, find_runs, split_label
from lightning_rl.lab.scalars import attempt, read_scalar
from lightning_rl.lab.tables import Rows, counted, interval, markdown

COLUMNS = (
    "gamename",
    "trained_on",
    "proxy",
    "agent",
    "protocol",
    "number",
    "return_mean",
    "train_steps",
    "episodes",
    "test_returns",
)
FIRST = {"real": 0, "SE, varied": 1, "SE": 2, "MBRL": 3}
LOSSES = {
    "state": "next observation, squared error",
    "reward": "reward, squared error",
    "done": "end, log loss",
}
_CLAIMED = {"model/state_loss": "state", "model/reward_loss": "reward"}
LABEL_WIDTH = 48  # letters in a line of the legend


def read_transfer(sources: Sequence[str]) -> pd.DataFrame:
    """The rows of the sources with their ``group``."""
    return with_groups(read_protocol(sources, COLUMNS, "transfer"))


def with_groups(table: pd.DataFrame) -> pd.DataFrame:
    """Adds ``group``: what the agents trained on, and how, where that differs."""
    if table.groupby("agent")["protocol"].nunique().max() == 1:
        return table.assign(group=table["trained_on"])
    _, own = split_common(table)
    named = {protocol: f" (agents: {text})" if text else "" for protocol, text in own.items()}
    return table.assign(group=table["trained_on"] + table["protocol"].map(named))


def all_returns(table: pd.DataFrame) -> list[float]:
    """Every test return of a group."""
    return [value for cell in table["test_returns"] for value in numbers(cell)]


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Of each agent and group: the share of its test episodes at or above each return.

    No density is drawn: returns pile up at the ends of their range, where a kernel's width would
    decide the heights.
    """
    grid = np.unique(all_returns(table))
    parts = []
    for (agent, group), rows in table.groupby(["agent", "group"], sort=False):
        own = np.array(all_returns(rows))
        value = (own >= grid[:, None]).mean(axis=1)
        part = pd.DataFrame({"x": grid, "value": value})
        parts.append(part.assign(agent=agent, group=group, quantity="share"))
    return pd.concat(parts, ignore_index=True)


def mean_return(agents: pd.DataFrame) -> tuple[float, float, float]:
    """(mean, low, high) over proxies, or over agents where there is one proxy.

    Agents on one proxy are not independent.
    """
    values = agents.groupby("proxy")["return_mean"].mean().to_numpy()
    if len(values) == 1:
        values = agents["return_mean"].to_numpy(float)
    mean, low, high = map(float, mean_interval(values))
    return mean, low, high


def means(table: pd.DataFrame) -> pd.DataFrame:
    """agent, group, mean, low, high of the returns."""
    groups = table.groupby(["agent", "group"], sort=False)
    rows = [(*names, *mean_return(agents)) for names, agents in groups]
    return pd.DataFrame(rows, columns=["agent", "group", "mean", "low", "high"])


def draw_shares(axes: Axes, table: pd.DataFrame, labels: Mapping[str, str]) -> None:
    """The steps of each group of one agent; labels: of the groups, in their order."""
    for index, (group, label) in enumerate(labels.items()):
        line = table[table["group"] == group]
        if len(line):
            colour = style.colour(index)
            axes.step(
                line["x"],
                line["value"],
                color=colour,
                label=label,
                linewidth=1.8,
                **style.cue(colour, line["value"]),
            )
    axes.set(
        xlabel="return x of a real test episode",
        ylabel="share of episodes at or above x",
        ylim=(-0.03, 1.03),
    )


def draw_means(axes: Axes, table: pd.DataFrame, groups: Sequence[str]) -> None:
    """A dot with its interval for each group, beside the name of the agent."""
    agents = list(table["agent"].unique())
    for row in table.itertuples():
        index = groups.index(row.group)
        place = agents.index(row.agent) + 0.7 * ((index + 0.5) / len(groups) - 0.5)
        style.interval_dot(axes, row, place, style.colour(index))
    axes.set(
        yticks=range(len(agents)),
        yticklabels=agents,
        xlabel="mean return, 95 % interval",
        ylim=(len(agents) - 0.5, -0.5),
    )


def summary_rows(table: pd.DataFrame) -> Rows:
    """Header, and a row per agent and group with its ``mean_return``."""
    rows: Rows = [
        ("agent", "trained on", "proxies", "agents", "mean return", "median", "training steps")
    ]
    for (agent, group), agents in table.groupby(["agent", "group"], sort=False):
        count = "-" if str(group).startswith("real") else str(agents["proxy"].nunique())
        score = interval(*mean_return(agents))
        median = f"{agents['return_mean'].median():.1f}"
        steps = f"{agents['train_steps'].mean():,.0f} ± {agents['train_steps'].std():,.0f}"
        rows.append((str(agent), str(group), count, str(len(agents)), score, median, steps))
    return rows


def group_labels(table: pd.DataFrame) -> dict[str, str]:
    """What a legend says of each group: of how many agents and proxies it is."""
    groups = ordered(table["group"], FIRST)
    return {group: f"{group}: {counts_text(table[table['group'] == group])}" for group in groups}


def draw_agents(panels: Sequence[Axes], table: pd.DataFrame) -> pd.DataFrame:
    """A panel of shares for each agent, and one of all means; the rows of the CSV."""
    labels, steps, points = group_labels(table), shares(table), means(table)
    wrapped = {group: style.even_lines(label, LABEL_WIDTH) for group, label in labels.items()}
    for axes, (agent, rows) in zip(panels[:-1], table.groupby("agent", sort=False), strict=True):
        draw_shares(axes, steps[steps["agent"] == agent], wrapped)
        if axes is not panels[0]:
            axes.sharex(panels[0])
        axes.set_title(f"{agent}, {_range_text(rows['train_steps'])} training steps")
    draw_means(panels[-1], points, list(labels))
    rows = [steps, points.melt(["agent", "group"], var_name="quantity")]
    return pd.concat(rows, ignore_index=True)


def _range_text(values: pd.Series) -> str:
    low, high = values.min(), values.max()
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv, or the table of ``--markdown``."""
    table = read_transfer(given.sources)
    if given.markdown:
        say(*markdown(summary_rows(table)).split("\n"))
        return
    agents, game = table["agent"].nunique(), table["gamename"].iloc[0]
    figure, panels = style.panels(agents + 1, legend=2)
    rows = draw_agents(panels, table)
    style.shared_legend(figure, panels, title="trained on")
    tests = min(len(numbers(cell)) for cell in table["test_returns"])
    style.describe(
        figure,
        given.title or f"Agents trained on proxies of {game}, tested on the real task",
        f"{tests} test episodes of each agent. Interval: over proxies, over agents where there is "
        "one.",
    )
    style.save(figure, given.out, rows.assign(gamename=game))


def read_losses(sources: Sequence[Path]) -> pd.DataFrame:
    """run, loss, epoch (passes over the data, from 1), value: held-out losses of MBRL."""
    parts = [_losses_of_csv(path) for path in sources if not path.is_dir()]
    for path in filter(Path.is_dir, sources):
        for run in itertools.chain(*attempt(path, find_runs, [path])):
            for name in LOSSES:
                parts += attempt(run.path, _read_loss, run, name)
    if not parts:
        raise UserError(
            "no loss to draw: name run directories of MBRL beside the CSV of lightning-rl proxies "
            "transfer"
        )
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
    first = table.groupby("seed")["env_steps"].transform("min")  # a claim's curve has it
    table = table.rename(columns=_CLAIMED).assign(
        run="seed " + table["seed"].astype(str), epoch=(table["env_steps"] / first).round()
    )
    return table.melt(["run", "epoch"], list(_CLAIMED.values()), "loss", "value").dropna()


def _read_loss(run: Run, name: str) -> pd.DataFrame:
    value = read_scalar(run.path, f"model/{name}_loss").value
    table = pd.DataFrame({"epoch": range(1, len(value) + 1), "value": value})
    return table.assign(run=f"{run.key('exp_name')}, seed {run.key('seed')}", loss=name)


def draw_losses(axes: Axes, table: pd.DataFrame) -> None:
    """Thin lines of the runs and their mean."""
    drawn = {}
    for index, (name, label) in enumerate(LOSSES.items()):
        losses = table[table["loss"] == name]
        curves = losses.pivot_table(index="epoch", columns="run", values="value")
        if curves.empty:
            continue
        colour, mean = style.colour(index), curves.mean(axis=1, skipna=False)
        axes.plot(curves.index, curves, color=colour, alpha=0.3, linewidth=0.8)
        (drawn[label],) = axes.plot(curves.index, mean, color=colour, linewidth=2.0)
    axes.set(
        xlabel="passes over the data",
        ylabel="loss on held-out transitions",
        yscale="log",
        title="the model",
    )
    style.plain_ticks(axes.yaxis)
    # Its own legend: that of all panels is of the agents.
    axes.legend(drawn.values(), drawn.keys(), loc="best")


def draw_supervised(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    losing = [source for source in given.sources if _has_losses(split_label(source)[0])]
    tables = [source for source in given.sources if source not in losing]
    losses = read_losses(list(map(Path, losing)))
    if not tables:
        raise UserError(
            "no agents to draw: name a CSV of lightning-rl proxies transfer beside the run "
            "directories"
        )
    table = read_transfer(tables)
    agents, game = table["agent"].nunique(), table["gamename"].iloc[0]
    figure, panels = style.panels(agents + 2, legend=2)
    shown = draw_agents(panels[:-1], table)
    draw_losses(panels[-1], losses)
    style.shared_legend(figure, panels, title="trained on")
    style.describe(
        figure,
        given.title or f"A model of {game} learned from transitions, as a proxy",
        "Interval of a mean return: over proxies, over agents where there is one. "
        f"Loss: {counted([losses['run'].nunique()])}, thin: single runs, thick: their mean.",
    )
    curves = losses.rename(columns={"loss": "group", "epoch": "x"})
    rows = pd.concat([shown, curves.assign(quantity="loss", agent="")], ignore_index=True)
    style.save(figure, given.out, rows.assign(gamename=game))
