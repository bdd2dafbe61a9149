"""``lightning-rl docs FILE...``: what documents say of results is read from the results anew.

Below a line ``<!-- made by: lightning-rl ... -->`` is what that command prints, up to the next
blank line; below ``<!-- caption of: FILE.png -->`` the caption of a picture that was drawn with
``--no-caption``. A single number is followed by a comment, which a page does not show, with its
source:

* ``246.7<!-- = FILE COLUMN STATISTIC [NAME=VALUE ...] -->``: over the rows of a CSV whose columns
  have these values (``COLUMN:7``: the seventh number of each cell; ``NAME=LOW..HIGH``: above the
  one, and at most the other);
* ``96.2<!-- = CLAIM mean -->``: of a claim of ``results/claims.yaml``; or its ``published``,
  ``low``, ``high``, ``min``, ``max`` or ``seeds``; of an error of obedience its ``floor``, or
  ``error``, ``seed``, ``asked`` or ``obtained`` of the worst command;
* ``13.5<!-- = CLAIM less OTHER mean -->``: of the difference of both means; or an end of its
  interval, ``low`` or ``high``.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import statistics
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PIL import Image

from experiments.reproduce.entries import difference_of_claims, value_of_claim
from experiments.reproduce.reading import matching_rows
from lightning_rl.cli.tools import use
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_text, write_text
from lightning_rl.core.limits import shown, unknown
from lightning_rl.core.lines import say
from lightning_rl.core.modules import from_file
from lightning_rl.functional.intervals import mean_interval

BLOCK = re.compile(r"^(<!-- made by: lightning-rl (?P<words>.*?) -->\n)(?:.+\n)*", re.MULTILINE)
CAPTION = re.compile(r"^(<!-- caption of: (?P<path>.*?) -->\n)(?:.+\n)*", re.MULTILINE)
MARKED = re.compile(r"(?P<number>-?\d[\d,]*(?:\.\d+)?)(?P<comment><!-- = (?P<source>.*?) -->)")


def low(values: Sequence[float]) -> float:
    """The lower end of the 95 % interval of the mean."""
    return float(mean_interval(values)[1])


def high(values: Sequence[float]) -> float:
    """Its upper end."""
    return float(mean_interval(values)[2])


STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "low": low,
    "high": high,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": sum,
    "count": len,
}


def refresh(given: Namespace) -> None:
    """Writes the files anew where a command prints something else by now."""
    for path in given.files:
        before = read_text(path, "Markdown file")
        after = refreshed(before, use)
        if after == before:
            say(f"up to date: {path}")
        else:
            write_text(path, after)
            say(f"refreshed: {path}")


def refreshed(text: str, run: Callable[[Sequence[str]], None]) -> str:
    """The text with what its commands print, and what its pictures and its numbers' sources say
    now.
    """

    def replace(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), from_file():
            run(shlex.split(match["words"]))
        return match[1] + printed.getvalue().strip() + "\n"

    return with_captions(with_numbers(BLOCK.sub(replace, text)))


def with_captions(text: str) -> str:
    """The text with what its pictures say now."""
    return CAPTION.sub(lambda match: f"{match[1]}*{caption_of(match['path'])}*\n", text)


def caption_of(path: str) -> str:
    """What a PNG of ours says of itself; UserError where it says nothing."""
    with Image.open(path) as picture:
        text = picture.info.get("Description")
    if text is None:
        raise UserError(f"'{path}' has its caption in the picture; draw it with --no-caption")
    return str(text)


def with_numbers(text: str) -> str:
    """The text with what its numbers' sources say now, with as many decimals as before."""

    def replace(match: re.Match[str]) -> str:
        decimals = len(match["number"].partition(".")[2])
        comma = "," if "," in match["number"] else ""
        return f"{value_of(match['source']):z{comma}.{decimals}f}{match['comment']}"

    return MARKED.sub(replace, text)


def value_of(source: str) -> float:
    """The number that a source gives; UserError where there is none."""
    words = shlex.split(source)
    if len(words) == 2:
        return value_of_claim(*words)
    if len(words) == 4 and words[1] == "less":
        return difference_of_claims(words[0], words[2], words[3])
    if len(words) < 3 or words[2] not in STATISTICS:
        raise UserError(
            f"'{source}': write FILE COLUMN STATISTIC [NAME=VALUE ...], of the statistics "
            f"{', '.join(STATISTICS)}"
        )
    path, cell, statistic, *filters = words
    column, _, place = cell.partition(":")
    rows = _rows(Path(path), dict(each.split("=", 1) for each in filters))
    if not rows:
        raise UserError(f"'{source}': '{path}' has no such row")
    if column not in rows[0]:
        raise UserError(f"'{source}': {unknown('column', column, list(rows[0]))}")
    try:
        cells = [row[column] for row in rows]
        if place:
            cells = [cell.split()[int(place) - 1] for cell in cells]
        return float(STATISTICS[statistic]([float(cell) for cell in cells if cell]))
    except (ValueError, IndexError) as error:
        raise UserError(f"'{source}': {shown(rows[0][column])} is no number") from error


def _rows(path: Path, wanted: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of a CSV whose columns have these values, or lie within them."""
    ranges = {name: value.split("..") for name, value in wanted.items() if ".." in value}
    values = {name: value for name, value in wanted.items() if name not in ranges}
    rows = matching_rows(path, values)
    try:
        for name, (low, high) in ranges.items():
            rows = [row for row in rows if float(low) < float(row[name]) <= float(high)]
    except (KeyError, ValueError) as error:
        raise UserError(
            f"'{path}': no range of numbers is {shown(wanted)}; write NAME=LOW..HIGH"
        ) from error
    return rows
