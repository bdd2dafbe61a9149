"""The 2 x 2 comparison of policy-gradient methods over episodes: policy loss, baseline, entropy loss, mean return.

The CSV has one row per run and batch; the best and last mean return of each run are printed. A method that lacks a
quantity is left out of its panel. Such a CSV can be given as ``--reference`` to another figure, where its runs are drawn dashed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.arguments import checked_path, count
from lightning_rl.core.outputs import Out
from lightning_rl.core.types import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv as read_any_csv
from lightning_rl.lab.figures.runs import Floats, attempt, find_runs, read_scalar
from lightning_rl.methods.on_policy import RUNNING_EPISODES

PANELS = {
    "policy_loss": ("train/policy_loss", "policy loss"),
    "baseline": ("train/baseline", "baseline"),
    "entropy_loss": ("train/entropy_loss", "entropy loss"),
    "mean_return": ("rollout/return_running_mean", "mean return of the last 100 episodes"),
}
"""Column of the CSV: the run's scalar, and the panel's title."""

METHODS = ("REINFORCE", "REINFORCE-baseline", "REINFORCE-entropy", "REINFORCE-combined", "AAC")


@dataclass(frozen=True)
class Run:
    """One run: quantities ``[n]`` over the number of episodes ``[n]`` played so far, one entry per batch."""

    label: str
    seed: str
    episode: Floats
    quantity: dict[str, Floats]


def read_run(run_dir: Path, label: str) -> Run:
    """The panels' quantities of a run directory; UserError if it is not one of a policy-gradient run."""
    quantity = {}
    for name, (tag, _) in PANELS.items():
        with contextlib.suppress(UserError):  # this method does not log it
            quantity[name] = read_scalar(run_dir, tag).value
    return Run(label, run_dir.name.removeprefix("seed_"), read_scalar(run_dir, "time/episodes").value, quantity)


def labels(run_dirs: Sequence[Path]) -> list[str]:
    """The method of each run, with the experiment's name where there are several experiments."""
    resolved = [run_dir.resolve() for run_dir in run_dirs]
    several = len({path.parents[1] for path in resolved}) > 1
    return [f"{path.parent.name} {path.parents[1].name}" if several else path.parent.name for path in resolved]


def read_csv(path: Path) -> list[Run]:
    """The runs of a CSV that this command has written."""
    table = read_any_csv(path, ("episode", "mean_return"))
    table = table.assign(**{name: pd.to_numeric(table[name], errors="coerce") for name in PANELS if name in table})
    if table.empty or not {"method", "seed", "episode", *PANELS} <= set(table):
        raise UserError(f"'{path}': expected a CSV with columns method, seed, episode, {', '.join(PANELS)}")
    runs = []
    for (label, seed), own in table.groupby(["method", "seed"], sort=False):
        quantity = {name: own[name].to_numpy(float) for name in PANELS if own[name].notna().all()}
        runs.append(Run(str(label), str(seed), own["episode"].to_numpy(float), quantity))
    return runs


def thinned(run: Run, every: int) -> Run:
    """The last batch of each stretch of ``every`` episodes."""
    stretch = np.ceil(run.episode / every)
    keep = np.append(stretch[1:] != stretch[:-1], True)
    return replace(run, episode=run.episode[keep], quantity={name: value[keep] for name, value in run.quantity.items()})


def summary(run: Run) -> str:
    """Best and last mean return; means over fewer than 100 episodes do not count."""
    value, episode = (array[run.episode >= RUNNING_EPISODES] for array in (run.quantity["mean_return"], run.episode))
    if not len(value):
        return f"{run.label} seed {run.seed}: fewer than {RUNNING_EPISODES} episodes"
    best = int(value.argmax())
    return f"{run.label} seed {run.seed}: best {value[best]:.1f} at episode {episode[best]:.0f}, last {value[-1]:.1f}"


def as_table(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per run and batch; what a method does not log is left empty."""
    parts = [pd.DataFrame({"method": r.label, "seed": r.seed, "episode": r.episode, **r.quantity}) for r in runs]
    return pd.concat(parts, ignore_index=True).reindex(columns=["method", "seed", "episode", *PANELS])


def seed_mean(runs: Sequence[Run], name: str) -> tuple[Floats, Floats]:
    """Mean over runs, at the episodes of the shortest: never a mean over fewer seeds."""
    episode = min((run.episode for run in runs), key=lambda e: e[-1])
    return episode, np.mean([np.interp(episode, run.episode, run.quantity[name]) for run in runs], axis=0)


def method_colour(label: str) -> str:
    """One colour per method, published or not; ``label`` begins with its name."""
    words = label.replace(",", " ").split()
    return style.colour(METHODS.index(words[0])) if words and words[0] in METHODS else "#7F7F7F"


def draw_panel(axes: Axes, name: str, runs: Sequence[Run], line: str) -> None:
    """Every run thin, their mean thick; one colour per method."""
    for label in dict.fromkeys(run.label for run in runs):
        own, colour = [run for run in runs if run.label == label and name in run.quantity], method_colour(label)
        if not own:
            continue
        for run in own if len(own) > 1 else ():
            axes.plot(run.episode, run.quantity[name], color=colour, alpha=0.25, linewidth=0.7, linestyle=line)
        x, y = seed_mean(own, name)
        seeds = f", {len(own)} seeds" if len(own) > 1 else ""
        axes.plot(x, y, color=colour, linewidth=1.6, linestyle=line, label=label + seeds, marker=style.marker(y))


def draw_panels(out: Out, runs: Sequence[Run], references: Sequence[Run], title: str) -> None:
    """The picture and its CSV."""
    figure, grid = style.panels(4, (9.6, 5.2))
    for axes, (name, (_, heading)) in zip(grid, PANELS.items(), strict=True):
        draw_panel(axes, name, runs, "-")
        draw_panel(axes, name, references, "--")
        axes.set(title=heading, xlabel="training episodes")
    entries = dict(pair[::-1] for axes in grid for pair in zip(*axes.get_legend_handles_labels(), strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside right center", fontsize=8)
    style.heading(figure, title)
    counts = [sum(run.label == label for run in runs) for label in dict.fromkeys(run.label for run in runs)]
    dashed = "; dashed: published" if references else ""
    style.caption(figure, f"{style.seeds_text(counts)} per method; thick: mean over seeds, thin: single seeds{dashed}.")
    style.save(figure, out, as_table(runs))


def read_sources(sources: Sequence[str]) -> list[Run]:
    """The runs of run directories, folders above them, and CSVs that this figure has written."""
    folders = [run.path for run in find_runs([Path(source) for source in sources if not source.endswith(".csv")])]
    found: list[Run] = []
    for path, label in zip(folders, labels(folders), strict=True):
        found += attempt(path, functools.partial(read_run, path, label))
    for source in sources:
        if source.endswith(".csv"):
            found += itertools.chain(*attempt(Path(source), functools.partial(read_csv, Path(source))))
    if not found:
        raise UserError(f"nothing to draw: none of {', '.join(sources)} is a policy-gradient run")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``policy-gradient``."""
    style.add_sources(parser)
    parser.add_argument("--reference", type=checked_path, action="append", default=[], metavar="CSV", help="dashed; repeatable")
    parser.add_argument("--every", type=count, default=1, metavar="EPISODES", help="thin out to one point per so many (1: all)")


def draw(arguments: argparse.Namespace) -> None:
    """The figure that the arguments ask for."""
    runs = read_sources(arguments.sources)
    references = [run for path in arguments.reference for run in read_csv(path)]
    for run in runs:
        print(summary(run))
    draw_panels(arguments.out, [thinned(run, arguments.every) for run in runs], references, arguments.title)
