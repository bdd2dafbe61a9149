"""``lightning-rl docs FILE...``: tables in documents that are made by commands, so that their numbers are those of ``results/``.

Below a line ``<!-- made by: lightning-rl ... -->`` is what that command prints, up to the next blank line.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from lightning_rl.core.files import read_text, write_text

_BLOCK = re.compile(r"^(<!-- made by: lightning-rl (?P<words>.*?) -->\n)(?:.+\n)*", re.MULTILINE)


def refreshed(text: str, run: Callable[[Sequence[str]], None]) -> str:
    """The text with what its commands print now."""

    def replace(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run(shlex.split(match["words"]))
        return match[1] + printed.getvalue().strip() + "\n"

    return _BLOCK.sub(replace, text)


def refresh(files: Sequence[Path], run: Callable[[Sequence[str]], None]) -> None:
    """Writes the files anew where a command prints something else by now."""
    for path in files:
        before = read_text(path, "Markdown file")
        after = refreshed(before, run)
        if after != before:
            write_text(path, after)
        print(f"{'refreshed' if after != before else 'up to date'}: {path}")
