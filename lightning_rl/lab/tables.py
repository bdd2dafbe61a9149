"""Tables for people: on the terminal, as Markdown for a README, and as CSVs."""

from __future__ import annotations

import csv
import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

from rich import box
from rich.table import Table

from lightning_rl.core.console import put, terminal_width
from lightning_rl.core.files import read_text
from lightning_rl.core.limits import TABLE_BYTES, escaped
from lightning_rl.core.outputs import File, Out, owned_table

if TYPE_CHECKING:
    import pandas as pd

Rows = list[Sequence[str]]
"""Header and rows of a table for people."""

IDENTITY = ("gamename", "implementation")
"""What the curves of a claim are of: columns of the CSV of its runs, as they are the same in
every row of a curve.
"""


def runs_beside(path: Path) -> Path:
    """The CSV of a claim's runs, a row for each seed, beside that of its curves."""
    return path.with_suffix(".runs.csv")


def csv_rows(text: str) -> csv.DictReader[str]:
    """The rows of a CSV by column, as text; what a row has too much is under None, what it lacks
    is None.
    """
    return csv.DictReader(io.StringIO(text, newline=""))


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV; none where it is not there."""
    return list(csv_rows(read_text(path, "CSV", TABLE_BYTES))) if path.exists() else []


def csv_of(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A CSV with these columns of the rows."""
    return csv_lines([columns, *([row[name] for name in columns] for row in rows)])


def csv_lines(rows: Iterable[Sequence[object]]) -> str:
    """Rows as lines of a CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def interval(
    value: SupportsFloat, low: SupportsFloat, high: SupportsFloat, form: str = ".1f"
) -> str:
    """A mean and its interval; alone for a single value; ``all alike`` for equal ones, which
    have no width of an interval.
    """
    mean = f"{float(value):{form}}"
    if math.isnan(low):
        return mean
    if low == high:
        return f"{mean} (all alike)"
    return f"{mean} [{float(low):{form}}, {float(high):{form}}]"


def counted(counts: Iterable[int], what: str = "seed") -> str:
    """``5 seeds``, ``1 seed`` or ``3 - 5 seeds``."""
    counts = list(counts)
    low, high = min(counts), max(counts)
    if low < high:
        return f"{low} - {high} {what}s"
    return f"{low} {what}" if low == 1 else f"{low} {what}s"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Header and rows as a Markdown table."""
    every = (rows[0], ["---"] * len(rows[0]), *rows[1:])
    return "\n".join("| " + " | ".join(map(escaped, row)) + " |" for row in every)


def is_number(text: str) -> bool:
    """Whether a cell is to be aligned as a number: it begins with one."""
    return text.lstrip("-")[:1].isdigit()


def put_rows(
    rows: Sequence[Sequence[str]],
    title: str = "",
    caption: str | None = None,
    styles: Sequence[str | None] = (),
    end: str = "",
) -> None:
    """Prints header and rows as a table, columns of numbers to the right; no word is cut: where
    they do not fit beside each other, the rows stand below each other.

    styles: of the rows, e.g. ``red``; None: plain. end: a line below the table and its caption.
    """
    columns = [[escaped(cell) for cell in column] for column in zip(*rows, strict=True)]
    most = terminal_width()
    widths = _widths(columns, most)
    if widths is None:
        lines = [title, *_one_below_another(rows, most or 0), caption or ""]
        put(*filter(None, lines), *end.splitlines())
        return
    table = Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for (heading, *cells), width in zip(columns, widths, strict=True):
        right = any(cells) and all(is_number(cell) for cell in cells if cell)
        table.add_column(heading, justify="right" if right else "left", width=width)
    for row, style in itertools.zip_longest(rows[1:], styles):
        table.add_row(*row, style=style)
    put(table, *end.splitlines())


_GAP = 2  # characters between two columns of a table


def _widths(columns: Sequence[Sequence[str]], most: int | None) -> list[int] | None:
    """The widths of a table's columns, which are broken between words, the widest first, until
    all fit into ``most``; None where they do not.
    """
    widths = [max(map(len, column)) for column in columns]
    words = [[word for cell in column for word in cell.split()] for column in columns]
    narrowest = [max(map(len, each), default=0) for each in words]
    if most is None:
        return widths
    room = most - _GAP * (len(columns) - 1)
    while sum(widths) > room:
        wide = [k for k, width in enumerate(widths) if width > narrowest[k]]
        if not wide:
            return None
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _one_below_another(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Each row as its first cell, and below it the others with their headings."""
    headings, *rest = rows
    lines = []
    for first, *cells in rest:
        named = zip(headings[1:], cells, strict=True)
        facts = " · ".join(f"{heading} {cell}".strip() for heading, cell in named if cell)
        wrapped = textwrap.wrap(facts, width - 2, break_long_words=False, break_on_hyphens=False)
        lines += [first, *(f"  {line}" for line in wrapped)]
    return lines


def csv_text(table: pd.DataFrame) -> bytes:
    """A CSV: numbers with six significant digits, whole ones as such."""
    return str(table.map(plain_number).to_csv(index=False, lineterminator="\n")).encode()


def plain_number(value: Any) -> Any:
    """A float with six significant digits, a whole one as such, nan as nothing; anything else as
    it is.
    """
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def save_table(out: Out, table: pd.DataFrame, name: str) -> Path:
    """Writes a table as OUT-name.csv, beside a figure of the same OUT, or as OUT where that ends
    in .csv; the path.
    """
    path = out.path
    if path.suffix != ".csv":
        path = path.with_name(f"{path.name}-{name}.csv")
    out.write(File(path, csv_text(table), owned_table(table.columns)))
    return path
