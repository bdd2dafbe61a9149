"""CSVs of the papers' protocols (``lightning-rl proxies``) as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures.csv_files import (
    labelled,
    read_csv,
    require,
    require_cells,
    to_numbers,
)
from lightning_rl.lab.figures.runs import read_sources
from lightning_rl.lab.tables import counted

_NUMBERS = (
    "number",
    "return_mean",
    "train_steps",
    "episodes",
    "every",
    "agents",
    "row",
    "column",
    "value",
    "width",
)
_LISTS = ("returns", "test_returns", "lows", "counts")
_WHOLE = {"every": (1, 10**9), "row": (0, 99), "column": (0, 99)}
"""The lowest and highest whole number of a column."""
_ABOUT = (
    "gamename",
    "trained_on",
    "proxy",
    "proxy_hash",
    "agent",
    "protocol",
    "seed",
    "number",
    "every",
    "agents",
    "sample",
    "component",
    "quantity",
    "row",
    "column",
    "cell",
    "action",
)
"""The columns that say what a row is about, as far as a table has them."""


def read_protocol(
    sources: Sequence[str], columns: Sequence[str], protocol: str, kind: str = "trained_on"
) -> pd.DataFrame:
    """The rows of all sources with these ``columns``.

    A source that is no such table is named and left out. UserError where none is left, or where
    tasks differ.
    """

    def read(path: Path, label: str | None) -> pd.DataFrame:
        return _read(path, label, columns, protocol, kind)

    table = read_sources(
        sources, read, None, f"no source is a CSV of lightning-rl proxies {protocol}"
    )
    refuse_twice(table)
    if "proxy_hash" in table:  # proxies that are not the same may have one name
        several = table.groupby("proxy")["proxy_hash"].transform("nunique") > 1
        table.loc[several, "proxy"] += " " + table["proxy_hash"].astype(str)
    games = table["gamename"].unique()
    if len(games) > 1:
        raise UserError(f"results of {' and '.join(games)} do not share an axis; draw them apart")
    return table


def refuse_twice(table: pd.DataFrame) -> None:
    """UserError where two rows have the same ``_ABOUT``: each agent may count only once."""
    twice = table[table.duplicated([name for name in _ABOUT if name in table])]
    if len(twice):
        row = twice.iloc[0]
        what = f"{row['agent']} on {row['proxy']} ({row['protocol']})"
        raise UserError(
            f"{len(twice)} rows are there twice, the first of {what}; name each CSV once, and each "
            "row once in it"
        )


def _read(
    path: Path, label: str | None, columns: Sequence[str], protocol: str, kind: str
) -> pd.DataFrame:
    table = read_csv(path, [name for name in columns if name in _NUMBERS], whole_rows=True)
    for name in _LISTS:
        if name in columns and name in table:
            table[name] = table[name].astype(str)
            parts = table[name].str.split().map(lambda words: words or [""])
            to_numbers(path, name, parts.explode())
    require(table, columns, f"make one with lightning-rl proxies {protocol}")
    if table.empty:
        raise UserError(f"it has no whole row; make one with lightning-rl proxies {protocol}")
    for name in _WHOLE.keys() & set(columns):
        require_whole(table, name, *_WHOLE[name])
    if "width" in columns:
        require_cells(table, "width", lambda value: value > 0, "more than 0")
    texts = [name for name in columns if name not in (*_NUMBERS, *_LISTS)]
    table[texts] = table[texts].fillna("").astype(str)
    return table.assign(**{kind: labelled(table[kind], label)})


def numbers(cell: object) -> list[float]:
    """The numbers in a cell that holds several."""
    return [float(part) for part in str(cell).split()]


def ordered(values: Sequence[str], first: Mapping[str, int]) -> list[str]:
    """Distinct values, those that begin as ``first`` says in its order before all others."""

    def rank(value: str) -> int:
        ranks = [rank for begin, rank in first.items() if value.startswith(begin)]
        return ranks[0] if ranks else len(first)

    return sorted(dict.fromkeys(values), key=rank)


def split_common(table: pd.DataFrame) -> tuple[str, dict[str, str]]:
    """What all protocols say, and what each says of its own."""
    protocols = table["protocol"].unique()
    # not at commas as of hidden=[8, 8]
    words = {protocol: re.split(r", (?![^\[]*\])", protocol) for protocol in protocols}
    same = set.intersection(*map(set, words.values()))
    own = {}
    for protocol, each in words.items():
        own[protocol] = ", ".join(word for word in each if word not in same)
    return ", ".join(word for word in next(iter(words.values())) if word in same), own


def counts_text(table: pd.DataFrame) -> str:
    """``10 agents on each of 5 proxies``, or the range where they differ."""
    # their numbers begin again in each file of several
    each = table.groupby(["proxy", "agent"]).size()
    agents, proxies = counted(each, "agent"), table["proxy"].nunique()
    return agents if proxies == 1 else f"{agents} on each of {proxies} proxies"


def require_whole(table: pd.DataFrame, column: str, low: int, high: int) -> None:
    """UserError with the first row whose number is not a whole one from ``low`` to ``high``."""
    require_cells(
        table,
        column,
        lambda value: low <= value <= high and value == int(value),
        f"a whole number from {low} to {high:,}",
    )


def filled(value: Any) -> bool:
    """Whether a cell holds something."""
    return not pd.isna(value) and value != ""
