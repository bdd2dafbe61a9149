"""Searches for proxies: success over generations, and by step size and score transform."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from experiments.figures.protocol_csv import filled, require_whole
from experiments.intervals import share_interval
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import GENERATIONS
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv, require, require_cells
from lightning_rl.lab.figures.groups import label_groups
from lightning_rl.lab.figures.runs import IDENTITY, Run, read_sources, require_one_run_per_seed
from lightning_rl.lab.figures.scores import threshold_of
from lightning_rl.lab.scalars import Floats, read_scalar
from lightning_rl.lab.tables import counted

TAG, COUNT = "es/fitness_mean", "time/num_updates"
NEEDED = ("gamename", "seed", "generation", "fitness_mean")
STUDY = ("score_transform", "step_size", "mirrored")
_REMEDY = "name runs of SE, or CSVs of lightning-rl proxies generations or of claims about searches"


def read_generations(sources: Sequence[str], keys: Sequence[str] = ()) -> pd.DataFrame:
    """A row per generation, from 1: whose it is, run, fitness_mean and ``keys``.

    sources: run directories of SE and RN, folders above them, and CSVs of ``lightning-rl proxies
    generations`` or of claims.
    """
    table = read_sources(
        sources,
        lambda path, label: _of_csv(_read(path), path, label, keys),
        lambda run: _of_run(run, keys),
        f"no source has '{TAG}'; {_REMEDY}",
        keys,
    )
    return table.astype({"seed": str})


def _read(path: Path, *numbers: str) -> pd.DataFrame:
    return read_csv(path, ("generation", "fitness_mean", TAG, COUNT, *numbers), whole_rows=True)


def _of_csv(
    table: pd.DataFrame, path: Path, label: str | None, keys: Sequence[str]
) -> pd.DataFrame:
    if TAG in table:  # a claim's: the scalars of a run
        require(table, (COUNT,))
        table = table.rename(columns={TAG: "fitness_mean"}).assign(generation=table[COUNT] - 1)
    require(table, (*NEEDED, *keys))
    require_whole(table, "generation", 0, GENERATIONS - 1)
    for name in ("gamename", "seed", *keys):
        require_cells(table, name, filled, "filled in")
    settings = pd.Series("", table.index)
    if "settings" in table:
        settings = table["settings"].fillna("").astype(str)
    if label is None and "implementation" in table:
        method = table["implementation"].astype(str)
    else:
        method = label or path.stem
    game, seed = table["gamename"].astype(str), table["seed"].astype(str)
    runs = table[["gamename", "seed", "fitness_mean", *keys]]
    return runs.assign(
        exp_name=settings,
        implementation=method,
        run=f"{path}:" + game + ":" + settings + ":" + seed,
        generation=table["generation"] + 1,
    )


def _of_run(run: Run, keys: Sequence[str]) -> pd.DataFrame:
    generation = read_scalar(run.path, COUNT).value.astype(int)
    fitness = read_scalar(run.path, TAG).value
    table = pd.DataFrame({"generation": generation, "fitness_mean": fitness})
    for name in (*IDENTITY, *keys):
        value = run.key(name)
        table[name] = value if isinstance(value, bool | int | float) else str(value)
    return table.assign(run=str(run.path))


def limit_of(game: str, table: pd.DataFrame, asked: float | None) -> float:
    """What solves the task; UserError where nobody says."""
    of_rewards = (table["implementation"] == "RN").any()  # whose fitness is no return
    limit = asked if of_rewards else threshold_of(game, asked)
    if limit is None:
        raise UserError(f"what fitness solves '{game}' is not known; give --threshold")
    return limit


def by_generation(run: pd.DataFrame) -> Floats:
    """The fitness of generations 1, 2, .. of a run; one that is missing is as the one before."""
    known = run.groupby("generation")["fitness_mean"].last()
    return known.reindex(range(1, int(known.index[-1]) + 1)).ffill().bfill().to_numpy(float)


def solved_at(fitness: Floats, limit: float) -> int | None:
    """The first generation, from 1, whose fitness is above the limit."""
    above = np.flatnonzero(fitness > limit)
    return int(above[0]) + 1 if above.size else None


def curves(runs: Sequence[Floats], limit: float, end: int) -> tuple[Floats, Floats]:
    """(fitness ``[n, end]``, solved ``[n, end]``) of runs over generations.

    A run that ended in a solved generation keeps its fitness; any other has none after its end, and
    counts as unsolved there.
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
    """Runs thin, and their mean up to where the first of them ends; the rows of the CSV."""
    runs = pd.DataFrame(fitness.T, pd.RangeIndex(1, fitness.shape[1] + 1, name="generation"))
    middle = runs.mean(axis=1, skipna=False)
    axes.plot(runs.index, runs, color=colour, alpha=0.25, linewidth=0.7)
    axes.plot(middle.index, middle, color=colour, linewidth=2.2, label=label)
    return _rows(runs.assign(mean=middle), "fitness")


def draw_share(axes: Axes, solved: Floats, colour: str, label: str) -> pd.DataFrame:
    """The share of runs solved so far and its interval over runs; the rows of the CSV."""
    share, low, high = share_interval(solved)
    generation = pd.RangeIndex(1, solved.shape[1] + 1, name="generation")
    style.banded_line(
        axes, generation, share, low, high, colour, step="post", linewidth=2.0, label=label
    )
    columns = pd.DataFrame({"mean": share, "low": low, "high": high}, generation)
    return _rows(columns, "share of runs solved")


def _rows(columns: pd.DataFrame, quantity: str) -> pd.DataFrame:
    rows = columns.melt(var_name="run", ignore_index=False)
    return rows.dropna().reset_index().assign(quantity=quantity)


def draw_success(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    table = label_groups(read_generations(given.sources, given.group or ()), given.group)
    require_one_run_per_seed(table)
    games = table.groupby("gamename", sort=False)
    figure, panels = style.panels(2 * len(games), (7.0, 4.3), columns=2)
    rows = []
    pairs = zip(panels[::2], panels[1::2], games, strict=True)
    for left, right, (game, searches) in pairs:
        limit = limit_of(str(game), searches, given.threshold)
        end = int(searches["generation"].max())
        for index, (group, members) in enumerate(searches.groupby("group", sort=False)):
            runs = [by_generation(run) for _, run in members.groupby("run", sort=False)]
            fitness, solved = curves(runs, limit, min(end, given.until or end))
            colour, label = style.colour(index), f"{group}, {counted([len(runs)])}"
            for part in (
                draw_fitness(left, fitness, colour, label),
                draw_share(right, solved, colour, label),
            ):
                rows.append(part.assign(gamename=game, group=group))
        style.solved_line(left, limit)
        left.set(xlabel="generation", ylabel="fitness: mean return of the agents", title=game)
        right.set(
            xlabel="generation",
            ylabel="share of runs solved so far",
            title=game,
            ylim=(-0.03, 1.03),
        )
        left.legend(loc="best")
        if searches["group"].nunique() > 1:
            right.legend(loc="best")
    style.describe(
        figure,
        given.title,
        f"{counted(table.groupby(['gamename', 'group'])['run'].nunique())} per group; thin: "
        "single "
        "runs, thick: their mean; a run that ended solved keeps its fitness. Band: 95 % interval "
        "over runs.",
    )
    columns = ["gamename", "group", "quantity", "run", "generation", "value"]
    style.save(figure, given.out, pd.concat(rows, ignore_index=True)[columns])


def run_table(table: pd.DataFrame, asked: float | None) -> pd.DataFrame:
    """A row per run: gamename, seed, ``STUDY``, generations until solved or in all, and solved."""
    rows = []
    for _, run in table.groupby("run", sort=False):
        about = run.iloc[0][["gamename", "seed", *STUDY]].to_dict()
        fitness = by_generation(run)
        when = solved_at(fitness, limit_of(about["gamename"], run, asked))
        rows.append({**about, "generations": when or len(fitness), "solved": when is not None})
    return pd.DataFrame(rows)


def require_study(table: pd.DataFrame) -> pd.DataFrame:
    """The ``run_table``; UserError with the first cell that cannot be drawn."""
    require(table, ("gamename", "seed", *STUDY, "solved"))
    for name in ("gamename", "seed", "score_transform"):
        require_cells(table, name, filled, "filled in")
    for name in ("solved", "mirrored"):
        require_cells(table, name, (True, False).__contains__, "True or False")
    require_cells(
        table, "step_size", lambda value: value > 0, "more than 0: the axis is logarithmic"
    )
    return table


def read_runs(sources: Sequence[str], asked: float | None) -> pd.DataFrame:
    """``run_table`` of the sources, of which CSVs of this figure are such tables already."""

    def of_csv(path: Path, label: str | None) -> pd.DataFrame:
        table = _read(path, "generations", "step_size")
        if "generations" not in table:
            table = run_table(_of_csv(table, path, label, STUDY), asked)
        return require_study(table)

    def of_run(run: Run) -> pd.DataFrame:
        return require_study(run_table(_of_run(run, STUDY), asked))

    return read_sources(sources, of_csv, of_run, f"no source has '{TAG}'; {_REMEDY}")


def draw_runs(
    axes: Axes, runs: pd.DataFrame, transforms: Sequence[str], scale: Normalize
) -> PathCollection:
    """Every run as a point: step size, score transform, and generations until it was solved."""
    lane = np.array([transforms.index(name) for name in runs["score_transform"]], dtype=float)
    lane += np.random.default_rng(0).uniform(-0.28, 0.28, len(runs))  # side by side
    solved, size = runs["solved"].to_numpy(bool), runs["step_size"].to_numpy(float)
    axes.scatter(
        size[~solved],
        lane[~solved],
        marker="x",
        color="#B0B0B0",
        s=22,
        linewidths=1,
        label="not solved",
    )
    points = axes.scatter(
        size[solved],
        lane[solved],
        c=runs["generations"][solved],
        cmap="viridis_r",
        norm=scale,
        s=34,
        edgecolors="black",
        linewidths=0.3,
        label="solved",
    )
    axes.set(
        xscale="log", xlabel="step size", yticks=range(len(transforms)), yticklabels=transforms
    )
    style.plain_ticks(axes.xaxis)
    axes.set_ylim(-0.5, len(transforms) - 0.5)
    return points


def draw_solved_share(
    axes: Axes, runs: pd.DataFrame, transforms: Sequence[str], ways: Sequence[bool]
) -> None:
    """Bars: the share of the runs of each transform that was solved."""
    height = 0.8 / len(ways)
    for index, mirrored in enumerate(ways):
        chosen = runs[runs["mirrored"] == mirrored]
        place = np.arange(len(transforms)) + (index - (len(ways) - 1) / 2) * height
        bars = []
        for name, y in zip(transforms, place, strict=True):
            solved = chosen[chosen["score_transform"] == name]["solved"].to_numpy(float)
            bars.append(share_interval(solved) if len(solved) else (0, 0, 0))
            axes.annotate(f"n={len(solved)}", (1.02, y), fontsize=9, va="center")
        share, low, high = np.array(bars).T
        label = "mirrored" if mirrored else "not mirrored"
        axes.barh(
            place,
            share,
            0.9 * height,
            xerr=(share - low, high - share),
            error_kw={"elinewidth": 1, "ecolor": "#444444"},
            color=style.colour(index),
            alpha=0.85,
            label=label,
        )
    axes.set(
        xlabel="share of runs solved, 95 % interval",
        yticks=range(len(transforms)),
        yticklabels=transforms,
        xlim=(0, 1.15),
        ylim=(-0.5, len(transforms) - 0.5),
    )


def draw_step_sizes(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    runs = read_runs(given.sources, given.threshold)
    if runs["gamename"].nunique() > 1:
        raise UserError(
            f"runs of {' and '.join(runs['gamename'].unique())} do not share a figure; draw them "
            "apart"
        )
    transforms = sorted(runs["score_transform"].unique())
    ways = sorted(runs["mirrored"].unique(), reverse=True)
    figure, axes = style.panels(
        len(ways) + 1, (7.2, 0.6 * len(transforms) + 1.6), legend=1, sharey="row"
    )
    scale = Normalize(1, int(runs["generations"].max()))
    for panel, mirrored in zip(axes, ways, strict=False):
        points = draw_runs(panel, runs[runs["mirrored"] == mirrored], transforms, scale)
        panel.set_title("mirrored sampling" if mirrored else "without mirrored sampling")
    figure.colorbar(
        points,
        ax=axes[len(ways) - 1],
        label="generations until solved",
        ticks=MaxNLocator(integer=True),
    )
    draw_solved_share(axes[-1], runs, transforms, ways)
    style.shared_legend(figure, axes)  # points are everywhere
    title = given.title or f"Step sizes and score transforms on {runs['gamename'].iloc[0]}"
    text = (
        f"{len(runs)} runs of a seed each, up to {runs['generations'].max()} generations long. "
        "Heights within a row are random, so that no run hides another."
    )
    style.describe(figure, title, text)
    style.save(figure, given.out, runs)
