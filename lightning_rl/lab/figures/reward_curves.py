"""Learning curves of agents with learned rewards, beside those with the task's own; a panel for each agent."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.errors import UserError
from lightning_rl.envs.spec import solved_return
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.protocol_csv import numbers, ordered, read_protocol
from lightning_rl.lab.scalars import Floats
from lightning_rl.lab.tables import markdown

COLUMNS = ("gamename", "trained_on", "proxy", "agent", "protocol", "number", "every", "returns")
FIRST = {"exclusive_potential": 0, "additive_potential": 1, "exclusive": 2, "additive": 3, "real": 9}
_LINES = {"real": "--", "real, curious agents": ":"}


def curve_table(agents: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """(steps ``[K]``, curves ``[n, K]`` of the agents, curves of what intervals are drawn over).

    These are means of the agents of each proxy where there are several proxies: agents with one reward are not independent.
    """
    if agents["every"].nunique() > 1:
        raise UserError(f"curves with values every {' and '.join(map(str, agents['every'].unique()))} steps do not share an axis")
    values = [numbers(cell) for cell in agents["returns"]]
    if len({len(row) for row in values}) > 1:
        raise UserError("curves of different lengths do not share an axis; draw them apart")
    curves = np.array(values)
    steps = np.arange(1, curves.shape[1] + 1, dtype=np.float64) * int(agents["every"].iloc[0])
    units = pd.DataFrame(curves).groupby(agents["proxy"].to_numpy(), sort=False).mean().to_numpy()
    return steps, curves, units if len(units) > 1 else curves


def draw_curve(axes: Axes, agents: pd.DataFrame, colour: str, label: str) -> pd.DataFrame:
    """The mean over agents and its interval; the rows of the CSV."""
    steps, curves, units = curve_table(agents)
    (_, low, high), mean = mean_interval(units), curves.mean(axis=0)
    line = _LINES.get(str(agents["trained_on"].iloc[0]), "-")
    style.banded_line(axes, steps, mean, low, high, colour, linewidth=1.8, linestyle=line, label=label)
    return pd.DataFrame({"env_steps": steps, "mean": mean, "low": low, "high": high})


def first_step(steps: Floats, curve: Floats, limit: float) -> str:
    """Where a curve first reaches the limit, or an empty string."""
    reached = np.flatnonzero(curve >= limit)
    return f"{steps[reached[0]]:,.0f}" if reached.size else ""


def summary_rows(table: pd.DataFrame, limit: float | None) -> list[tuple[str, ...]]:
    """Header, and per agent and reward: first step at which the mean reaches the limit, best and last of the mean."""
    at = f"steps until {limit:g}" if limit is not None else "steps until solved"
    rows: list[tuple[str, ...]] = [("agent", "reward", "proxies", "agents", at, "best", "at the end")]
    for (agent, protocol), part in table.groupby(["agent", "protocol"], sort=False):
        for reward in ordered(part["trained_on"], FIRST):
            agents = part[part["trained_on"] == reward]
            steps, curves, _ = curve_table(agents)
            mean = curves.mean(axis=0)
            count = "-" if reward.startswith("real") else str(agents["proxy"].nunique())
            when = "" if limit is None else first_step(steps, mean, limit)
            rows.append((f"{agent}, {protocol}", reward, count, str(len(agents)), when, f"{mean.max():.1f}", f"{mean[-1]:.1f}"))
    return rows


def lines_text(table: pd.DataFrame, rewards: Sequence[str]) -> str:
    """How many agents and proxies each line is of."""
    parts = []
    for reward in rewards:
        rows = table[table["trained_on"] == reward]
        agents = len(rows) // max(rows.groupby(["agent", "protocol"]).ngroups, 1)
        proxies = "" if reward.startswith("real") else f" with {rows['proxy'].nunique()} reward networks"
        parts.append(f"{reward}: {agents} agents{proxies}")
    return "; ".join(parts)


def draw(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv, or the table of ``--markdown``."""
    table = read_protocol(given.sources, COLUMNS, "reward-curves")
    game = str(table["gamename"].iloc[0])
    limit = solved_return(game) if given.threshold is None else given.threshold
    if given.markdown:
        print(markdown(summary_rows(table, limit)))
        return
    rewards = ordered(table["trained_on"], FIRST)
    kinds = list(table.groupby(["agent", "protocol"], sort=False))
    figure, panels = style.panels(len(kinds), (6.8, 4.6))
    rows = []
    for axes, ((agent, protocol), part) in zip(panels, kinds, strict=True):
        for index, reward in enumerate(rewards):
            agents = part[part["trained_on"] == reward]
            if len(agents):
                lines = draw_curve(axes, agents, style.colour(index), reward)
                rows.append(lines.assign(agent=agent, protocol=protocol, reward=reward))
        if limit is not None:
            axes.axhline(limit, color="grey", linewidth=1, linestyle="-.", label=f"solved: {limit:g}")
        axes.set(xlabel="training steps", ylabel="return of a greedy real episode", title=f"{agent} ({protocol})")
        axes.set_ylim(bottom=given.low)
        style.big_numbers(axes.xaxis)
    style.shared_legend(figure, panels, loc="outside right upper", title="reward")
    style.describe(
        figure, given.title or f"Agents with learned rewards on {game}",
        f"Mean over agents; band: 95 % interval over proxies, over agents where there is one. "
        f"{lines_text(table, rewards)}.",
    )  # fmt: skip
    style.save(figure, given.out, pd.concat(rows, ignore_index=True).assign(gamename=game))
