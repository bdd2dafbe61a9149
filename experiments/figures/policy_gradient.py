"""Policy gradients over episodes, 2 x 2: policy loss, baseline, entropy loss, mean return.

The CSV has one row per run and batch; the last and the best mean return of each run are printed. A
method that lacks a quantity is left out of its panel. Such a CSV can be given as ``--reference`` to
another figure, where its runs are drawn dashed.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.lab.figures import csv_files, style
from lightning_rl.lab.figures.runs import Run, read_sources
from lightning_rl.lab.scalars import Floats, read_scalar
from lightning_rl.lab.tables import counted

PANELS = {
    "policy_loss": ("train/policy_loss", "policy loss"),
    "baseline": ("train/baseline", "baseline"),
    "entropy_loss": ("train/entropy_loss", "entropy loss"),
    "mean_return": ("rollout/return_running_mean", "mean return of the last 100 episodes"),
}
"""Column of the CSV: the run's scalar, and the panel's title."""

METHODS = ("REINFORCE", "REINFORCE-baseline", "REINFORCE-entropy", "REINFORCE-combined", "AAC")
COLUMNS = ["method", "seed", "episode", *PANELS]
OF_CLAIMS = {"implementation": "method", "time/episodes": "episode"} | {
    tag: name for name, (tag, _) in PANELS.items()
}
"""Columns of a claim's CSV as those of this one."""

WINDOW = 100
"""Episodes of the running mean of returns."""


def read_run(run: Run) -> pd.DataFrame:
    """A row per batch with ``COLUMNS``, run and experiment (its folder).

    UserError without a count of episodes or a mean return.
    """
    path = run.path.resolve()
    table = pd.DataFrame({"episode": read_scalar(run.path, "time/episodes").value})
    for name, (tag, _) in PANELS.items():
        with suppress(UserError):  # this method does not log it
            table[name] = pd.Series(read_scalar(run.path, tag).value)
    if "mean_return" not in table:
        tag = PANELS["mean_return"][0]
        raise UserError(f"it has no scalar '{tag}', which policy gradients log; leave it out")
    about = {"method": path.parent.name, "seed": path.name.removeprefix("seed_"), "run": str(path)}
    return table.assign(**about, experiment=str(path.parents[1]))


def read_csv(path: Path, label: str | None = None) -> pd.DataFrame:
    """The runs of a CSV of this figure or of a claim; ``label`` comes before their methods."""
    table = csv_files.read_csv(
        path, ("episode", "mean_return", "time/episodes", PANELS["mean_return"][0])
    )
    if "time/episodes" in table:  # a claim's, which lacks what its method does not log
        table = table.rename(columns=OF_CLAIMS)
        table = table.reindex(columns=[*dict.fromkeys([*table, *PANELS])])
    if table.empty or not set(COLUMNS) <= set(table):
        raise UserError(f"'{path}': expected a CSV with columns {', '.join(COLUMNS)}")
    table[list(PANELS)] = table[list(PANELS)].apply(pd.to_numeric, errors="coerce")
    table["method"] = table["method"].astype(str)
    if label:
        table["method"] = f"{label} " + table["method"]
    table["seed"] = table["seed"].astype(str)
    return table.assign(run=f"{path}:" + table["method"] + ":" + table["seed"], experiment="")


def read_runs(sources: Sequence[str]) -> pd.DataFrame:
    """All runs; where they are of several experiments, the method is named with its experiment."""
    nothing = f"none of {', '.join(sources)} is a policy-gradient run"
    table = read_sources(sources, read_csv, read_run, nothing)
    folders = table["experiment"] != ""
    experiments = table.loc[folders, "experiment"]
    if experiments.nunique() > 1:
        table.loc[folders, "method"] += " " + experiments.map(lambda folder: Path(folder).name)
    return table.reindex(columns=[*COLUMNS, "run"])


def thinned(table: pd.DataFrame, every: int) -> pd.DataFrame:
    """The last batch of each stretch of ``every`` episodes of each run."""
    return table.groupby(["run", np.ceil(table["episode"] / every)], sort=False).tail(1)


def summary(run: pd.DataFrame) -> str:
    """Last and best mean return of a run; means over fewer than 100 episodes do not count."""
    name = f"{run['method'].iloc[0]} seed {run['seed'].iloc[0]}"
    full = run[run["episode"] >= WINDOW]
    if full.empty:
        return f"{name}: fewer than {WINDOW} episodes"
    last = full["mean_return"].iloc[-1]
    best = full.loc[full["mean_return"].idxmax()]
    where = f"{best['mean_return']:.1f} at episode {best['episode']:.0f}"
    return f"{name}: last {last:.1f}, best {where}"


def seed_mean(runs: Sequence[pd.DataFrame], name: str) -> tuple[Floats, Floats]:
    """Mean over runs, at the episodes of the shortest: never a mean over fewer seeds."""
    shortest = min(runs, key=lambda run: run["episode"].iloc[-1])
    episode = shortest["episode"].to_numpy(float)
    curves = [np.interp(episode, run["episode"], run[name]) for run in runs]
    return episode, np.mean(curves, axis=0)


def name_of(label: str) -> str:
    """The name of the method that ``label`` begins with."""
    return (label.replace(",", " ").split() or [""])[0]


def method_colour(label: str) -> str:
    """One colour per method, published or not."""
    return style.colour(_rank(label)) if name_of(label) in METHODS else style.COLOURS[-1]


def draw_panel(axes: Axes, name: str, table: pd.DataFrame, line: str, named: bool = True) -> None:
    """Each run thin (but of the policy loss, which is noisy), their mean thick.

    named: for the legend, with markers, as one may lie on another.
    """
    for label, method in table[table[name].notna()].groupby("method", sort=False):
        runs = [run for _, run in method.groupby("run", sort=False)]
        look: dict[str, Any] = {"color": method_colour(str(label)), "linestyle": line}
        if len(runs) > 1 and name != "policy_loss":
            for run in runs:
                axes.plot(run["episode"], run[name], alpha=0.25, linewidth=0.7, **look)
        x, y = seed_mean(runs, name)
        if named:
            look["label"] = f"{label}, {len(runs)} seeds" if len(runs) > 1 else label
        axes.plot(x, y, linewidth=1.6, **look, **style.points(look["color"], y, named))


def _rank(label: str) -> int:
    return METHODS.index(name_of(label)) if name_of(label) in METHODS else len(METHODS)


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv; prints a line per run."""
    table = read_runs(given.sources)
    published = pd.concat([table.iloc[:0], *map(read_csv, given.reference)])
    for _, run in table.groupby("run", sort=False):
        say(summary(run))
    table = thinned(table, given.every)
    table = table.sort_values("method", key=lambda names: names.map(_rank), kind="stable")
    beside = published["method"].map(name_of).isin(table["method"].map(name_of))
    published = published[beside]
    figure, panels = style.panels(4, (7.2, 4.8), legend=3)
    for axes, (name, (_, heading)) in zip(panels, PANELS.items(), strict=True):
        draw_panel(axes, name, table, "-")
        draw_panel(axes, name, published, "--", named=False)
        axes.set(ylabel=heading, xlabel="training episodes")
        style.big_numbers(axes.xaxis)
    if len(published):
        for line, what in (("-", "solid: here"), ("--", "dashed: published")):
            panels[-1].plot([], [], color="black", linestyle=line, label=what)
    if given.threshold is not None:
        style.solved_line(panels[-1], given.threshold)
    style.shared_legend(figure, panels)
    seeds = counted(table.groupby("method")["run"].nunique())
    thin = "thin: single seeds (not of the policy loss)"
    style.describe(figure, given.title, f"{seeds} per method; thick: mean over seeds, {thin}.")
    style.save(figure, given.out, table[COLUMNS])
