"""``lightning-rl config NAME``: the keys of a method's config with their values and sources, as
a Markdown table.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import graphlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lightning_rl.core.catalogue import Block, Entry, entry
from lightning_rl.core.config import merged_values
from lightning_rl.core.files import read_text
from lightning_rl.core.lines import say
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.tables import markdown

SOURCE = re.compile(r"\[[A-Z](?:, [A-Z])*\]")
"""The letters of a value's source: what a comment says before it explains the key, what comes
after is about the value.
"""


@dataclass(frozen=True)
class Row:
    """A key in a ``default`` block: its value as it is written, and its comment before and after
    the source's letter.
    """

    heading: str
    key: str
    value: str
    explanation: str
    source: str


@functools.lru_cache(maxsize=16)
def _parsed(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a YAML file, and the nodes of its blocks, which know their places in it."""
    text = read_text(path, "YAML file")
    root: Any = yaml.compose(text)
    return text, {key.value: value for key, value in root.value}


def block_rows(path: Path, name: str) -> list[Row]:
    """The keys in the ``default`` block of a file's block, in order, each under the heading (a
    comment of its own) above it.
    """
    text, blocks = _parsed(path)
    lines, heading, rows = text.splitlines(), "", []
    block = {key.value: value for key, value in blocks[name].value}.get("default")
    for key, value in block.value if block else ():
        above = lines[key.start_mark.line - 1]
        if above.startswith("# ", key.start_mark.column):
            heading = above.strip().removeprefix("# ")
        comment = _comment(lines, value.end_mark.line, value.end_mark.column, key.start_mark.column)
        cut = found.start() if (found := SOURCE.search(comment)) else len(comment)
        written = text[value.start_mark.index : value.end_mark.index]
        rows.append(Row(heading, key.value, written, comment[:cut].strip(" ."), comment[cut:]))
    return rows


def _comment(lines: Sequence[str], line: int, column: int, indent: int) -> str:
    """The comment after a value, with the lines that continue it: these start right of the key."""
    words = [lines[line][column:].strip().removeprefix("#").strip()]
    for further in lines[line + 1 :]:
        text = further.lstrip()
        if not text.startswith("#") or len(further) - len(text) <= indent:
            break
        words.append(text.removeprefix("#").strip())
    return " ".join(word for word in words if word)


def _plain_rows(block: Block) -> list[Row]:
    """The same of a block that was given as a mapping, which has no comments."""
    return [
        Row("", key, json.dumps(value), "", "")
        for key, value in (block.values.get("default") or {}).items()
    ]


def config_rows(found: Entry) -> Iterator[Row]:
    """All keys of an implementation: explained where they first stand, with the value and source
    that stand last.
    """
    rows: dict[str, Row] = {}
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    blocks = [
        block_rows(block.path, block.name) if block.path else _plain_rows(block)
        for block in found.blocks
    ]
    for row in itertools.chain(*blocks):
        first = rows.get(row.key, row)
        rows[row.key] = dataclasses.replace(
            row, heading=first.heading, explanation=first.explanation
        )
    order.add("")  # keys above the first heading
    for block in reversed(blocks):
        for above, below in itertools.pairwise(
            ["", *dict.fromkeys(row.heading for row in block if row.heading)]
        ):
            order.add(below, above)
    return (
        row for heading in order.static_order() for row in rows.values() if row.heading == heading
    )


def legend(found: Entry) -> dict[str, str]:
    """What the letters of sources mean in the files that an implementation is read from."""
    letters: dict[str, str] = {}
    for path in dict.fromkeys(block.path for block in found.blocks if block.path):
        letters |= read_yaml(path).get("legend") or {}
    return letters


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def changes(name: str, gamename: str | None, preset: str | None) -> dict[str, tuple[str, str]]:
    """What stands above the default values for a gamename and a preset: by key the value and the
    block that it is in.
    """
    if gamename is not None:
        env_spec(gamename)  # or a misspelt one would change nothing, without a word
    layers = merged_values(name, gamename or "", preset)
    blocks = [(where.rpartition("block ")[2].strip("'"), values) for where, values in layers]
    above = [(block, values) for block, values in blocks if not block.endswith(".default")]
    return {
        key: (yaml_text(value), block) for block, values in above for key, value in values.items()
    }


def yaml_text(value: Any) -> str:
    """A value in one line, as ``--set`` takes it."""
    return (
        yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False)
        .removesuffix("...\n")
        .strip()
    )


def config_table(name: str, gamename: str | None = None, preset: str | None = None) -> str:
    """The Markdown table of an implementation, for a gamename and with a preset; UserError for
    an unknown one.
    """
    table: list[Sequence[str]] = [
        ("key", "default" if gamename is preset is None else "value", "meaning and source")
    ]
    found, heading, sources, changed = entry(name), "", "", changes(name, gamename, preset)
    for row in config_rows(found):
        if row.key in changed:
            value, block = changed[row.key]
            row = dataclasses.replace(row, value=value, source=f"From `{block}`")
        if row.heading != heading:
            heading = row.heading
            table.append((f"*{_cell(heading)}*", "", ""))
        meaning = (
            f"{row.explanation}. {row.source}"
            if row.explanation and row.source
            else row.explanation or row.source
        )
        table.append((f"`{row.key}`", f"`{row.value}`", _cell(meaning)))
        sources += row.source
    used = {
        letter for letters in SOURCE.findall(sources) for letter in letters.strip("[]").split(", ")
    }
    meanings = [
        f"[{letter}] {meaning}" for letter, meaning in legend(found).items() if letter in used
    ]
    if meanings:
        table.append(("*sources*", "", _cell("; ".join(meanings))))
    return markdown(table)


def show(given: argparse.Namespace) -> None:
    """Prints the table that the arguments ask for."""
    say(*config_table(given.implementation, given.gamename, given.preset).split("\n"))
