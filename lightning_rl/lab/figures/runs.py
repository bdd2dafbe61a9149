"""What lies on disk as data: run directories and results CSVs, read into one tidy table of scalars.

A run that cannot be read is named with the reason and left out; it never hides the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lightning_rl.core.contents import (
    NOTHING,
    PLAIN_DICT,
    MismatchError,
    check,
    count,
    either,
    maybe,
    text,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import LARGEST_NUMBER, NAME_BYTES, SEED, did_you_mean, is_text
from lightning_rl.core.lines import say
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.lab.figures import csv_files
from lightning_rl.lab.figures.registry import AXES
from lightning_rl.lab.scalars import (
    Curve,
    Floats,
    Skip,
    attempt,
    natural_order,
    print_skipped,
    read_scalar,
    reason_alone,
    scalar_names,
)

IDENTITY = ("gamename", "exp_name", "implementation", "seed")
_NAME = either(NOTHING, either(count(0, SEED), text(NAME_BYTES)))
_NAMED = dict.fromkeys((*IDENTITY, "preset"), maybe(_NAME))
BUDGET = (
    "max_epochs",
    "max_env_steps",
    "max_episodes",
    "eval_interval",
    "eval_episodes",
    "checkpoint_interval",
    "chunk_size",
)
"""Keys that say how long a run is and how often it is evaluated or saved, not what is trained."""

_COLUMNS = {
    "gamename": "gamename",
    "exp_name": "exp_name",
    "method": "implementation",
    "group": "implementation",
    "implementation": "implementation",
    "run": "seed",
    "seed": "seed",
}
"""What columns of a results CSV say; the later of two that say the same counts."""

AGGREGATES = ("mean", "iqm", "low", "high", "reference")
"""``run`` of those rows of a figure's CSV that are no single run."""


COUNTED_BY = {"episodes": "time/episodes", "updates": "time/num_updates"}
"""The scalar that counts an axis, where not every event carries it."""

SPEED = "time/env_steps_per_second"
"""Has a value after every epoch; 0 where it took no steps of an environment, and is logged over
what it did instead.
"""


@dataclass(frozen=True)
class Run:
    """A run directory. about: gamename, exp_name, implementation, seed, preset and every key of
    its config.
    """

    path: Path
    about: Mapping[str, Any]

    def key(self, name: str) -> Any:
        if name not in self.about:
            raise UserError(
                f"'{self.path}' has no key '{name}' in its config.yaml; "
                f"{did_you_mean(name, self.about, 'it has')}"
            )
        return self.about[name]


def open_run(path: Path) -> Run:
    """The run at ``path``; UserError if there is none, or its config.yaml is damaged."""
    if not is_run(path):
        raise UserError(
            f"'{path}' is no run directory: it has neither a config.yaml nor a logger/ folder; "
            "name a seed_N folder"
        )
    if not is_text(str(path)):
        raise UserError("its path holds bytes that are no text; rename the folder")
    parts = ("", "", "", *path.resolve().parts)[-4:]
    about: dict[str, Any] = dict(zip(IDENTITY, parts, strict=True))
    if seed := re.fullmatch(r"seed_(\d+)", parts[3]):
        about["seed"] = int(seed[1])
    config = path / "config.yaml"
    if config.is_file():
        try:
            content = read_yaml(config)
            check({"config.yaml": content}, {"config.yaml": PLAIN_DICT})
            named = {key: content[key] for key in _NAMED if key in content}
            check({**named, "config": content.get("config")}, {**_NAMED, "config": PLAIN_DICT})
        except MismatchError as error:
            raise UserError(f"'{config}' is damaged ({error})") from error
        about |= named | content["config"]
    return Run(path, about)


def is_run(path: Path) -> bool:
    """Whether a folder is that of a run."""
    return (path / "config.yaml").is_file() or (path / "logger").is_dir()


def find_runs(sources: Sequence[Path], skip: Skip = print_skipped) -> list[Run]:
    """All runs at or below the folders, in the order of their names; UserError where none is, or a
    folder is not there.

    The trials of a search are found in its own folder, ``tune``, and left out of those above it.
    """
    found = []
    empty = []
    for source in sources:
        if not source.exists():
            raise UserError(
                f"'{source}' does not exist; give a run directory, or a folder above some"
            )
        paths = list(_run_folders(source))
        if not paths:
            empty.append(source)
        for path in paths:
            found += attempt(path, open_run, path, skip=skip)
    if not found:
        raise UserError(
            f"no run at or below {', '.join(map(str, sources))}; name a folder above some, e.g. "
            "exp_dir"
        )
    for source in empty:
        skip(source, "there is no run at or below it")
    return found


def _run_folders(source: Path) -> Iterator[Path]:
    for folder, below, _ in os.walk(source):
        below.sort(key=natural_order)
        if (Path(folder) / "tune" / "search.yaml").is_file():
            below.remove("tune")
        if is_run(Path(folder)):
            below.clear()
            yield Path(folder)


def on_axis(run_dir: Path, curve: Curve, axis: str) -> Floats:
    """Where the values of ``curve`` lie on another axis; UserError if the run does not count it."""
    if axis == "wall_time":
        return curve.seconds / 3600
    if axis not in COUNTED_BY:
        return curve.env_steps
    counted = read_scalar(run_dir, COUNTED_BY[axis])
    return np.asarray(np.interp(curve.env_steps, counted.env_steps, counted.value))


def unit_of(run_dir: Path, axis: str) -> str:
    """What an axis counts in a run: the updates of a search are its generations, and what takes
    no steps counts these instead.
    """
    names = scalar_names(run_dir)
    search = "es/fitness_mean" in names
    updates = "generations" if search else AXES["updates"]
    if axis == "updates":
        return updates
    if axis == "env_steps" and SPEED in names:
        without_steps = read_scalar(run_dir, SPEED).value == 0
        if without_steps.all():
            return updates
        if search and without_steps.any():
            return f"{updates}, then {AXES[axis]}"
    return AXES[axis]


def read_table(
    sources: Sequence[str],
    tag: str,
    axis: str = "env_steps",
    keys: Sequence[str] = (),
    skip: Skip = print_skipped,
) -> pd.DataFrame:
    """The values of a scalar, of all runs in the sources (see ``read_sources``); axis: what they
    are over, one of ``AXES``.

    One row per value: gamename, exp_name, implementation, seed, ``keys`` of the configs, run,
    config (its text), ``axis``, its unit, value.
    """
    table = read_sources(
        sources,
        lambda path, label: read_results(path, label, tag, axis),
        lambda run: _run_table(run, tag, axis, keys),
        f"none of {', '.join(sources)} holds values of '{tag}'",
        keys,
        skip,
    )
    return table.astype({"seed": str, axis: float, "value": float})


def read_sources(
    sources: Iterable[str],
    read_csv: Callable[[Path, str | None], pd.DataFrame],
    read_run: Callable[[Run], pd.DataFrame] | None,
    nothing: str,
    keys: Sequence[str] = (),
    skip: Skip = print_skipped,
) -> pd.DataFrame:
    """One table of all sources: CSVs (``CSV:LABEL``), run directories, and folders above them.

    What cannot be read is named and left out; where nothing is left, a UserError says ``nothing``.
    read_csv: the table of a path and its label; read_run: that of a run directory, None where every
    source is a CSV; keys: of ``--group``, which runs have.
    """
    tables, missing = [], []
    left_out: list[tuple[Path, str]] = []

    def leave_out(path: Path, reason: str) -> None:
        left_out.append((path, reason))

    known: dict[str, Any] = {}
    for source in sources:
        path, label = split_label(source)
        if read_run is None or path.suffix == ".csv":
            tables += attempt(path, read_csv, path, label, skip=leave_out)
            continue
        if not path.exists():
            missing.append(path)
            continue
        for runs in attempt(path, find_runs, [path], leave_out, skip=leave_out):
            for run in runs:
                tables += attempt(run.path, read_run, run, skip=leave_out)
                known |= run.about
    if missing and not tables:
        raise UserError(
            f"'{missing[0]}' does not exist; give a run directory, a folder above some, or a CSV"
        )
    if known and not tables:
        for key in keys:
            require_key(key, known)
    reasons = {reason_alone(path, reason) for path, reason in left_out}
    if not tables and len(left_out) > len(reasons) == 1:  # of many runs the same
        more = f"'{left_out[0][0]}' and {len(left_out) - 1} more"
        raise UserError(f"nothing to draw: {more}: {reasons.pop()}")
    for path, reason in left_out:
        skip(path, reason)
    for path in missing:
        skip(path, "it does not exist")
    if not tables:
        raise UserError(f"nothing to draw: {nothing}")
    return pd.concat(tables, ignore_index=True)


def require_key(key: str, known: Collection[str]) -> None:
    """UserError for a key of ``--group`` that no source has."""
    if key not in known:
        raise UserError(
            f"--group {key}: no source has that key; {did_you_mean(key, known, 'they have')}"
        )


def _run_table(run: Run, tag: str, axis: str, keys: Sequence[str]) -> pd.DataFrame:
    curve = read_scalar(run.path, tag)
    columns: dict[str, Any] = {name: str(run.key(name)) for name in (*IDENTITY, *keys)}
    not_trained = (*IDENTITY, "preset", *BUDGET)
    config = {key: value for key, value in run.about.items() if key not in not_trained}
    columns |= {"run": str(run.path), "config": str(config), "unit": unit_of(run.path, axis)}
    columns |= {axis: on_axis(run.path, curve, axis), "value": curve.value}
    return pd.DataFrame(columns)


def split_label(source: str) -> tuple[Path, str | None]:
    """``PATH`` or ``PATH.csv:LABEL``."""
    match = re.fullmatch(r"(.+\.csv):(.+)", source)
    return (Path(match[1]), match[2]) if match else (Path(source), None)


def read_results(path: Path, label: str | None, tag: str, axis: str) -> pd.DataFrame:
    """The single runs in a results CSV, one that a figure has written or any with columns ``axis``
    and ``value``.

    The method is in ``implementation``, ``group`` or ``method``, or the file's name, and
    ``label`` in its place, or before each of several; the value may
    be in a column called ``tag``. What a figure of curves has written says which ``scalar`` it is.
    """
    table = csv_files.read_csv(path, whole_rows=True)
    if {"run", "group"} <= set(table):  # of a figure, with rows of means and published curves
        table = table[~table["run"].isin(AGGREGATES)]
    text = table.fillna("").astype(str)
    if "scalar" in table and (others := set(text["scalar"]) - {tag}):
        held = min(others)
        raise UserError(f"it holds values of {held}, not of '{tag}'; give --tag {held}")
    runs = pd.DataFrame({"gamename": "", "exp_name": "", "seed": "0"}, index=table.index)
    runs["implementation"] = path.stem
    for column, name in _COLUMNS.items():
        if column in table:
            runs[name] = text[column]
    runs["seed"] = runs["seed"].str.removeprefix("seed_")
    runs[axis] = _number_column(path, table, (axis, axis.removesuffix("s")))
    runs["value"] = _number_column(path, table, ("value", tag, tag.rpartition("/")[2]))
    runs = runs.dropna(subset=[axis, "value"])
    if runs.empty:
        raise UserError("it has no row of a single run with finite numbers; name another CSV")
    run = f"{path}"
    for name in ("implementation", "gamename", "exp_name", "seed"):
        run += ":" + runs[name]
    runs["implementation"] = csv_files.labelled(runs["implementation"], label)
    return runs.assign(run=run, unit=AXES[axis])


def _number_column(path: Path, table: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """The first of the columns that is there; UserError where none is.

    A cell is nan where it is empty and, which is said, where it is no usable number.
    """
    present = [name for name in names if name in table]
    if not present:
        columns = did_you_mean(names[-1], map(str, table.columns), "its columns")
        raise UserError(
            f"it lacks a column {' or '.join(map(repr, dict.fromkeys(names)))}; {columns}"
        )
    given = table[present[0]]
    numbers = pd.to_numeric(given, errors="coerce")
    numbers = numbers.where(numbers.abs() <= LARGEST_NUMBER)
    bad = table.index[given.notna() & numbers.isna()]
    if len(bad):
        print_skipped(
            path,
            f"{len(bad)} rows, the first is row {bad[0] + 1}, have no finite number there; the "
            "others count",
        )
    return numbers


def require_one_run_per_seed(table: pd.DataFrame) -> None:
    """UserError where a group holds two runs of one seed: a mean over them would not be one over
    seeds.

    A line where the runs of a group differ in more than their seed.
    """
    groups = ["gamename", "group"]
    runs = table.drop_duplicates("run")
    for _, same in runs.groupby([*groups, "seed"], sort=False)["run"]:
        if len(same) > 1:
            raise UserError(
                f"'{same.iloc[0]}' and '{same.iloc[1]}' are of one seed and one group; tell them "
                "apart with --group exp_name (or a config key)"
            )
    if "config" not in runs:
        return
    for names, configs in runs.groupby(groups, sort=False)["config"]:
        if configs.nunique() > 1:
            where = ", ".join(str(name) for name in names if name)
            say(
                f"note: the runs of {where} differ in their configs; --group KEY tells them apart",
                error=True,
            )
