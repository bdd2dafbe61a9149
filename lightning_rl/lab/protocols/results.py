"""A results CSV that grows row by row: a killed evaluation goes on where it stopped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import Appended, appending
from lightning_rl.core.limits import LARGEST_NUMBER, shown
from lightning_rl.core.lines import say
from lightning_rl.core.outputs import refuse_run_file
from lightning_rl.functional.statistics import summarise
from lightning_rl.lab.protocols.models import REAL
from lightning_rl.lab.tables import csv_lines, plain_number

_SUMMARISED = ("return_mean", "train_steps", "fitness_mean", "cpu_seconds")
"""Columns with a number in every row, of which a summary is printed."""


_MEND = "mend the row or name another CSV"


class Results:
    """Rows of plain values in a CSV with these ``columns``; those named in ``key`` together say
    what a row is about.

    Rows about one thing are added in one go. Where a killed process left part of a row, the rows
    above it about one thing go,
    too, as they may be the begin of what it wrote: a thing is done once more rather than never
    whole.
    """

    def __init__(self, file: Appended, columns: Sequence[str], key: Sequence[str]):
        self.columns, self.key, self._file = tuple(columns), tuple(key), file
        self.rows = self._parsed(file.lines)
        left_out = self._leave_out_last() if file.begun and self.rows else ""
        self._done = {self._key_of(row) for row in self.rows}
        file.append("", instead_of=left_out)  # the header, and nothing of a row that was begun

    def _parsed(self, lines: str) -> list[dict[str, str]]:
        try:
            rows = list(csv.reader(io.StringIO(lines), strict=True))
        except csv.Error as error:
            raise UserError(
                f"'{self._file.path}' is no whole CSV ({error}); name another"
            ) from error
        for number, row in enumerate(rows, 2):
            if len(row) != len(self.columns):
                raise UserError(
                    f"'{self._file.path}', row {number}: {len(row)} values in {len(self.columns)} "
                    f"columns; {_MEND}"
                )
            for name, value in zip(self.columns, row, strict=True):
                if name in _SUMMARISED and not _finite(value):
                    raise UserError(
                        f"'{self._file.path}', row {number}, column {name}: {shown(value)} is not "
                        f"a finite number; {_MEND}"
                    )
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def _leave_out_last(self) -> str:
        rows = list(self.rows)
        while rows and self._key_of(rows[-1]) == self._key_of(self.rows[-1]):
            rows.pop()
        kept = csv_lines(list(row.values()) for row in rows)
        if not self._file.lines.startswith(kept):  # another program wrote it
            return ""
        self.rows = rows
        return self._file.lines.removeprefix(kept)

    def _key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)

    def has(self, **key: Any) -> bool:
        """Whether there are rows about this."""
        return self._key_of(key) in self._done

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends rows, in one go."""
        plain = [{name: _plain(row[name]) for name in self.columns} for row in rows]
        self._file.append(csv_lines(list(row.values()) for row in plain))
        self.rows += plain
        self._done |= {self._key_of(row) for row in plain}


def _finite(text: str) -> bool:
    """Whether a cell holds a finite number of a usable size."""
    try:
        return abs(float(text)) <= LARGEST_NUMBER
    except ValueError:
        return False


def _plain(value: Any) -> str:
    """Floats with six significant digits; lists as numbers with spaces between."""
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value))
    return str(plain_number(value))


def print_summary(rows: Sequence[Mapping[str, str]], values: Sequence[str]) -> None:
    """One line per agent, protocol and kind of proxy: mean, standard deviation and median of
    ``values`` over its rows.
    """
    table = pd.DataFrame(rows)
    table[list(values)] = table[list(values)].astype(float)
    kinds = table.groupby(["agent", "protocol", "trained_on"], sort=False)
    for (agent, protocol, trained_on), group in kinds:
        parts = []
        for name in values:
            found = summarise(group[name])
            parts.append("{} {mean:,.1f} +- {sd:,.1f} (median {median:,.1f})".format(name, **found))
        proxies = 0 if trained_on.startswith(REAL) else group["proxy_hash"].nunique()
        where = f" on {proxies} {'proxies' if proxies > 1 else 'proxy'}" if proxies else ""
        say(f"{agent} | {protocol} | {trained_on}: {', '.join(parts)}; {len(group)} agents{where}")


@contextmanager
def open_results(
    path: Path, columns: Sequence[str], key: Sequence[str], force: bool = False
) -> Iterator[Results]:
    """The CSV at ``path``, made if need be; UserError if it is another table, or another process
    writes to it.

    force: a file that is no such table is written anew.
    """
    refuse_run_file(path, "name another CSV")
    with appending(
        path, ",".join(columns), "name another CSV, or --force to overwrite it", force
    ) as file:
        yield Results(file, columns, key)
