"""``lightning-rl config NAME``: the keys of a method's config with their values and sources."""

from __future__ import annotations

import dataclasses
import functools
import graphlib
import itertools
import json
import math
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lightning_rl.core.catalogue import Block, Entry, entry
from lightning_rl.core.config import merged_values
from lightning_rl.core.files import read_text
from lightning_rl.core.lines import say
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.lab.tables import Rows, markdown, put_rows
from lightning_rl.run.imports import import_lightning

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
    lines = text.splitlines()
    block = {key.value: value for key, value in blocks[name].value}.get("default")
    heading = ""
    rows = []
    for key, value in block.value if block else []:
        above = lines[key.start_mark.line - 1]
        if above.startswith("# ", key.start_mark.column):
            heading = above.strip().removeprefix("# ")
        comment = _comment(lines, value.end_mark.line, value.end_mark.column, key.start_mark.column)
        letters = SOURCE.search(comment)
        cut = letters.start() if letters else len(comment)
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
    values = block.values.get("default") or {}
    return [Row("", key, json.dumps(value), "", "") for key, value in values.items()]


def config_rows(found: Entry) -> list[Row]:
    """All keys of an implementation: explained where they first stand, with the value and source
    that stand last.
    """
    blocks = []
    for block in found.blocks:
        blocks.append(block_rows(block.path, block.name) if block.path else _plain_rows(block))
    rows: dict[str, Row] = {}
    for row in itertools.chain(*blocks):
        first = rows.get(row.key, row)
        words = {"heading": first.heading, "explanation": first.explanation}
        rows[row.key] = dataclasses.replace(row, **words)
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    order.add("")  # keys above the first heading
    for some in reversed(blocks):
        headings = dict.fromkeys(row.heading for row in some if row.heading)
        for above, below in itertools.pairwise(["", *headings]):
            order.add(below, above)
    place = {heading: number for number, heading in enumerate(order.static_order())}
    return sorted(rows.values(), key=lambda row: place[row.heading])


def legend(found: Entry) -> dict[str, str]:
    """What the letters of sources mean in the files that an implementation is read from."""
    letters: dict[str, str] = {}
    for path in dict.fromkeys(block.path for block in found.blocks if block.path):
        letters |= read_yaml(path).get("legend") or {}
    return letters


def changes(name: str, gamename: str | None, preset: str | None) -> dict[str, tuple[str, str]]:
    """What stands above the default values for a gamename and a preset: by key the value and the
    block that it is in.
    """
    if gamename is not None:
        import_lightning()
        from lightning_rl.envs.spec import env_spec

        env_spec(gamename)  # or a misspelt one would change nothing, without a word
    found: dict[str, tuple[str, str]] = {}
    for where, values in merged_values(name, gamename or "", preset):
        block = where.rpartition("block ")[2].strip("'")
        if not block.endswith(".default"):
            found |= {key: (yaml_text(value), block) for key, value in values.items()}
    return found


def yaml_text(value: Any) -> str:
    """A value in one line, as ``--set`` takes it."""
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False)
    return text.removesuffix("...\n").strip()


def values_of(name: str, gamename: str | None = None, preset: str | None = None) -> list[Row]:
    """``config_rows`` for a gamename and with a preset; UserError for an unknown one."""
    changed = changes(name, gamename, preset)
    rows = []
    for row in config_rows(entry(name)):
        if row.key in changed:
            value, block = changed[row.key]
            row = dataclasses.replace(row, value=value, source=f"From `{block}`")
        rows.append(row)
    return rows


def meaning(row: Row) -> str:
    """What a key means, and the letters of its source."""
    return ". ".join(filter(None, (row.explanation, row.source)))


def meanings(name: str, rows: Sequence[Row]) -> str:
    """What the letters of sources mean that the rows have."""
    used = re.findall("[A-Z]", "".join(SOURCE.findall("".join(row.source for row in rows))))
    letters = legend(entry(name)).items()
    return "; ".join(f"[{letter}] {words}" for letter, words in letters if letter in used)


def table_of(name: str, rows: Sequence[Row], value: str) -> list[tuple[str, str, str]]:
    """Header and rows: a heading stands alone in its row; value: what the values are called."""
    table = [("key", value, "meaning and source")]
    for heading, some in itertools.groupby(rows, lambda row: row.heading):
        if heading:
            table.append((heading, "", ""))
        table += [(row.key, row.value, meaning(row)) for row in some]
    sources = meanings(name, rows)
    if sources:
        table.append(("sources", "", sources))
    return table


def config_table(name: str, gamename: str | None = None, preset: str | None = None) -> str:
    """The Markdown table of an implementation, for a gamename and with a preset."""
    value = "default" if gamename is preset is None else "value"
    header, *table = table_of(name, values_of(name, gamename, preset), value)
    cells: Rows = [header]
    for key, value, words in table:
        words = words.replace("|", "\\|").replace("<", "&lt;")
        cells.append((f"`{key}`", f"`{value}`", words) if value else (f"*{key}*", "", words))
    return markdown(cells)


def config_yaml(name: str, rows: Sequence[Row]) -> str:
    """The same as a YAML file, which ``--config`` takes."""
    lines = [f"# {name}. Sources: {meanings(name, rows)}"]
    for heading, some in itertools.groupby(rows, lambda row: row.heading):
        lines += [f"# {heading}"] if heading else []
        lines += [f"{row.key}: {row.value}  # {meaning(row)}".rstrip("# ") for row in some]
    return "\n".join(lines)


def show(given: Namespace) -> None:
    """Prints what the arguments ask for: on a terminal a table, elsewhere YAML, or Markdown."""
    asked = (given.implementation, given.gamename, given.preset)
    if given.markdown:
        say(*config_table(*asked).split("\n"))
        return
    name, rows = entry(given.implementation).name, values_of(*asked)
    if not sys.stdout.isatty():
        say(*config_yaml(name, rows).split("\n"))
        return
    table = table_of(name, rows, "value")
    styles = ["bold" if not value else None for _, value, _ in table[1:]]
    put_rows(table, name, styles=styles)
