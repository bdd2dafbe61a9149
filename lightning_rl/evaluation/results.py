"""A results CSV that grows row by row: a killed evaluation goes on where it stopped."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.files import hold
from lightning_rl.types import UserError


class Results:
    """Rows of plain values in a CSV with these ``columns``; those named in ``key`` together say what a row is about.

    force: a file that is no such table is written anew.
    """

    def __init__(self, path: Path, columns: Sequence[str], key: Sequence[str], file: Any, force: bool = False):
        self.path, self.columns, self.key, self._file = path, tuple(columns), tuple(key), file
        self.rows = self._read(force)
        self._done = {self._key_of(row) for row in self.rows}

    def _read(self, force: bool) -> list[dict[str, str]]:
        """The whole rows that are there; half a row, of a process that was killed, is cut off.

        Nothing is written, nor cut off, before the header, or as much of it as there is, was recognised.
        """
        data, header = self._file.read(), f"{','.join(self.columns)}\n".encode()
        if not (data.startswith(header) or header.startswith(data)):
            if not force:
                found = data.partition(b"\n")[0][:200].decode(errors="replace")
                raise UserError(
                    f"'{self.path}' begins with {found!r}, not with the columns of this evaluation; name another CSV, "
                    "or --force to overwrite it"
                )
            data = b""
        whole = data[: data.rfind(b"\n") + 1]
        rows = self._parsed(whole[len(header) :])
        self._file.truncate(len(whole))
        self._file.seek(0, os.SEEK_END)
        if not whole:
            self._write([self.columns])
        return rows

    def _parsed(self, lines: bytes) -> list[dict[str, str]]:
        try:
            rows = list(csv.reader(io.StringIO(lines.decode()), strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise UserError(f"'{self.path}' is no whole CSV ({error}); name another") from error
        for number, row in enumerate(rows, 2):
            if len(row) != len(self.columns):
                here = f"'{self.path}', row {number}: {len(row)} values in {len(self.columns)} columns"
                raise UserError(f"{here}; mend the row or name another CSV")
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def _key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)

    def has(self, **key: Any) -> bool:
        """Whether there are rows about this."""
        return self._key_of(key) in self._done

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends rows, in one go."""
        plain = [{name: _plain(row[name]) for name in self.columns} for row in rows]
        self._write([tuple(row.values()) for row in plain])
        self.rows += plain
        self._done |= {self._key_of(row) for row in plain}

    def _write(self, rows: Sequence[Sequence[Any]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def _plain(value: Any) -> str:
    """Floats with six significant digits, whole ones as such; lists as numbers with spaces between."""
    if isinstance(value, list | tuple):
        return " ".join(_plain(part) for part in value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


@contextlib.contextmanager
def open_results(path: Path, columns: Sequence[str], key: Sequence[str], force: bool = False) -> Iterator[Results]:
    """The CSV at ``path``, made if need be; UserError if it is another table, or another process writes to it."""
    if path.exists() and not path.is_file():
        raise UserError(f"'{path}' is no plain file; name another CSV")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise UserError(f"cannot write to '{path}': {error.strerror}; name another CSV") from error
    with file:
        hold(file, path, "name another CSV")
        file.seek(0)
        yield Results(path, columns, key, file, force)
