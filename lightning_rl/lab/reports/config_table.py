"""``lightning-rl config NAME``: the keys of a method's config with their values and sources, as a Markdown table."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from lightning_rl.core.config import config_path
from lightning_rl.lab.figures.tables import markdown
from lightning_rl.methods.registry import canonical, implementation

_KEY = re.compile(r"^  (\w+): +([^#]+?)\s*(?:# (.*))?$")
_TITLE = re.compile(r"^  # (.*)$")


def config_rows(text: str) -> list[tuple[str, str, str]]:
    """(key, value, comment) of the ``default:`` block of a config's YAML, with its headings as rows of their own."""
    rows = []
    block = re.split(r"^(?=\S)", text.partition("\ndefault:\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    for line in block.splitlines():
        if key := _KEY.match(line):
            rows.append((f"`{key[1]}`", f"`{key[2]}`", _cell(key[3] or "")))
        elif title := _TITLE.match(line):
            rows.append((f"*{_cell(title[1])}*", "", ""))
    return rows


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def config_table(name: str) -> str:
    """The Markdown table of an implementation; UserError for an unknown one."""
    implementation(canonical(name))
    rows: list[Sequence[str]] = [("key", "default", "meaning and source")]
    return markdown([*rows, *config_rows(config_path(canonical(name)).read_text())])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``config``."""
    parser.add_argument("implementation", metavar="NAME", help="an implementation, e.g. UDRL")


def show(arguments: argparse.Namespace) -> None:
    """Prints the table that the arguments ask for."""
    print(config_table(arguments.implementation))
