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
    """Rows of plain values in a CSV with these ``columns``; those named in ``key`` together say what a row is about."""

    def __init__(self, path: Path, columns: Sequence[str], key: Sequence[str], file: Any):
        self.path, self.columns, self.key, self._file = path, tuple(columns), tuple(key), file
        self.rows = self._read()
        self._done = {self._key_of(row) for row in self.rows}

    def _read(self) -> list[dict[str, str]]:
        """The whole rows that are there; half a row, of a process that was killed, is cut off."""
        text = self._file.read().decode()
        whole = text[: text.rfind("\n") + 1]
        self._file.truncate(len(whole.encode()))
        self._file.seek(0, os.SEEK_END)
        if not whole:
            self._write([self.columns])
            return []
        header, *lines = csv.reader(io.StringIO(whole))
        if tuple(header) != self.columns:
            raise UserError(f"'{self.path}' has the columns {','.join(header)}, not those of this evaluation; name another CSV")
        return [dict(zip(self.columns, line, strict=True)) for line in lines]

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
def open_results(path: Path, columns: Sequence[str], key: Sequence[str]) -> Iterator[Results]:
    """The CSV at ``path``, made if need be; UserError if it is another table, or another process writes to it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise UserError(f"cannot write to '{path}': {error.strerror}; name another CSV") from error
    with file:
        hold(file, path, "name another CSV")
        file.seek(0)
        yield Results(path, columns, key, file)
