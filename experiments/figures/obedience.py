"""Asked against obtained returns of several methods side by side."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import three_digits
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.functional.statistics import sampling_floor
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.commands import (
    COLUMNS,
    draw_identity,
    read_apart,
    read_sweep,
    run_name,
)
from lightning_rl.lab.tables import counted

_POINTS = 60  # of the mean over runs, which were asked for different returns


def read_method(path: Path, label: str | None) -> pd.DataFrame:
    """The sweeps of a method, called by its label, its run or its file; UserError where commands
    are no returns.
    """
    table = read_sweep(path, None)
    if (name := table["command"].iloc[0]) != "return":
        raise UserError(
            f"its commands are no returns (but: {name}); make another with lightning-rl eval CKPT "
            "--calibrate"
        )
    return table.assign(method=label or run_name(path) or path.stem)


def mean_line(runs: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """commanded, obtained_mean, low, high: of several runs their mean and its interval over the
    returns that all were asked for; of a single one its episodes' mean and standard deviation.
    """
    if len(runs) == 1:
        mean, sd = runs[0]["obtained_mean"], runs[0]["obtained_sd"]
        return runs[0][["commanded", "obtained_mean"]].assign(low=mean - sd, high=mean + sd)
    first = max(rows["commanded"].min() for rows in runs)
    last = min(rows["commanded"].max() for rows in runs)
    x = np.linspace(first, last, _POINTS if first < last else 0)
    obtained = [np.interp(x, rows["commanded"], rows["obtained_mean"]) for rows in runs]
    mean, low, high = mean_interval(obtained)
    return pd.DataFrame({"commanded": x, "obtained_mean": mean, "low": low, "high": high})


def draw_method(axes: Axes, name: str, table: pd.DataFrame, colour: str) -> pd.DataFrame:
    """One panel; its rows of the CSV."""
    runs = [rows.sort_values("commanded") for _, rows in table.groupby("run", sort=False)]
    if len(runs) > 1:
        for rows in runs:
            asked, obtained = rows["commanded"], rows["obtained_mean"]
            axes.plot(asked, obtained, color=colour, alpha=0.35, linewidth=0.9)
    line = mean_line(runs)
    style.banded_line(
        axes,
        line["commanded"],
        line["obtained_mean"],
        line["low"],
        line["high"],
        colour,
        alpha=0.25,
        linewidth=2.2,
    )
    off = [(rows["obtained_mean"] - rows["commanded"]).abs() for rows in runs]
    error = np.mean([each.mean() for each in off])
    worst = max(each.max() for each in off)
    floor = float(np.mean([sampling_floor(rows["obtained_sd"], rows["episodes"]) for rows in runs]))
    lines = [
        f"{name}, {counted([len(runs)])}",
        f"mean error {three_digits(error)}, worst {three_digits(worst)}",
    ]
    if np.isfinite(floor):
        lines.append(f"by chance alone {three_digits(floor)}")
    missed = table["episode_error"].mean()
    if np.isfinite(missed):
        lines.append(f"single episodes: {three_digits(missed)}")
    axes.set_title("\n".join(lines))
    seeds = table[["run", "commanded", "obtained_mean", "obtained_sd"]]
    return pd.concat([seeds, line.assign(run="mean")]).assign(method=name)


def _limits(table: pd.DataFrame, columns: Sequence[str]) -> tuple[float, float]:
    """Of an axis that all panels share."""
    low, high = np.nanmin(table[columns]), np.nanmax(table[columns])
    margin = 0.03 * (high - low)
    return low - margin, high + margin


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    table = read_apart(given.sources, read_method, "method")
    methods = table.groupby("method", sort=False)
    figure, panels = style.panels(len(methods), (6.4, 5.2), legend=1)
    parts = []
    for index, (name, rows) in enumerate(methods):
        parts.append(draw_method(panels[index], name, rows, style.colour(index)))
    shown = pd.concat(parts, ignore_index=True)
    for axes in panels:
        draw_identity(axes, 0, "obtained = asked")
        axes.set(xlabel="asked return", ylabel="obtained return")
        axes.set_xlim(_limits(shown, ["commanded"]))
        axes.set_ylim(_limits(shown, ["obtained_mean", "low", "high"]))
    style.shared_legend(figure, panels)
    single = ""
    if methods["run"].nunique().min() == 1:
        single = "Of a single seed: mean and standard deviation of the episodes. "
    style.describe(
        figure,
        given.title,
        "Thin: seeds, the mean of the episodes of each command; thick: their mean with its 95 % "
        f"interval, for returns that all were asked for. {single}Error: distance of the mean "
        "obtained return from what was asked; by chance alone: that of a policy which is "
        "calibrated exactly, in as many episodes; worst: of one seed and command.",
    )
    columns = ["method", "run", *COLUMNS[2:], "low", "high"]
    style.save(figure, given.out, shown[columns])
