"""``lightning-rl docs FILE...``: tables and numbers in documents are read from ``results/`` anew,
by what their source says.

Below a line ``<!-- made by: lightning-rl ... -->`` is what that command prints, up to the next
blank line. Of single numbers see ``numbers``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Callable, Sequence

from experiments.numbers import with_numbers
from lightning_rl.cli.tools import use
from lightning_rl.core.files import read_text, write_text
from lightning_rl.core.lines import say
from lightning_rl.core.modules import from_file

_BLOCK = re.compile(r"^(<!-- made by: lightning-rl (?P<words>.*?) -->\n)(?:.+\n)*", re.MULTILINE)


def refreshed(text: str, run: Callable[[Sequence[str]], None]) -> str:
    """The text with what its commands print and its numbers' sources say now."""

    def replace(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), from_file():
            run(shlex.split(match["words"]))
        return match[1] + printed.getvalue().strip() + "\n"

    return with_numbers(_BLOCK.sub(replace, text))


def refresh(given: argparse.Namespace) -> None:
    """Writes the files anew where a command prints something else by now."""
    for path in given.files:
        before = read_text(path, "Markdown file")
        after = refreshed(before, use)
        if after != before:
            write_text(path, after)
        say(f"{'refreshed' if after != before else 'up to date'}: {path}")
