"""Numbers in the prose of a document that are read from a results file, so that they equal it.

A number with a source is followed by a comment, which a page does not show:

* ``246.7<!-- = FILE COLUMN STATISTIC [NAME=VALUE ...] -->``: over the rows of a CSV whose columns
  have these values (``COLUMN:7``: the seventh number of each cell; ``NAME=LOW..HIGH``: above the
  one, and at most the other);
* ``96.2<!-- = CLAIM mean -->``: of a claim of ``results/claims.yaml``; or its ``published``,
  ``low``, ``high``, ``min``, ``max`` or ``seeds``; of an error of obedience its ``floor``, or
  ``error``, ``seed``, ``asked`` or ``obtained`` of the worst command;
* ``13.5<!-- = CLAIM less OTHER mean -->``: of the difference of both means; or an end of its
  interval, ``low`` or ``high``.

``lightning-rl docs FILE`` reads them anew.
"""

from __future__ import annotations

import re
import shlex
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_text
from lightning_rl.core.limits import TABLE_BYTES, shown, unknown
from lightning_rl.lab.tables import csv_rows

MARKED = re.compile(r"(?P<number>-?\d[\d,]*(?:\.\d+)?)(?P<comment><!-- = (?P<source>.*?) -->)")
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": sum,
    "count": len,
}


def with_numbers(text: str) -> str:
    """The text with what its numbers' sources say now, each with the digits after the point that
    it had.
    """

    def replace(match: re.Match[str]) -> str:
        decimals = len(match["number"].partition(".")[2])
        comma = "," if "," in match["number"] else ""
        return f"{value_of(match['source']):z{comma}.{decimals}f}{match['comment']}"

    return MARKED.sub(replace, text)


def matching_rows(path: Path, where: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of a CSV whose columns have these values."""
    rows = csv_rows(read_text(path, "CSV", TABLE_BYTES))
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def value_of(source: str) -> float:
    """The number that a source gives; UserError where there is none."""
    words = shlex.split(source)
    if len(words) == 2 or (len(words) == 4 and words[1] == "less"):
        from experiments.reproduce.entries import difference_of_claims, value_of_claim

        return (
            value_of_claim(*words)
            if len(words) == 2
            else difference_of_claims(words[0], words[2], words[3])
        )
    if len(words) < 3 or words[2] not in STATISTICS:
        raise UserError(
            f"'{source}': write FILE COLUMN STATISTIC [NAME=VALUE ...], of the statistics "
            f"{', '.join(STATISTICS)}"
        )
    path, (column, _, place), statistic, *filters = words[0], words[1].partition(":"), *words[2:]
    rows = _rows(Path(path), dict(each.split("=", 1) for each in filters))
    if not rows or column not in rows[0]:
        raise UserError(
            f"'{source}': '{path}' has no such row"
            if not rows
            else unknown("column", column, list(rows[0]))
        )
    try:
        cells = [row[column].split()[int(place) - 1] if place else row[column] for row in rows]
        return float(STATISTICS[statistic]([float(cell) for cell in cells if cell]))
    except (ValueError, IndexError) as error:
        raise UserError(f"'{source}': {shown(rows[0][column])} is no number") from error


def _rows(path: Path, wanted: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of a CSV whose columns have these values, or lie within them."""
    ranges = {name: value.split("..") for name, value in wanted.items() if ".." in value}
    rows = matching_rows(
        path, {name: value for name, value in wanted.items() if name not in ranges}
    )
    try:
        for name, (low, high) in ranges.items():
            rows = [row for row in rows if float(low) < float(row[name]) <= float(high)]
    except (KeyError, ValueError) as error:
        raise UserError(
            f"'{path}': no range of numbers is {shown(wanted)}; write NAME=LOW..HIGH"
        ) from error
    return rows
