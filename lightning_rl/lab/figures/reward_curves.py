"""Learning curves of agents with learned rewards, beside those with the task's own; a panel for each agent."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.arguments import number
from lightning_rl.core.types import UserError
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.bootstrap import bootstrap_interval, mean
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.evaluations import numbers, ordered, read_evaluations
from lightning_rl.lab.figures.runs import Floats
from lightning_rl.lab.figures.scores import markdown

COLUMNS = ("gamename", "trained_on", "proxy", "agent", "protocol", "number", "every", "returns")
FIRST = {"exclusive_potential": 0, "additive_potential": 1, "exclusive": 2, "additive": 3, "real": 9}
_LINES = {"real": "--", "real, curious agents": ":"}


def curve_table(own: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """(steps ``[K]``, curves ``[n, K]`` of the agents, curves of what intervals are drawn over).

    These are means of the agents of each proxy where there are several proxies: agents with one reward are not independent.
    """
    if own["every"].nunique() > 1:
        raise UserError(f"curves with values every {' and '.join(map(str, own['every'].unique()))} steps do not share an axis")
    values = [numbers(cell) for cell in own["returns"]]
    if len({len(row) for row in values}) > 1:
        raise UserError("curves of different lengths do not share an axis; draw them apart")
    curves = np.array(values)
    steps = np.arange(1, curves.shape[1] + 1, dtype=np.float64) * int(own["every"].iloc[0])
    proxies = own["proxy"].to_numpy()
    units = np.array([curves[proxies == name].mean(axis=0) for name in dict.fromkeys(proxies)])
    return steps, curves, units if len(units) > 1 else curves


def draw_curve(axes: Axes, own: pd.DataFrame, colour: str, label: str) -> pd.DataFrame:
    """The mean over agents and its interval; the rows of the CSV."""
    steps, curves, units = curve_table(own)
    low, high = bootstrap_interval([units], mean)
    line = _LINES.get(str(own["trained_on"].iloc[0]), "-")
    axes.plot(steps, curves.mean(axis=0), color=colour, linewidth=1.8, linestyle=line, label=label)
    axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    return pd.DataFrame({"env_steps": steps, "mean": curves.mean(axis=0), "low": low, "high": high})


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
            own = part[part["trained_on"] == reward]
            steps, curves, _ = curve_table(own)
            middle = curves.mean(axis=0)
            count = "-" if reward.startswith("real") else str(own["proxy"].nunique())
            when = "" if limit is None else first_step(steps, middle, limit)
            rows.append((f"{agent}, {protocol}", reward, count, str(len(own)), when, f"{middle.max():.1f}", f"{middle[-1]:.1f}"))
    return rows


def lines_text(table: pd.DataFrame, rewards: Sequence[str]) -> str:
    """How many agents and proxies each line is of."""
    said = []
    for reward in rewards:
        own = table[table["trained_on"] == reward]
        agents = len(own) // max(own.groupby(["agent", "protocol"]).ngroups, 1)
        proxies = "" if reward.startswith("real") else f" with {own['proxy'].nunique()} reward networks"
        said.append(f"{reward}: {agents} agents{proxies}")
    return "; ".join(said)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``reward-curves``."""
    style.add_sources(parser)
    parser.add_argument("--threshold", type=number, metavar="RETURN", help="drawn across (default: what solves the task)")
    parser.add_argument("--low", type=number, metavar="RETURN", help="lower end of the vertical axis")
    parser.add_argument("--markdown", action="store_true", help="print a table for a README instead of writing OUT")


def draw(arguments: argparse.Namespace) -> None:
    """The figure that the arguments ask for."""
    table = read_evaluations(arguments.sources, COLUMNS, "reward-curves")
    game = str(table["gamename"].iloc[0])
    limit = env_spec(game).solved_return if arguments.threshold is None else arguments.threshold
    if arguments.markdown:
        print(markdown(summary_rows(table, limit)))
        return
    rewards = ordered(table["trained_on"], FIRST)
    kinds = list(table.groupby(["agent", "protocol"], sort=False))
    figure, panels = style.panels(len(kinds), (6.8, 4.6))
    rows = []
    for axes, ((agent, protocol), part) in zip(panels, kinds, strict=True):
        for index, reward in enumerate(rewards):
            own = part[part["trained_on"] == reward]
            if len(own):
                lines = draw_curve(axes, own, style.colour(index), reward)
                rows.append(lines.assign(agent=agent, protocol=protocol, reward=reward))
        if limit is not None:
            axes.axhline(limit, color="grey", linewidth=1, linestyle="-.", label=f"solved: {limit:g}")
        axes.set(xlabel="training steps", ylabel="return of a greedy real episode", title=f"{agent} ({protocol})")
        if arguments.low is not None:
            axes.set_ylim(bottom=arguments.low)
        style.big_numbers(axes)
    handles = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", title="reward")
    style.heading(figure, arguments.title or f"Agents with learned rewards on {game}")
    style.caption(figure, f"Mean over agents; band: 95 % bootstrap interval over proxies, over agents where there is one. "
                  f"{lines_text(table, rewards)}.")  # fmt: skip
    style.save(figure, arguments.out, pd.concat(rows, ignore_index=True).assign(gamename=game))
