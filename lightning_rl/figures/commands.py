"""Commanded against obtained: does a policy do what it is told?"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw_sweep(out: Path, *reports: Mapping[str, Any]) -> None:
    """``OUT.png`` and ``OUT.csv`` of sweeps: one line per checkpoint, the band is one sd over episodes."""
    figure, axes = plt.subplots(figsize=(6.4, 4.8), dpi=120, layout="constrained")
    name = reports[0]["command_name"]
    rows: list[tuple[str, float, float, float]] = []
    for report in reports:
        points = [(row["commanded"], row["obtained_mean"], row["obtained_sd"]) for row in report["rows"]]
        commanded, mean, sd = zip(*points, strict=True)
        label = f"{Path(report['checkpoint']).parent.name}, {report['env_steps']:,} steps"
        (line,) = axes.plot(commanded, mean, marker="o", markersize=4, label=label)
        low, high = ([m + sign * s for m, s in zip(mean, sd, strict=True)] for sign in (-1, 1))
        axes.fill_between(commanded, low, high, color=line.get_color(), alpha=0.5 / (len(reports) + 1), linewidth=0)
        rows += [(label, *point) for point in points]
    if name == "return":
        axes.axline((commanded[0], commanded[0]), slope=1, color="grey", linestyle=":", label="obtained = commanded")
    first = reports[0]
    title = f"{first['implementation']} on {first['gamename']}: {first['episodes']} episodes per command, actions sampled"
    units = "return" if name == "return" else f"{name} (standard deviations)"
    axes.set(title=title, xlabel=f"commanded {units}", ylabel="obtained return, mean and sd of episodes")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(out.with_suffix(".png"))
    plt.close(figure)
    with out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("run", "commanded", "obtained_mean", "obtained_sd"))
        writer.writerows((label, *(f"{value:.3f}" for value in values)) for label, *values in rows)
