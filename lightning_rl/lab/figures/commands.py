"""Commanded against obtained: how well a policy follows its command."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import three_digits
from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import labelled, read_csv, require, require_cells
from lightning_rl.lab.figures.runs import is_run, open_run, read_sources
from lightning_rl.lab.obedience import NEAR, far_apart
from lightning_rl.run.shipped import results_folder

COLUMNS = ["run", "command", "commanded", "obtained_mean", "obtained_sd"]
MISSES = ["episode_error", *NEAR]
_KEPT = [*COLUMNS, "episodes", *MISSES]  # earlier sweeps lack all but COLUMNS
_NEAR = 75  # of the identity, a band that is drawn
_NOTHING = "no source has a sweep.csv; make one with lightning-rl eval CKPT --command sweep"


def draw_sweeps(out: Out, table: pd.DataFrame, title: str, published: Collection[str] = ()) -> None:
    """One line per run of the sweep ``table``; the band is one sd over episodes. published: runs
    that are black.
    """
    figure, (axes,) = style.panels(1, (6.4, 4.8))
    name = table["command"].iloc[0]
    runs = table.groupby("run", sort=False)
    for index, (label, rows) in enumerate(runs):
        asked, mean, sd = (rows[column].to_numpy(float) for column in COLUMNS[2:])
        missed = rows["episode_error"].mean()
        if name == "return" and np.isfinite(missed):
            label = f"{label}: single episodes miss by {three_digits(missed)}"
        style.banded_line(
            axes,
            asked,
            mean,
            mean - sd,
            mean + sd,
            style.REFERENCE_COLOURS[0] if label in published else style.colour(index),
            alpha=0.5 / (len(runs) + 1),
            marker="o",
            markersize=4,
            label=label,
        )
    if name == "return":
        start = float(table["commanded"].iloc[0])
        draw_identity(axes, start, "obtained = commanded")
        ends = np.array([table["commanded"].min(), table["commanded"].max()])
        if far_apart(ends.tolist()):
            look: dict[str, Any] = {"color": "grey", "alpha": 0.12, "linewidth": 0}
            axes.fill_between(ends, ends - _NEAR, ends + _NEAR, label=f"within {_NEAR}", **look)
    units = "return" if name == "return" else f"{name} (standard deviations)"
    axes.set(xlabel=f"commanded {units}", ylabel="obtained return")
    axes.legend(loc="best")
    count = f"{len(runs)} runs" if len(runs) > 1 else "one run"
    style.describe(
        figure, title, f"{count}; mean and standard deviation of the episodes of each command"
    )
    style.save(figure, out, table)


def draw_identity(axes: Axes, start: float, label: str) -> None:
    """The line on which a policy that obeys exactly would be."""
    axes.axline((start, start), slope=1, color="grey", linestyle=":", label=label)


def draw_sweep(out: Out, report: Mapping[str, Any]) -> None:
    """OUT.png, OUT.svg and OUT.csv of one sweep."""
    title = (
        f"{report['implementation']} on {report['gamename']}: {report['episodes']} episodes "
        "per command, actions sampled"
    )
    run = f"{results_folder(Path(report['checkpoint'])).name}, {report['env_steps']:,} steps"
    table = pd.DataFrame(report["rows"]).assign(run=run, command=report["command_name"])
    draw_sweeps(out, table[_KEPT], title)


def run_name(path: Path) -> str | None:
    """Method and seed of a run directory, or of that which a file is in; None where there is
    none.
    """
    folder = path if path.is_dir() else path.parent
    if not is_run(folder):
        return None
    about = open_run(folder).about
    return f"{about['implementation']} seed_{about['seed']}"


def read_sweep(path: Path, label: str | None) -> pd.DataFrame:
    """``_KEPT`` and source, of a ``sweep.csv``, that of a run directory, or the CSV of a claim;
    the label names its runs.
    """
    table = read_csv(path / "sweep.csv" if path.is_dir() else path, COLUMNS[2:])
    require(table, COLUMNS[2:])
    seeds = table.get("seed")  # which the CSV of a claim has instead of these columns
    run = path.stem if seeds is None else "seed_" + seeds.astype(str)
    unknown = dict.fromkeys(["episodes", *MISSES], np.nan)
    table = pd.DataFrame({"command": "return", "run": run, **unknown, **table}, index=table.index)
    if table.empty:
        raise UserError("it has no row; name another CSV")
    require_cells(table, "command", lambda value: isinstance(value, str), "the name of a command")
    names = labelled(table["run"], label or run_name(path))
    return table[_KEPT].assign(run=names, source=str(path))


def read_apart(
    sources: Sequence[str], read: Callable[[Path, str | None], pd.DataFrame], name: str
) -> pd.DataFrame:
    """One table of all sources that have a sweep; UserError if none has, or two go by the same
    ``name``, which is a column.
    """
    table = read_sources(sources, read, None, _NOTHING)
    of_each = table.drop_duplicates([name, "source"])
    for called, sources_of_it in of_each.groupby(name, sort=False)["source"]:
        if len(sources_of_it) > 1:
            a, b = sources_of_it.iloc[:2]
            raise UserError(
                f"'{a}' and '{b}' are both called '{called}'; tell them apart with a name each, as "
                "CSV:LABEL"
            )
    return table


def read_sweeps(sources: Sequence[str]) -> pd.DataFrame:
    """The sweeps of all sources, see ``read_apart``; UserError if their commands differ."""
    table = read_apart(sources, read_sweep, "run")
    names = table["command"].unique()
    if len(names) > 1:
        raise UserError(
            f"sweeps of different commands ({' and '.join(names)}) do not share an axis; draw them "
            "apart"
        )
    return table[[*COLUMNS, *MISSES]]


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    published = read_sweeps(given.reference)["run"].unique() if given.reference else ()
    draw_sweeps(given.out, read_sweeps([*given.sources, *given.reference]), given.title, published)
