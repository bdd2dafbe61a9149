"""The supervised baseline of synthetic environments: the model's loss, and what agents that were trained on it reach."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.types import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.evaluations import counts_text, ordered, read_evaluations
from lightning_rl.lab.figures.runs import attempt, find_runs, read_scalar
from lightning_rl.lab.figures.transfer import COLUMNS, FIRST, bars, densities, draw_bars, draw_density, with_groups

LOSSES = {"state": "next observation, squared error", "reward": "reward, squared error", "done": "end, log loss"}


def read_losses(folders: list[Path]) -> pd.DataFrame:
    """run, loss, epoch (passes over the data, from 1), value of the held-out losses of MBRL runs."""
    parts = []
    for run in find_runs(folders):
        for name in LOSSES:
            for curve in attempt(run.path, lambda run=run, name=name: read_epochs(run.path, name)):  # type: ignore[misc]
                parts.append(curve.assign(run=f"{run.key('exp_name')}, seed {run.key('seed')}", loss=name))
    if not parts:
        raise UserError("no loss to draw: name run directories of MBRL beside the CSV of lightning_rl evaluate transfer")
    return pd.concat(parts, ignore_index=True)


def read_epochs(run_dir: Path, name: str) -> pd.DataFrame:
    """epoch, value of one loss."""
    curve = read_scalar(run_dir, f"model/{name}_loss")
    return pd.DataFrame({"epoch": range(1, len(curve.value) + 1), "value": curve.value})


def draw_losses(axes: Axes, table: pd.DataFrame) -> None:
    """Thin lines of the runs and their mean."""
    for index, (name, label) in enumerate(LOSSES.items()):
        own = table[table["loss"] == name].pivot_table(index="epoch", columns="run", values="value")
        axes.plot(own.index, own, color=style.colour(index), alpha=0.3, linewidth=0.8)
        axes.plot(own.index, own.mean(axis=1), color=style.colour(index), linewidth=2.0, label=label)
    axes.set(xlabel="passes over the data", ylabel="loss on held-out transitions", yscale="log", title="the model")
    style.plain_ticks(axes.yaxis)
    axes.legend(loc="best")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``supervised-model``."""
    style.add_sources(parser)


def draw(arguments: argparse.Namespace) -> None:
    """The figure that the arguments ask for."""
    tables = [source for source in arguments.sources if not Path(source).is_dir()]
    losses = read_losses([Path(source) for source in arguments.sources if source not in tables])
    if not tables:
        raise UserError("no agents to draw: name a CSV of lightning_rl evaluate transfer beside the run directories")
    table = with_groups(read_evaluations(tables, COLUMNS, "transfer"))
    agents, groups = list(dict.fromkeys(table["agent"])), ordered(table["group"], FIRST)
    shapes, steps = densities(table), bars(table)
    figure, grid = plt.subplots(len(agents), 3, figsize=(15, 4.4 * len(agents)), squeeze=False)
    draw_losses(grid[0, 0], losses)
    for extra in grid[1:, 0]:
        extra.remove()
    for row, agent in enumerate(agents):
        draw_density(grid[row, 1], shapes[shapes["agent"] == agent], groups)
        draw_bars(grid[row, 2], steps[steps["agent"] == agent], groups)
        grid[row, 1].set_title(f"{agent}: test returns")
        grid[row, 2].set_title(f"{agent}: training")
    grid[0, 1].legend(loc="best", title="trained on")
    game = table["gamename"].iloc[0]
    style.heading(figure, arguments.title or f"A model of {game} learned from transitions, as a proxy")
    said = "; ".join(f"{group}: {counts_text(table[table['group'] == group])}" for group in groups)
    text = f"Loss: {style.seeds_text([losses['run'].nunique()])}, thin: single runs, thick: their mean. {said}. "
    style.caption(figure, text + "Bars: mean and standard deviation over agents, with the mean return below.")
    curve = losses.rename(columns={"loss": "group", "epoch": "x"}).assign(quantity="loss", agent="")
    style.save(figure, arguments.out, pd.concat([shapes, steps, curve], ignore_index=True).assign(gamename=game))
