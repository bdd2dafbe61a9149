"""The supervised baseline of synthetic environments: the model's loss, and what agents that were trained on it reach."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.protocol_csv import ordered
from lightning_rl.lab.figures.runs import Run, find_runs
from lightning_rl.lab.figures.transfer import FIRST, bars, densities, draw_bars, draw_density, groups_text, read_transfer
from lightning_rl.lab.scalars import attempt, read_scalar

LOSSES = {"state": "next observation, squared error", "reward": "reward, squared error", "done": "end, log loss"}


def read_losses(folders: Sequence[Path]) -> pd.DataFrame:
    """run, loss, epoch (passes over the data, from 1), value of the held-out losses of MBRL runs."""
    parts = []
    for run in find_runs(folders):
        for name in LOSSES:
            parts += attempt(run.path, functools.partial(read_loss, run, name))
    if not parts:
        raise UserError("no loss to draw: name run directories of MBRL beside the CSV of lightning-rl proxies transfer")
    return pd.concat(parts, ignore_index=True)


def read_loss(run: Run, name: str) -> pd.DataFrame:
    """epoch, value, run, loss of one loss of one run."""
    value = read_scalar(run.path, f"model/{name}_loss").value
    table = pd.DataFrame({"epoch": range(1, len(value) + 1), "value": value})
    return table.assign(run=f"{run.key('exp_name')}, seed {run.key('seed')}", loss=name)


def draw_losses(axes: Axes, table: pd.DataFrame) -> None:
    """Thin lines of the runs and their mean."""
    for index, (name, label) in enumerate(LOSSES.items()):
        curves = table[table["loss"] == name].pivot_table(index="epoch", columns="run", values="value")
        axes.plot(curves.index, curves, color=style.colour(index), alpha=0.3, linewidth=0.8)
        axes.plot(curves.index, curves.mean(axis=1), color=style.colour(index), linewidth=2.0, label=label)
    axes.set(xlabel="passes over the data", ylabel="loss on held-out transitions", yscale="log", title="the model")
    style.plain_ticks(axes.yaxis)
    axes.legend(loc="best")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``supervised-model``."""
    style.add_sources(parser)


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    tables = [source for source in arguments.sources if not Path(source).is_dir()]
    losses = read_losses([Path(source) for source in arguments.sources if source not in tables])
    if not tables:
        raise UserError("no agents to draw: name a CSV of lightning-rl proxies transfer beside the run directories")
    table = read_transfer(tables)
    agents, groups = list(dict.fromkeys(table["agent"])), ordered(table["group"], FIRST)
    shapes, steps = densities(table), bars(table)
    figure, grid = plt.subplots(len(agents), 3, figsize=(15, 4.4 * len(agents)), squeeze=False)
    draw_losses(grid[0, 0], losses)
    for extra in grid[1:, 0]:
        extra.remove()
    for (_, density, bar), agent in zip(grid, agents, strict=True):
        draw_density(density, shapes[shapes["agent"] == agent], groups)
        draw_bars(bar, steps[steps["agent"] == agent], groups)
        density.set_title(f"{agent}: test returns")
        bar.set_title(f"{agent}: training")
    grid[0, 1].legend(loc="best", title="trained on")
    game = table["gamename"].iloc[0]
    style.heading(figure, arguments.title or f"A model of {game} learned from transitions, as a proxy")
    text = f"Loss: {style.seeds_text([losses['run'].nunique()])}, thin: single runs, thick: their mean. "
    text += f"{groups_text(table, groups)}. "
    style.caption(figure, text + "Bars: mean and standard deviation over agents, with the mean return below.")
    curves = losses.rename(columns={"loss": "group", "epoch": "x"}).assign(quantity="loss", agent="")
    style.save(figure, arguments.out, pd.concat([shapes, steps, curves], ignore_index=True).assign(gamename=game))
