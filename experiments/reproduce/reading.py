"""What counts is read from what the commands of a seed have left."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.reproduce.claims import Read
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_text
from lightning_rl.core.limits import TABLE_BYTES, shown
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.lab.tables import IDENTITY, csv_rows

_KINDS = ("trained_on", "agent", "protocol")
"""Columns of a table that say what its rows are of; a mean over several kinds means nothing."""

_AGENT = ("gamename", "trained_on", "proxy", "agent", "protocol", "seed", "number")
KEPT_COLUMNS = {
    "means": (*_AGENT, "agents", "every", "returns"),
    "agents": (*_AGENT, "return_mean", "train_steps", "episodes", "test_returns"),
}
"""Of what is kept of a table; ``agents`` says how many of them a row is the mean of."""

MEAN_POINTS = 50  # of a mean curve that are kept, at most
POINTS = 100  # of a curve that are kept, about
FIRST_POINTS = 5  # of its beginning, so that there is something to verify


def read_value(read: Read, runs: Sequence[Path], folder: Path) -> tuple[float, float]:
    """The headline, and beside it the best of the curve, or nan where it has another unit.

    Scalars are those of the first training, as all curves are; reports are beside the last.
    """
    if read.report is not None:
        return _of_report(runs[-1] / read.report, str(read.key)), float("nan")
    if read.tag is not None:
        from lightning_rl.lab.scalars import read_scalar

        curve = read_scalar(runs[0], read.tag)
        values = counted(read, curve.env_steps, curve.value)
        x = np.arange(1.0, len(values) + 1)
    else:
        x, values = _of_table(folder / str(read.table), read)
    comparable = read.in_unit_of_curve and len(values) > 1
    return statistic(read, x, values), float(values.max()) if comparable else float("nan")


def counted(
    read: Read, env_steps: np.ndarray[Any, Any], values: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The values of a scalar that count."""
    if read.every is None:
        return values
    chosen = env_steps % read.every == 0
    return values[chosen] if chosen.any() else values


def statistic(read: Read, x: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> float:
    """One number of a curve; infinite where it never reaches the threshold that is looked for."""
    if read.statistic == "first":
        reached = np.flatnonzero(values >= read.threshold)
        return float(x[reached[0]]) if reached.size else float("inf")
    window = values[-read.last :]
    return float((window >= read.threshold).mean() if read.statistic == "above" else window.mean())


def matching_rows(path: Path, where: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of a CSV whose columns have these values."""
    rows = csv_rows(read_text(path, "CSV", TABLE_BYTES))
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def _of_report(path: Path, key: str) -> float:
    found: Any = json.loads(read_text(path, "report"))
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            raise UserError(f"'{path}' has no '{key}'; mend read.key of the claim")
        found = found[part]
    if not isinstance(found, int | float):
        reason = f"'{key}' is {shown(found)}, no number"
        raise UserError(f"'{path}': {reason}; mend read.key of the claim")
    return float(found)


def read_rows(read: Read, runs: Sequence[Path]) -> list[dict[str, Any]]:
    """Rows of the claim's CSV: those of the last run's report. Without rows no run is asked for."""
    if not read.rows:
        return []
    run = runs[-1]
    path = run / str(read.report)
    rows = json.loads(read_text(path, "report")).get("rows")
    if not rows or not set(read.rows) <= rows[0].keys():
        raise UserError(
            f"'{path}' has no rows of {', '.join(read.rows)}; mend read.rows of the claim"
        )
    return [{name: row[name] for name in read.rows} for row in rows]


def identity(runs: Sequence[Path]) -> dict[str, str]:
    """The columns ``IDENTITY`` of the first training, empty where nothing was trained."""
    about = read_yaml(runs[0] / "config.yaml") if runs else {}
    return {name: about.get(name, "") for name in IDENTITY}


def read_kept(read: Read, folder: Path, seed: int) -> list[dict[str, Any]]:
    """Rows of the table that are kept for figures: its agents, or their mean curve of each kind."""
    if read.keep is None:
        return []
    rows = matching_rows(folder / str(read.table), {})
    return _agents(rows, seed) if read.keep == "agents" else _means(rows, str(read.key), seed)


def _proxy(trained_on: str, seed: int) -> str:
    """Named by its seed: the name of its run directory depends on where it was made."""
    return trained_on if trained_on.startswith("real") else f"seed {seed}"


def _agents(rows: Sequence[Mapping[str, str]], seed: int) -> list[dict[str, Any]]:
    from lightning_rl.envs.proxies import shipped

    kept = []
    for row in rows:
        name = row["proxy"]
        if name not in shipped():
            name = _proxy(row["trained_on"], seed)
        kept.append({**row, "proxy": name, "seed": seed})
    return kept


def _means(rows: Sequence[Mapping[str, str]], key: str, seed: int) -> list[dict[str, Any]]:
    """Thinned, in the order in which the table has the kinds."""
    names = ("gamename", *_KINDS, "every")
    kinds: dict[tuple[str, ...], list[list[float]]] = {}
    for row in rows:
        kind = tuple(row[name] for name in names)
        kinds.setdefault(kind, []).append([float(number) for number in row[key].split()])
    kept = []
    for kind, curves in kinds.items():
        about: dict[str, Any] = dict(zip(names, kind, strict=True))
        mean = np.array(curves).mean(axis=0)
        step = math.ceil(len(mean) / MEAN_POINTS)
        found = {
            "proxy": _proxy(about["trained_on"], seed),
            "seed": seed,
            "number": seed,
            "agents": len(curves),
            "every": int(about["every"]) * step,
            "returns": " ".join(f"{value:.4g}" for value in mean[step - 1 :: step]),
        }
        kept.append(about | found)
    return kept


def _of_table(path: Path, read: Read) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(environment steps, values): the mean over the rows that count, of a number or of a curve."""
    rows = matching_rows(path, read.where)
    if not rows or read.key not in rows[0]:
        raise UserError(
            f"'{path}' has no row with a column '{read.key}' where {dict(read.where)}; mend read "
            "of the claim"
        )
    for column in _KINDS:
        if len(kinds := {row.get(column) for row in rows}) > 1:
            found = ", ".join(f"'{kind}'" for kind in sorted(map(str, kinds)))
            raise UserError(
                f"'{path}': rows of {column} {found} count; say in read.where of the claim which"
            )
    curves = [[float(number) for number in row[read.key].split()] for row in rows]
    values = np.array(curves).mean(axis=0)
    return np.arange(1.0, len(values) + 1) * float(rows[0].get("every", 1)), values


def read_curve(tags: Sequence[str], run: Path, last: int = 1) -> list[dict[str, Any]]:
    """Rows of the claim's CSV: the first scalar, thinned but exact, and the others at its steps.

    last: how many rows at the end are all kept, as the claim's value is the mean of these.
    """
    from lightning_rl.lab.scalars import read_scalar

    curves = [read_scalar(run, tag) for tag in tags]
    by_step = {}
    for tag, curve in zip(tags, curves, strict=True):
        by_step[tag] = dict(zip(curve.env_steps.tolist(), curve.value.tolist(), strict=True))
    steps = curves[0].env_steps.tolist()
    every = math.ceil(len(steps) / POINTS)
    kept = {*range(min(FIRST_POINTS, len(steps))), *range(every - 1, len(steps), every)}
    kept |= {*range(max(0, len(steps) - last), len(steps))}
    rows = []
    for step in (steps[k] for k in sorted(kept)):
        values = {tag: curve.get(step, float("nan")) for tag, curve in by_step.items()}
        rows.append({"env_steps": int(step), **values})
    return rows
