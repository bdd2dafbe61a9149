"""Table and figure of a CSV of compare_learning.py; the figure goes beside it.

    python benchmarks/report_learning.py [results/members/fresh.csv]

Means over seeds with their 95 % intervals (Student's t), and ours less theirs with Welch's: of the test return at the end of
training, and of its mean over the whole curve.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lightning_rl.functional.intervals import difference_interval, mean_interval
from lightning_rl.lab.figures.curves import BAND_RUNS
from lightning_rl.lab.figures.style import banded_line, big_numbers, colour, describe, panels, png
from lightning_rl.lab.tables import interval, markdown

SHIPPED = Path(__file__).resolve().parent.parent / "results" / "members" / "fresh.csv"
NAMES = {"ours": "ours, stacked", "sb3": "Stable-Baselines3"}
Curves = dict[int, list[tuple[int, float, float]]]
"""(decisions, mean test return, CPU seconds) of each seed."""


def read(source: Path) -> dict[str, dict[str, Curves]]:
    """Curves by task and library; a seed that was not trained to the end is left out."""
    found: dict[str, dict[str, Curves]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    with source.open(newline="") as file:
        for row in csv.DictReader(file):
            point = int(row["decisions"]), float(row["return_mean"]), float(row["cpu_seconds"])
            found[f"{row['task']}, {row['agent']}"][row["library"]][int(row["seed"])].append(point)
    for libraries in found.values():
        longest = max(points[-1][0] for curves in libraries.values() for points in curves.values())
        for curves in libraries.values():
            for seed in [seed for seed, points in curves.items() if points[-1][0] < longest]:
                del curves[seed]
    return found


def table(found: dict[str, dict[str, Curves]]) -> str:
    """Markdown: a row for each task that both libraries have."""
    libraries_and_gaps = ("Stable-Baselines3", "ours", "ours less theirs", "the same, whole curve")
    rows: list[Sequence[str]] = [("task", "decisions", "seeds", *libraries_and_gaps, "CPU s a seed")]
    for task, libraries in found.items():
        if not (libraries["ours"] and libraries["sb3"]):
            continue
        curves = {library: [np.array(points) for points in its.values()] for library, its in libraries.items()}
        last, whole, seconds = (
            {library: [pick(points) for points in its] for library, its in curves.items()}
            for pick in (lambda points: points[-1, 1], lambda points: points[:, 1].mean(), lambda points: points[-1, 2])
        )
        decisions = f"{curves['ours'][0][-1, 0]:,.0f}"
        seeds = " / ".join(str(len(curves[library])) for library in ("sb3", "ours"))
        cost = " / ".join(f"{np.mean(seconds[library]):.0f}" for library in ("sb3", "ours"))
        means = [mean_interval(last[library]) for library in ("sb3", "ours")]
        gaps = [difference_interval(each["ours"], each["sb3"]) for each in (last, whole)]
        measured = [interval(float(mean), float(low), float(high)) for mean, low, high in (*means, *gaps)]
        rows.append((task, decisions, seeds, *measured, cost))
    return markdown(rows)


def draw(found: dict[str, dict[str, Curves]], out: Path) -> None:
    """One panel a task: every seed thin, the mean thick, its interval a band."""
    figure, axes = panels(len(found))
    for axis, (task, libraries) in zip(axes, found.items(), strict=True):
        for number, (library, curves) in enumerate(sorted(libraries.items())):
            if not curves:
                continue
            x = [decisions for decisions, _, _ in next(iter(curves.values()))]
            values = np.array([[value for _, value, _ in points] for points in curves.values()])
            mean, low, high = mean_interval(values)
            axis.plot(x, values.T, color=colour(number), alpha=0.25, linewidth=0.7)
            label = f"{NAMES[library]}, {len(curves)} seeds"
            banded_line(axis, x, mean, low, high, colour(number), banded=len(curves) >= BAND_RUNS, linewidth=2, label=label)
        axis.set(title=task, xlabel="decisions", ylabel="mean return of greedy tests")
        big_numbers(axis.xaxis)
        axis.legend()
    seeds = f"Thin: seeds; thick: their mean; band (from {BAND_RUNS}): its 95 % interval. "
    single = "; the DQN of Stable-Baselines3 is not double" if any("DQN" in task for task in found) else ""
    describe(figure, "", f"{seeds}Equal hyper-parameters and budgets{single}.")
    out.write_bytes(png(figure))


def main() -> None:
    """Prints the table and draws the figure."""
    parser = argparse.ArgumentParser(description="Learning beside Stable-Baselines3: table and figure.")
    parser.add_argument("source", type=Path, nargs="?", default=SHIPPED)
    source = parser.parse_args().source
    found = read(source)
    print(table(found))
    draw(found, source.with_suffix(".png"))


if __name__ == "__main__":
    main()
