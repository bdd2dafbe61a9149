"""Commanded against obtained: how well a policy follows its command."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import labelled, read_csv, require
from lightning_rl.lab.figures.runs import read_sources
from lightning_rl.run.shipped import results_folder

COLUMNS = ["run", "command", "commanded", "obtained_mean", "obtained_sd"]


def draw_sweeps(out: Out, table: pd.DataFrame, title: str) -> None:
    """One line per run of the sweep ``table``; the band is one sd over episodes."""
    figure, (axes,) = style.panels(1, (6.4, 4.8))
    name = table["command"].iloc[0]
    runs = table.groupby("run", sort=False)
    for index, (label, rows) in enumerate(runs):
        x, mean, sd = (rows[column].to_numpy(float) for column in COLUMNS[2:])
        band, alpha = (mean - sd, mean + sd), 0.5 / (len(runs) + 1)
        style.banded_line(axes, x, mean, *band, style.colour(index), alpha, marker="o", markersize=4, label=label)
    if name == "return":
        start = float(table["commanded"].iloc[0])
        axes.axline((start, start), slope=1, color="grey", linestyle=":", label="obtained = commanded")
    units = "return" if name == "return" else f"{name} (standard deviations)"
    axes.set(xlabel=f"commanded {units}", ylabel="obtained return")
    axes.legend(loc="best")
    count = f"{len(runs)} runs" if len(runs) > 1 else "one run"
    style.describe(figure, title, f"{count}; mean and standard deviation of the episodes of each command")
    style.save(figure, out, table)


def draw_sweep(out: Out, report: Mapping[str, Any]) -> None:
    """OUT.png, OUT.svg and OUT.csv of one sweep."""
    title = f"{report['implementation']} on {report['gamename']}: {report['episodes']} episodes per command, actions sampled"
    run = f"{results_folder(Path(report['checkpoint'])).name}, {report['env_steps']:,} steps"
    draw_sweeps(out, pd.DataFrame(report["rows"]).assign(run=run, command=report["command_name"])[COLUMNS], title)


def read_sweep(path: Path, label: str | None) -> pd.DataFrame:
    """A ``sweep.csv``, or that of a run directory; the label names its runs."""
    table = read_csv(path / "sweep.csv" if path.is_dir() else path, COLUMNS[2:])
    table = pd.DataFrame({"command": "return", "run": path.stem}, table.index).assign(**table)
    require(table, COLUMNS)
    return table[COLUMNS].assign(run=labelled(table["run"], label))


def read_sweeps(sources: Sequence[str]) -> pd.DataFrame:
    """The sweeps of all sources that have one; UserError if none has, or their commands differ."""
    nothing = "no source has a sweep.csv; make one with --eval_agent CKPT --eval_command sweep"
    table = read_sources(sources, read_sweep, None, nothing)
    names = table["command"].unique()
    if len(names) > 1:
        raise UserError(f"sweeps of different commands ({' and '.join(names)}) do not share an axis; draw them apart")
    return table


def draw(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    draw_sweeps(given.out, read_sweeps(given.sources), given.title)
