"""``lightning-rl speed``: what ``make peers`` and ``make speedrun`` have measured, as tables."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from itertools import groupby

from experiments.reproduce.reading import matching_rows
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.lab.tables import Rows, markdown

Row = Mapping[str, str]
LIBRARIES = ("ours", "rejax", "sbx", "Stable-Baselines3")  # ours with its defaults
NONE = "–"
PEERS = (
    *("agent", "seeds", "library", "CPU ms a step", "ours over it", "compile, CPU s", "return"),
    *("learn", "differs", "measured"),
)
PLAIN = ("compile_s", "return_mean")
RECORDS = ("seconds", "seeds that hold 250", "method, flags", "date", "commit", "machine")
RULE = {"gamename": "lunarlander", "return": "250.0", "evaluations": "5", "episodes": "10"}
"""Of a race that counts."""
SEEDS = 5
"""At least."""


def show(given: Namespace) -> None:
    """Prints the table that is asked for."""
    tables = {"agents": agents, "peers": peers, "records": records}
    try:
        table = tables[given.table](matching_rows(given.csv, {}))
    except (KeyError, ValueError) as error:
        raise UserError(
            f"'{given.csv}' is no table of speeds ({error}); give results/peers.csv, for records "
            "results/speedrun.csv"
        ) from error
    say(*markdown(table).split("\n"))


def agents(rows: Sequence[Row]) -> Rows:
    """A row for each comparison: the milliseconds of each library, and how far behind the fastest
    one the others are.
    """
    table: Rows = [("agent", "seeds", *LIBRARIES, "behind the fastest, times")]
    for (agent, game, seeds), its in groupby(rows, _comparison):
        found = {row["library"]: row for row in its if row["library"] in LIBRARIES}
        ms = {name: float(row["ms"]) for name, row in found.items()}
        first, *others = sorted(ms, key=ms.__getitem__)
        behind = ", ".join(f"{name} {_short(ms[name] / ms[first])}" for name in others)
        cells = [_time(found[name]) if name in found else NONE for name in LIBRARIES]
        table.append((f"{agent}, {game}", seeds, *cells, behind or NONE))
    return table


def _comparison(row: Row) -> tuple[str, str, str]:
    return row["agent"], row["gamename"], row["seeds"]


def _time(row: Row) -> str:
    text = _short(float(row["ms"]))
    if row["learned"] == "0":
        return f"{text}, ends below {row['needed']}"
    return text


def peers(rows: Sequence[Row]) -> Rows:
    """A row for each library of each comparison, with all that was measured."""
    table: Rows = [PEERS]
    for row in rows:
        learn = NONE
        if row["learned"]:
            learn = f"{row['learned']} of {row['seeds']} reach {row['needed']}"
        table.append(
            (
                f"{row['agent']}, {row['gamename']}",
                row["seeds"],
                f"{row['library']} {row['version']}".strip(),
                _spread(row, "ms"),
                _spread(row, "over"),
                *(_short(float(row[name])) if row[name] else NONE for name in PLAIN),
                learn,
                row["differs"] or NONE,
                f"{row['date'][:10]}, {row['commit']}, {row['processor']}, load {row['load']}",
            )
        )
    return table


def _spread(row: Row, name: str) -> str:
    """A median, and in brackets its quartiles."""
    median, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if low == high:
        return _short(median)
    return f"{_short(median)} ({_short(low)} – {_short(high)})"


def _short(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def records(rows: Sequence[Row]) -> Rows:
    """The races by the rule: the fastest first, then those of which not all seeds held 250."""
    races = []
    for _, found in groupby(rows, lambda row: (row["date"], row["commit"])):
        race = list(found)
        if len(race) >= SEEDS and all(race[0][name] == value for name, value in RULE.items()):
            held = sum(row["outcome"] == "reached" for row in race)
            seconds = max(float(row["seconds"] or "inf") for row in race)
            races.append((held < len(race), seconds, held, race))
    table: Rows = [RECORDS]
    for missed, seconds, held, race in sorted(races, key=lambda each: each[:2]):
        first = race[0]
        time = NONE
        if not missed:
            time = f"{seconds:.0f}"
        table.append(
            (
                time,
                f"{held} of {len(race)}",
                f"{first['implementation']} {first['flags']}".strip(),
                first["date"][:10],
                first["commit"],
                f"{first['processor']}, {first['cores']} cores",
            )
        )
    return table
