"""``lightning-rl compare A B``: is A better than B, by how much, and how sure is that over
seeds?
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.functional.intervals import (
    Interval,
    difference_interval,
    improvement_interval,
    mean_of_intervals,
)
from lightning_rl.lab.figures.groups import LABELS, Group, in_common, labelled_runs, make_groups
from lightning_rl.lab.figures.scores import run_scores
from lightning_rl.lab.scalars import Floats
from lightning_rl.lab.tables import interval, put_rows


@dataclass(frozen=True)
class Comparison:
    """A against B on one environment: scores ``[n]``, ``[m]``, and (value, low, high) of the
    statistics of them.
    """

    game: str
    labels: tuple[str, str]
    scores: tuple[Floats, Floats]
    difference: tuple[float, float, float]
    improvement: tuple[float, float, float]


def compare_scores(game: str, labels: tuple[str, str], a: Floats, b: Floats) -> Comparison:
    """Mean difference and probability of improvement, with 95 % intervals over runs."""
    return Comparison(
        game,
        labels,
        (a, b),
        _floats(difference_interval(a, b)),
        _floats(improvement_interval(a, b)),
    )


def over_environments(comparisons: Sequence[Comparison]) -> tuple[float, float, float]:
    """Probability of improvement, mean over environments."""
    return _floats(
        mean_of_intervals([improvement_interval(*comparison.scores) for comparison in comparisons])
    )


def _floats(found: Interval) -> tuple[float, float, float]:
    value, low, high = found
    return float(value), float(low), float(high)


def runs_by_environment(source: str, given: argparse.Namespace) -> dict[str, pd.DataFrame]:
    """The runs of a source; UserError where they are of several methods."""
    table = labelled_runs([source], given.tag, given.x, given.group)
    games = {str(game): runs for game, runs in table.groupby("gamename", sort=False)}
    for game, runs in games.items():
        if len(names := runs["group"].unique()) > 1:
            several = f"{game or 'one environment'} ({'; '.join(names)})"
            raise UserError(
                f"'{source}' holds several methods on {several}; give the folder of one"
            )
    return games


def shared_part(game: str, sides: Sequence[pd.DataFrame], given: argparse.Namespace) -> list[Group]:
    """The runs of both on one grid of bins, up to where the shortest run ends; says so where
    that is not the end of all.
    """
    runs = [side.assign(gamename=game, group=str(number)) for number, side in enumerate(sides)]
    groups = make_groups(pd.concat(runs), given.x, given.bin)[0][game]
    shared = in_common(groups)
    if (end := shared[0].x[-1]) < groups[0].x[-1]:
        where = f"{game}: " if game else ""
        say(f"{where}compared up to {end:,.6g} {shared[0].unit}, where the shortest run ends")
    return shared


def compare(given: argparse.Namespace) -> list[Comparison]:
    """The comparisons on all environments that both have; the others are named."""
    a, b = (runs_by_environment(source, given) for source in (given.a, given.b))
    if len(a) == len(b) == 1 and "" in (*a, *b):  # a CSV without environments
        a, b = ({"": next(iter(runs.values()))} for runs in (a, b))
    shared = [game for game in a if game in b]
    if not shared:
        raise UserError(
            f"A is on {', '.join(a)}, B on {', '.join(b)}: both have none; compare runs of one "
            "environment"
        )
    for game in sorted(a.keys() ^ b.keys()):
        say(f"skipped {game}: only {'A' if game in a else 'B'} has runs on it")
    found = []
    for game in shared:
        sides = (a[game], b[game])
        scores = [
            run_scores(group, None)[given.score].to_numpy(float)
            for group in shared_part(game, sides, given)
        ]
        found.append(
            compare_scores(game, (sides[0]["group"].iloc[0], sides[1]["group"].iloc[0]), *scores)
        )
    return found


def verdict(comparison: Comparison) -> str:
    """What the interval says, in words."""
    value, low, high = comparison.difference
    if np.isnan(low):
        return "one run on a side: nothing can be said of seeds"
    if low > 0 or high < 0:
        alike = (
            " in seeds that are all alike: how sure that is cannot be said" if low == high else ""
        )
        return f"{'A' if value > 0 else 'B'} is higher{alike}"
    return "no difference shown"


def show(given: argparse.Namespace) -> None:
    """Prints the comparison that the arguments ask for."""
    found = compare(given)
    labels = " against ".join(
        f"{name} = {source}" for name, source in (("A", given.a), ("B", given.b))
    )
    rows = [("environment", "A (seeds)", "B (seeds)", "A - B", "P(A > B)", "")]
    for each in found:
        a, b = (f"{scores.mean():.1f} ({len(scores)})" for scores in each.scores)
        rows.append(
            (
                each.game,
                a,
                b,
                interval(*each.difference),
                interval(*each.improvement, form=".2f"),
                verdict(each),
            )
        )
    if len(found) > 1:
        rows.append(
            (
                "all",
                "",
                "",
                "",
                interval(*over_environments(found), form=".2f"),
                "mean over environments",
            )
        )
    what = f"{given.score} of {LABELS.get(given.tag, given.tag)}"
    put_rows(rows, labels, f"{what}; 95 % intervals")
