"""Learning curves over environment steps, mean over seeds, beside published ones.

    python -m lightning_rl.figures.curves OUT RUN_DIR... [--tag rollout/return_mean] [--reference CSV:LABEL ...]

writes ``OUT.png`` and ``OUT.csv``: columns ``run, env_steps, value``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no display needed

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.types import UserError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Values ``[n]`` of one run at env_steps ``[n]``."""

    name: str
    env_steps: Floats
    value: Floats


def read_scalar(run_dir: Path, tag: str) -> Curve:
    """A scalar over env_steps from all TensorBoard files of a run; after resuming, the later value of a step counts."""
    points: dict[int, float] = {}
    for version in sorted((run_dir / "logger").glob("version_*"), key=lambda p: int(p.name.split("_")[1])):
        events = EventAccumulator(str(version), size_guidance={"scalars": 0})
        events.Reload()
        if tag in events.Tags()["scalars"]:
            new = {event.step: event.value for event in events.Scalars(tag)}
            first = min(new)
            points = {step: value for step, value in points.items() if step < first} | new
    if not points:
        raise UserError(f"'{run_dir}' has no scalar '{tag}'; give a run directory with a logger/ folder in it")
    steps = sorted(points)
    return Curve(run_dir.name, np.array(steps, dtype=np.float64), np.array([points[s] for s in steps]))


def binned(curve: Curve, width: float, end: float) -> tuple[Floats, Floats]:
    """Means of the values in bins of ``width`` steps up to ``end``, at the bins' upper edges; nan where empty."""
    edges = np.arange(width, end + width / 2, width)
    index = np.minimum(np.ceil(curve.env_steps / width).astype(int) - 1, len(edges))
    index = np.maximum(index, 0)
    total = np.bincount(index, curve.value, len(edges) + 1)[: len(edges)]
    count = np.bincount(index, minlength=len(edges) + 1)[: len(edges)]
    with np.errstate(invalid="ignore"):
        return edges, total / count


def read_reference(source: str) -> tuple[str, Floats, Floats]:
    """``CSV:LABEL`` with columns env_steps and value."""
    path, _, label = source.rpartition(":")
    with Path(path or label).open() as file:
        rows = list(csv.DictReader(file))
    steps, value = ([float(row[key]) for row in rows] for key in ("env_steps", "value"))
    return label if path else Path(label).stem, np.array(steps), np.array(value)


def draw(out: Path, curves: Sequence[Curve], references: Sequence[str], width: float, title: str, ylabel: str) -> Floats:
    """The picture and its CSV; the mean over runs ``[bins]``."""
    end = width * max(1, round(max(curve.env_steps[-1] for curve in curves) / width))
    figure, axes = plt.subplots(figsize=(8, 4.8), dpi=120, layout="constrained")
    rows: list[tuple[str, float, float]] = []
    all_values = []
    for curve in curves:
        steps, value = binned(curve, width, end)
        all_values.append(value)
        rows += [(curve.name, s, v) for s, v in zip(steps, value, strict=True) if np.isfinite(v)]
        axes.plot(steps / 1e6, value, color="tab:blue", alpha=0.35, linewidth=0.8)
    mean = np.mean(all_values, axis=0)  # nan where a run has no data: never a mean over fewer seeds
    rows += [("mean", s, v) for s, v in zip(steps, mean, strict=True) if np.isfinite(v)]
    axes.plot(steps / 1e6, mean, color="tab:blue", linewidth=2.2, label=f"lightning_rl, mean of {len(curves)} seeds")
    for source, colour in zip(references, ("black", "tab:orange", "tab:green", "tab:red"), strict=False):
        label, x, y = read_reference(source)
        inside = x <= end
        axes.plot(x[inside] / 1e6, y[inside], color=colour, linestyle="--", linewidth=1.4, label=label)
        rows += [(label, s, v) for s, v in zip(x[inside], y[inside], strict=True)]
    axes.set(title=title, xlabel="environment steps (millions)", ylabel=ylabel)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out.with_suffix(".png"))
    plt.close(figure)
    with out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("run", "env_steps", "value"))
        writer.writerows((name, int(s), f"{v:.3f}") for name, s, v in rows)
    return mean


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="lightning_rl.figures.curves", description="Learning curves over env steps.")
    parser.add_argument("out", type=Path, help="written as OUT.png and OUT.csv")
    parser.add_argument("run_dirs", type=Path, nargs="+", metavar="RUN_DIR")
    parser.add_argument("--tag", default="rollout/return_mean", help="scalar to plot (default rollout/return_mean)")
    parser.add_argument("--reference", action="append", default=[], metavar="CSV:LABEL", help="published curve; repeatable")
    parser.add_argument("--bin", type=float, default=50_000, metavar="STEPS", help="average over this many steps (50000)")
    parser.add_argument("--title", default="")
    arguments = parser.parse_args(argv)
    try:
        curves = [read_scalar(run_dir, arguments.tag) for run_dir in arguments.run_dirs]
    except UserError as error:
        parser.error(str(error))
    draw(arguments.out, curves, arguments.reference, arguments.bin, arguments.title, f"{arguments.tag} (return)")


if __name__ == "__main__":
    main()
