"""Reading CSVs of unknown origin: what is no table, too large, or no number where one must be,
is named with file and row.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_bytes
from lightning_rl.core.limits import (
    LARGEST_NUMBER,
    TABLE_BYTES,
    TABLE_CELLS,
    TABLE_COLUMNS,
    shorten,
    shown,
)
from lightning_rl.lab.scalars import print_skipped
from lightning_rl.lab.tables import IDENTITY, runs_beside


def read_csv(path: Path, numbers: Sequence[str] = (), whole_rows: bool = False) -> pd.DataFrame:
    """A CSV; UserError if it is missing, empty or none.

    numbers: columns that have a finite number in every row.
    whole_rows: leave out a last row that does not end, and say so.
    """
    content = read_bytes(path, "CSV", TABLE_BYTES)
    if whole_rows:
        if not content.endswith(b"\n"):
            print_skipped(
                path, "its last row is not whole (what wrote it was killed there); the others count"
            )
        content = content[: content.rfind(b"\n") + 1]
    try:
        table = pd.read_csv(io.StringIO(_text(content), newline=""))
        if not isinstance(table.index, pd.RangeIndex):
            raise ValueError("its rows have more cells than its header")
    except (ValueError, OverflowError, RecursionError) as error:
        raise UserError(
            f"'{path}' cannot be read as a CSV: {shorten(' '.join(str(error).split()), 200)}"
        ) from error
    for name in table.select_dtypes("object"):
        # Whole numbers beyond double precision, which nothing can compute with, are texts.
        table[name] = table[name].map(lambda value: str(value) if type(value) is int else value)
    for name in numbers:
        if name in table:
            table[name] = to_numbers(path, name, table[name])
    return _identified(path, table)


def _identified(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """The curves of a claim with what each seed was, which the CSV of its runs beside it says;
    another table as it is.
    """
    beside = runs_beside(path)
    if "seed" not in table or "gamename" in table or not beside.is_file():
        return table
    runs = read_csv(beside)
    require(runs, ("seed", *IDENTITY))
    about = runs.astype({"seed": str}).drop_duplicates("seed").set_index("seed").fillna("")
    seeds = table["seed"].astype(str)
    missing = seeds[~seeds.isin(about.index)]
    if not missing.empty:
        raise UserError(
            f"'{beside}' has no row of seed {shorten(missing.iloc[0])}; run lightning-rl reproduce "
            f"{path.stem}"
        )
    return table.assign(**{name: seeds.map(about[name]) for name in IDENTITY})


def require(table: pd.DataFrame, columns: Sequence[str], remedy: str = "") -> None:
    """UserError where a table lacks one of the columns. remedy: what to do; without one its
    columns are named.
    """
    if missing := [name for name in columns if name not in table]:
        known = ", ".join(map(str, table))
        raise UserError(
            f"it lacks the column {', '.join(missing)}; {remedy or f'its columns: {known}'}"
        )


def require_cells(
    table: pd.DataFrame, column: str, right: Callable[[Any], bool], expected: str
) -> None:
    """UserError with the first row whose cell is not ``right``. expected: what belongs there."""
    for row, value in enumerate(table[column], 1):
        if not right(value):
            raise UserError(f"row {row}, column {column}: {shown(value)} is not {expected}")


def labelled(names: pd.Series, label: str | None) -> pd.Series:
    """What is drawn by name: ``label`` (of ``CSV:LABEL``) instead of a single name, and before
    each of several.
    """
    if label is None:
        return names.astype(str)
    if names.nunique() == 1:
        return pd.Series(label, names.index)
    return f"{label} " + names.astype(str)


def _text(content: bytes) -> str:
    before, nul, _ = content.partition(b"\0")
    if nul:
        raise ValueError(f"line {len(before.splitlines()) or 1} holds a NUL byte")
    columns = content.partition(b"\n")[0].count(b",") + 1
    if columns > TABLE_COLUMNS:
        raise ValueError(f"it has {columns:,} columns, the limit is {TABLE_COLUMNS:,}")
    cells = (content.count(b"\n") + 1) * columns
    if cells > TABLE_CELLS:
        raise ValueError(f"it has about {cells:,} cells, the limit is {TABLE_CELLS:,}")
    return content.decode()


def to_numbers(path: Path, name: str, column: pd.Series) -> pd.Series:
    """A column as numbers; UserError with its first cell that holds no finite number of a usable
    size.
    """
    values = pd.to_numeric(column, errors="coerce")
    usable = values.abs() <= LARGEST_NUMBER
    if not usable.all():
        place = int(np.argmin(usable))
        row, value = column.index[place] + 1, column.tolist()[place]
        raise UserError(
            f"'{path}', row {row}, column {shorten(name)}: {shown(value)} is not a finite number"
        )
    return values
