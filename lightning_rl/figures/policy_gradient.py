"""The 2 x 2 comparison of policy-gradient methods over episodes: policy loss, baseline, entropy loss, mean return.

    python -m lightning_rl.figures.policy_gradient OUT RUN_DIR... [--reference CSV] [--every EPISODES] [--title TEXT]

writes ``OUT.png`` and ``OUT.csv``, one row per run and batch, and prints the best and last mean return of each run. A
method that lacks a quantity is left out of its panel.
Such a CSV can be given as ``--reference`` to another figure, where its runs are drawn dashed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no display needed

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from lightning_rl.figures.curves import Floats, read_scalar
from lightning_rl.methods.on_policy import RUNNING_EPISODES
from lightning_rl.types import UserError

PANELS = {
    "policy_loss": ("train/policy_loss", "policy loss"),
    "baseline": ("train/baseline", "baseline"),
    "entropy_loss": ("train/entropy_loss", "entropy loss"),
    "mean_return": ("rollout/return_running_mean", "mean return of the last 100 episodes"),
}
"""Column of the CSV: the run's scalar, and the panel's title."""


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
    with path.open() as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"method", "seed", "episode", *PANELS} <= rows[0].keys():
        raise UserError(f"--reference '{path}': expected a CSV with columns method, seed, episode, {', '.join(PANELS)}")
    runs = []
    for key in dict.fromkeys((row["method"], row["seed"]) for row in rows):
        own = [row for row in rows if (row["method"], row["seed"]) == key]
        quantity = {name: np.array([float(row[name]) for row in own]) for name in PANELS if own[0][name]}
        runs.append(Run(*key, np.array([float(row["episode"]) for row in own]), quantity))
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


def write_csv(path: Path, runs: Sequence[Run]) -> None:
    """One row per run and batch; what a method does not log is left empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("method", "seed", "episode", *PANELS))
        for run in runs:
            for i, episode in enumerate(run.episode):
                values = (f"{run.quantity[name][i]:.4g}" if name in run.quantity else "" for name in PANELS)
                writer.writerow((run.label, run.seed, int(episode), *values))


def seed_mean(runs: Sequence[Run], name: str) -> tuple[Floats, Floats]:
    """Mean over runs, at the episodes of the shortest: never a mean over fewer seeds."""
    episode = min((run.episode for run in runs), key=lambda e: e[-1])
    return episode, np.mean([np.interp(episode, run.episode, run.quantity[name]) for run in runs], axis=0)


def draw_panel(axes: Axes, name: str, runs: Sequence[Run], style: str) -> None:
    """Every run thin, their mean thick; one colour per method."""
    for i, label in enumerate(dict.fromkeys(run.label for run in runs)):
        own = [run for run in runs if run.label == label and name in run.quantity]
        if not own:
            continue
        for run in own if len(own) > 1 else ():
            axes.plot(run.episode, run.quantity[name], color=f"C{i}", alpha=0.25, linewidth=0.7, linestyle=style)
        seeds = f", {len(own)} seeds" if len(own) > 1 else ""
        axes.plot(*seed_mean(own, name), color=f"C{i}", linewidth=1.6, linestyle=style, label=label + seeds)


def draw(out: Path, runs: Sequence[Run], references: Sequence[Run], title: str) -> None:
    """The picture and its CSV."""
    figure, grid = plt.subplots(2, 2, figsize=(12, 8), dpi=110, sharex=True, layout="constrained")
    for axes, (name, (_, heading)) in zip(grid.flat, PANELS.items(), strict=True):
        draw_panel(axes, name, runs, "-")
        draw_panel(axes, name, references, "--")
        axes.set_title(heading)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("episodes")
    figure.suptitle(title)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out.with_suffix(".png"))
    plt.close(figure)
    write_csv(out.with_suffix(".csv"), runs)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="lightning_rl.figures.policy_gradient", description="Methods over episodes, 2 x 2.")
    parser.add_argument("out", type=Path, help="written as OUT.png and OUT.csv")
    parser.add_argument("run_dirs", type=Path, nargs="+", metavar="RUN_DIR")
    parser.add_argument("--reference", type=Path, action="append", default=[], metavar="CSV", help="dashed; repeatable")
    parser.add_argument("--every", type=int, default=1, metavar="EPISODES", help="thin out to one point per so many (1: all)")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args(argv)
    try:
        runs = [read_run(*pair) for pair in zip(arguments.run_dirs, labels(arguments.run_dirs), strict=True)]
        references = [run for path in arguments.reference for run in read_csv(path)]
    except UserError as error:
        parser.error(str(error))
    for run in runs:
        print(summary(run))
    draw(arguments.out, [thinned(run, max(arguments.every, 1)) for run in runs], references, arguments.title)


if __name__ == "__main__":
    main()
