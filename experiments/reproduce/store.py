"""The CSVs of a claim: its curves, and a row for each seed with its value and where it was run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from experiments.reproduce.claims import Claim, seed_list
from experiments.reproduce.reading import KEPT_COLUMNS
from experiments.reproduce.runs import Outcome, shown_command
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import make_folder, read_text, write_text
from lightning_rl.core.limits import TABLE_BYTES, shown
from lightning_rl.lab.tables import IDENTITY, csv_of, csv_rows, runs_beside

RUN_COLUMNS = (
    "seed",
    *IDENTITY,
    "value",
    "best",
    "cpu_hours",
    "commit",
    "config_hash",
    "machine",
    "versions",
    "read",
    "command",
)
Row = Mapping[str, str]


def runs_path(root: Path, claim: Claim) -> Path:
    """The CSV with a row for each seed."""
    return runs_beside(root / claim.csv)


def kept_path(root: Path, claim: Claim) -> Path | None:
    """The CSV of agents or of mean curves, of claims that keep them."""
    return (root / claim.csv).with_suffix(f".{claim.read.keep}.csv") if claim.read.keep else None


def read_runs(root: Path, claim: Claim) -> list[Row]:
    """The rows of the seeds, in order, that are measured as the claim says now."""
    by_seed = {row["seed"]: row for row in _read(runs_path(root, claim), RUN_COLUMNS)}
    if claim.columns and claim.curves_csv is None:  # no curves of another claim
        by_seed = _only(by_seed, read_curves(root, claim))
    if claim.read.keep is not None:
        by_seed = _only(by_seed, read_kept_rows(root, claim))
    measured = []
    for seed in map(str, seed_list(claim.seeds)):
        if seed not in by_seed:
            continue
        row = by_seed[seed]
        number(row, "value", runs_path(root, claim))
        if (row["command"], row["read"]) == (shown_command(claim, seed), claim.read.text):
            measured.append(row)
    return measured


def _only(by_seed: Mapping[str, Row], stored: Sequence[Row]) -> dict[str, Row]:
    """The seeds that another file has as well: a file that was removed is made again."""
    seeds = {row["seed"] for row in stored}
    return {seed: row for seed, row in by_seed.items() if seed in seeds}


def read_curves(root: Path, claim: Claim) -> list[Row]:
    """The rows of the claim's curves."""
    return _read(root / claim.curves_file, claim.columns)


def read_kept_rows(root: Path, claim: Claim) -> list[Row]:
    """The rows of the agents or of the mean curves, of a claim that keeps them."""
    path = kept_path(root, claim)
    return [] if path is None else _read(path, KEPT_COLUMNS[str(claim.read.keep)])


def add(root: Path, outcome: Outcome) -> None:
    """Puts a seed into the CSVs of its claim, also while another process does so."""
    claim = outcome.job.claim
    path = root / claim.curves_file
    make_folder(path.parent)
    with FileLock(path.parent / ".lock"):
        there = {row["seed"] for row in read_curves(root, claim)} if claim.curves_csv else ()
        if claim.columns and str(outcome.job.seed) not in there:  # another claim's stay as they are
            _replace(path, claim.columns, outcome.job.seed, outcome.curve)
        if (beside := kept_path(root, claim)) is not None:
            _replace(beside, KEPT_COLUMNS[str(claim.read.keep)], outcome.job.seed, outcome.kept)
        _replace(runs_path(root, claim), RUN_COLUMNS, outcome.job.seed, [outcome.about])


def number(row: Row, column: str, path: Path) -> float:
    """A number of a row; nan of an empty cell."""
    try:
        return float(row[column] or "nan")
    except ValueError as error:
        where = f"'{path}', seed {row['seed']}"
        raise UserError(
            f"{where}: {column} is {shown(row[column])}, no number; mend or remove the file"
        ) from error


def _read(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a CSV, none where it is not there; UserError where it has other columns."""
    if not path.exists():
        return []
    reader = csv_rows(read_text(path, "CSV", TABLE_BYTES))
    rows: list[Row] = list(reader)
    if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
        raise UserError(
            f"'{path}' lacks the column '{missing[0]}'; remove the file, and its runs are made "
            "again"
        )
    if any(None in row.values() for row in rows):
        raise UserError(
            f"'{path}' has a row that is not whole; remove the file, and its runs are made again"
        )
    return rows


def _replace(
    path: Path, columns: Sequence[str], seed: int, new: Sequence[Mapping[str, Any]]
) -> None:
    """Writes the file with ``new`` in place of the rows of the seed."""
    rows = [row for row in _read(path, columns) if row["seed"] != str(seed)]
    for row in new:
        cells = {"seed": seed, **row}
        rows.append({name: shortest(cells[name]) for name in columns})
    rows.sort(key=lambda row: int(row["seed"]))
    write_text(path, csv_of(columns, rows))


def kept(value: float) -> float:
    """A number of a curve as it is read back."""
    return float(shortest(value) or "nan")


def shortest(value: Any) -> str:
    """Numbers of curves are 32 bits wide: as short as gives all of them back. Nothing for nan."""
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else str(np.float32(value))
