"""Runs that evolve proxies: fitness over generations, and the share of runs that are solved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.arguments import count, number
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import GENERATIONS, shown
from lightning_rl.functional.intervals import share_interval
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv
from lightning_rl.lab.figures.groups import label_groups
from lightning_rl.lab.figures.runs import IDENTITY, Run, read_sources, require_one_run_per_seed
from lightning_rl.lab.figures.scores import threshold_of
from lightning_rl.lab.scalars import Floats, read_scalar

TAG = "es/fitness_mean"
NEEDED = ("gamename", "seed", "generation", "fitness_mean")


def read_generations(sources: Sequence[str], keys: Sequence[str] = ()) -> pd.DataFrame:
    """gamename, exp_name, implementation, seed, run, generation (from 1), fitness_mean and ``keys``; a row per generation.

    sources: run directories of SE and RN, folders above them, and CSVs of ``lightning-rl proxies generations``.
    """
    table = read_sources(
        sources,
        lambda path, label: _of_csv(path, label, keys),
        lambda run: _of_run(run, keys),
        f"no source has '{TAG}'; name runs of SE, or CSVs of lightning-rl proxies generations",
    )
    return table.astype({"seed": str})


def _of_csv(path: Path, label: str | None, keys: Sequence[str]) -> pd.DataFrame:
    table = read_csv(path, ("generation", "fitness_mean"))
    if missing := [name for name in (*NEEDED, *keys) if name not in table]:
        raise UserError(f"it lacks the column {', '.join(missing)}; its columns: {', '.join(map(str, table.columns))}")
    for row, generation in enumerate(table["generation"], 1):
        if not 0 <= generation < GENERATIONS or generation != int(generation):
            raise UserError(f"row {row}: generation {shown(generation)} is not a whole number from 0 to {GENERATIONS - 1:,}")
    settings = table["settings"].fillna("").astype(str) if "settings" in table else pd.Series("", table.index)
    method = pd.Series(label or path.stem, table.index)
    if label is None and "implementation" in table:
        method = table["implementation"].astype(str)
    run = f"{path}:" + table["gamename"].astype(str) + ":" + settings + ":" + table["seed"].astype(str)
    runs = table[["gamename", "seed", "fitness_mean", *keys]].assign(exp_name=settings, implementation=method, run=run)
    return runs.assign(generation=table["generation"] + 1)


def _of_run(run: Run, keys: Sequence[str]) -> pd.DataFrame:
    curve = read_scalar(run.path, TAG)
    about = {name: run.key(name) for name in (*IDENTITY, *keys)}
    plain = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in about.items()}
    generation = np.arange(1, len(curve.value) + 1)
    return pd.DataFrame({**plain, "run": str(run.path), "generation": generation, "fitness_mean": curve.value})


def limit_of(game: str, table: pd.DataFrame, asked: float | None) -> float:
    """What solves the task; UserError where nobody says."""
    returns = not (table["implementation"] == "RN").any()  # the fitness of reward networks is no return
    limit = threshold_of(game, asked) if returns else asked
    if limit is None:
        raise UserError(f"what fitness solves '{game}' is not known; give --threshold")
    return limit


def solved_at(fitness: Floats, limit: float) -> int | None:
    """The first generation, from 1, whose fitness is above the limit."""
    above = np.flatnonzero(fitness > limit)
    return int(above[0]) + 1 if above.size else None


def curves(runs: Sequence[Floats], limit: float, end: int) -> tuple[Floats, Floats]:
    """(fitness ``[n, end]``, solved ``[n, end]``) of runs over generations.

    A run that ended in a solved generation keeps its fitness; any other has none after its end, and counts as unsolved there.
    """
    fitness, solved = np.full((len(runs), end), np.nan), np.zeros((len(runs), end))
    for row, values in enumerate(runs):
        fitness[row, : len(values)] = values[:end]
        if values[-1] > limit:
            fitness[row, len(values) :] = values[-1]
        when = solved_at(values, limit)
        if when is not None:
            solved[row, when - 1 :] = 1
    return fitness, solved


def draw_fitness(axes: Axes, fitness: Floats, colour: str, label: str) -> pd.DataFrame:
    """Thin lines of the runs and their mean, which ends where a run has no fitness; the rows of the CSV."""
    generation = np.arange(1, fitness.shape[1] + 1)
    axes.plot(generation, fitness.T, color=colour, alpha=0.25, linewidth=0.7)
    whole = np.isfinite(fitness).all(axis=0)
    middle = pd.DataFrame({"generation": generation[whole], "run": "mean", "value": fitness[:, whole].mean(axis=0)})
    axes.plot(middle["generation"], middle["value"], color=colour, linewidth=2.2, label=label)
    wide = pd.DataFrame(fitness.T, columns=[str(n) for n in range(len(fitness))]).assign(generation=generation)
    runs = wide.melt("generation", var_name="run", value_name="value").dropna()
    return pd.concat([runs, middle], ignore_index=True).assign(quantity="fitness")


def draw_share(axes: Axes, solved: Floats, colour: str, label: str) -> pd.DataFrame:
    """The share of runs solved so far and its interval over runs; the rows of the CSV."""
    generation = np.arange(1, solved.shape[1] + 1)
    share, low, high = share_interval(solved)
    axes.step(generation, share, where="post", color=colour, linewidth=2.0, label=label)
    axes.fill_between(generation, low, high, step="post", color=colour, alpha=0.15, linewidth=0)
    wide = pd.DataFrame({"generation": generation, "mean": share, "low": low, "high": high})
    return wide.melt("generation", var_name="run", value_name="value").assign(quantity="share of runs solved")


def add_limit(parser: argparse.ArgumentParser) -> None:
    """``--threshold``."""
    parser.add_argument("--threshold", type=number, metavar="FITNESS", help="solved above it (default: what solves the task)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``proxy-success``."""
    style.add_sources(parser)
    parser.add_argument("--group", action="append", metavar="KEY", help="as of curves, e.g. score_transform; repeatable")
    add_limit(parser)
    parser.add_argument("--until", type=count, metavar="N", help="generations to show (default: all)")


def draw(arguments: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    table = label_groups(read_generations(arguments.sources, arguments.group or ()), arguments.group)
    require_one_run_per_seed(table, ["gamename", "group"])
    games = table.groupby("gamename", sort=False)
    figure, grid = plt.subplots(len(games), 2, figsize=(12, 4.4 * len(games)), squeeze=False)
    rows, counts = [], []
    for (left, right), (game, searches) in zip(grid, games, strict=True):
        limit, end = limit_of(str(game), searches, arguments.threshold), int(searches["generation"].max())
        end = min(end, arguments.until or end)
        for index, (group, members) in enumerate(searches.groupby("group", sort=False)):
            runs = [run["fitness_mean"].to_numpy(float) for _, run in members.groupby("run", sort=False)]
            fitness, solved = curves(runs, limit, end)
            counts.append(len(runs))
            colour, label = style.colour(index), f"{group}, {style.seeds_text([len(runs)])}"
            parts = (draw_fitness(left, fitness, colour, label), draw_share(right, solved, colour, label))
            rows += [part.assign(gamename=game, group=group) for part in parts]
        left.axhline(limit, color="black", linestyle="--", linewidth=1, label=f"solved: {limit:g}")
        left.set(xlabel="generation", ylabel="fitness: mean return of the agents", title=game)
        right.set(xlabel="generation", ylabel="share of runs solved so far", title=game, ylim=(-0.03, 1.03))
        left.legend(loc="best")
        right.legend(loc="best")
    style.heading(figure, arguments.title)
    text = f"{style.seeds_text(counts)} per group; thin: single runs, thick: their mean; a run that ended solved keeps its "
    style.caption(figure, text + "fitness. Band: 95 % interval over runs.")
    columns = ["gamename", "group", "quantity", "run", "generation", "value"]
    style.save(figure, arguments.out, pd.concat(rows, ignore_index=True)[columns])
