"""``lightning-rl compare A B``: is A better than B, by how much, and how sure is that over
seeds?
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say, three_digits
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
    """A against B on one environment.

    Attributes:
        scores: of A ``[n]`` and of B ``[m]``.
        difference: of the means, with its 95 % interval over runs.
        improvement: probability that A is above B, with its interval.
    """

    game: str
    scores: tuple[Floats, Floats]
    difference: Interval
    improvement: Interval


def compare_scores(game: str, a: Floats, b: Floats) -> Comparison:
    """The comparison of the scores ``[n]`` of A and ``[m]`` of B."""
    return Comparison(game, (a, b), difference_interval(a, b), improvement_interval(a, b))


def over_environments(comparisons: Sequence[Comparison]) -> Interval:
    """Probability of improvement, mean over environments."""
    return mean_of_intervals([comparison.improvement for comparison in comparisons])


def runs_by_environment(source: str, given: Namespace) -> dict[str, pd.DataFrame]:
    """The runs of a source; UserError where they are of several methods."""
    table = labelled_runs([source], given.tag, given.x, given.group)
    games = {str(game): runs for game, runs in table.groupby("gamename", sort=False)}
    for game, runs in games.items():
        names = runs["group"].unique()
        if len(names) > 1:
            where = game or "one environment"
            raise UserError(
                f"'{source}' holds several methods on {where} ({'; '.join(names)}); give the "
                "folder of one"
            )
    return games


def shared_part(game: str, sides: Sequence[pd.DataFrame], given: Namespace) -> list[Group]:
    """The runs of both on one grid of bins, from where all have values up to where the shortest
    run ends; says so where that leaves something out.
    """
    runs = [side.assign(gamename=game, group=str(number)) for number, side in enumerate(sides)]
    groups = make_groups(pd.concat(runs), given.x, given.bin)[0][game]
    shared = in_common(groups)
    begin, end, unit = shared[0].x[0], shared[0].x[-1], shared[0].unit
    where = f"{game}: " if game else ""
    first = min(group.x[np.isfinite(group.values).any(0)][0] for group in groups)
    if begin > first:
        say(f"{where}compared from {begin:,.6g} {unit} on, where all runs have values")
    if end < groups[0].x[-1]:
        say(f"{where}compared up to {end:,.6g} {unit}, where the shortest run ends")
    return shared


def compare(given: Namespace) -> list[Comparison]:
    """The comparisons on all environments that both have; the others are named."""
    a = runs_by_environment(given.a, given)
    b = runs_by_environment(given.b, given)
    if len(a) == len(b) == 1 and "" in (*a, *b):  # a CSV without environments
        a = {"": a.popitem()[1]}
        b = {"": b.popitem()[1]}
    shared = [game for game in a if game in b]
    if not shared:
        raise UserError(
            f"A is on {', '.join(a)}, B on {', '.join(b)}: they share none; compare runs of one "
            "environment"
        )
    for game in sorted(a.keys() ^ b.keys()):
        say(f"skipped {game}: only {'A' if game in a else 'B'} has runs on it")
    found = []
    for game in shared:
        sides = (a[game], b[game])
        scores = []
        for group in shared_part(game, sides, given):
            scores.append(run_scores(group, None)[given.score].to_numpy(float))
        found.append(compare_scores(game, *scores))
    return found


def verdict(comparison: Comparison) -> str:
    """What the interval says, in words."""
    value, low, high = comparison.difference
    if np.isnan(low):
        return "one run on a side: nothing can be said of seeds"
    if low <= 0 <= high:
        return "no difference shown"
    higher = "A is higher" if value > 0 else "B is higher"
    if low == high:
        higher += " in seeds that are all alike: how sure that is cannot be said"
    return higher


def show(given: Namespace) -> None:
    """Prints the comparison that the arguments ask for."""
    found = compare(given)
    rows = [("environment", "A (seeds)", "B (seeds)", "A - B", "P(A > B)", "")]
    for each in found:
        a, b = (f"{three_digits(scores.mean())} ({len(scores)})" for scores in each.scores)
        difference = interval(*each.difference)
        improvement = interval(*each.improvement, form=".2f")
        rows.append((each.game, a, b, difference, improvement, verdict(each)))
    if len(found) > 1:
        improvement = interval(*over_environments(found), form=".2f")
        rows.append(("all", "", "", "", improvement, "mean over environments"))
    title = f"A = {given.a} against B = {given.b}"
    what = f"{given.score} of {LABELS.get(given.tag, given.tag)}"
    put_rows(rows, title, f"{what}; 95 % intervals")
