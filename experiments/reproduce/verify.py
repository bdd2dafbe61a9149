"""``lightning-rl reproduce --verify``: the begin of a claim's first curve, run and compared.

On the same processor with the same versions every digit is the same, as long as no compiled code
has changed. Elsewhere sums are rounded in another way, which after some hundred updates is another
run of the same method: there, values are to be as close as another seed may be.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.intervals import prediction_interval
from experiments.reproduce import store
from experiments.reproduce.changes import rounds_otherwise
from experiments.reproduce.checkout import commit_of
from experiments.reproduce.claims import Manifest
from experiments.reproduce.reading import FIRST_POINTS
from experiments.reproduce.runs import Job, Main, first_epochs, machine, versions
from experiments.reproduce.verified import note
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say

FURTHER_SEEDS = 0.99
"""Share of further seeds that are within what is allowed on another machine."""
LEAST_SEEDS = 3
"""Stored seeds that it takes to know."""


def verify(name: str, manifest: Manifest, root: Path, main: Main) -> None:
    """Runs the first epochs of a claim's first seed again; UserError for another curve."""
    claim = manifest.chosen([name])[name]
    if not claim.curves:
        remedy = "it is run as a whole or not at all"
        if owner := manifest.shared_trainings.get(name):
            remedy = f"its training is that of {owner}: --verify {owner}"
        raise UserError(f"claim '{name}' keeps no curve; {remedy}")
    rows = store.read_runs(root, claim)
    if not rows:
        raise UserError(
            f"claim '{name}' has no stored curve to compare with; run lightning-rl reproduce {name}"
        )
    row = rows[0]
    with tempfile.TemporaryDirectory() as folder:
        job = Job(name, claim, int(row["seed"]), "verify", Path(folder), main, None)
        again = first_epochs(job)[:FIRST_POINTS]
    curves = _first_points(store.read_curves(root, claim), [each["seed"] for each in rows])
    stored = curves[row["seed"]]
    path = root / claim.curves_file
    points = range(min(len(again), len(stored)))
    columns = ("env_steps", *claim.curves)
    if not points:
        raise UserError(
            f"{job.about}: its first {claim.verify_epochs} epochs hold no stored point; raise "
            "verify_epochs"
        )
    here = {"machine": machine(job.claim), "versions": versions(job.claim)}
    same_place = all(row[key] == value for key, value in here.items())
    same_place &= not rounds_otherwise(root, name, row["commit"])
    how = "digit for digit"
    if not same_place:
        how = (
            f"within {manifest.tolerance:.0%}, or as another seed may be, on another machine, with "
            "other versions, or since compiled code has changed"
        )
    digits = near = 0
    refused = ""
    for k, column in itertools.product(points, columns):
        now, before = store.kept(float(again[k][column])), store.number(stored[k], column, path)
        others = (curve[k] for curve in curves.values() if len(curve) > k)
        seeds = [store.number(each, column, path) for each in others]
        equal, within = _equal(now, before), _within(now, before, manifest.tolerance)
        digits += equal
        near += within
        if equal or refused or (not same_place and (within or _as_another_seed(now, seeds))):
            continue
        refused = (
            f"{job.about}: {column} at step {int(stored[k]['env_steps']):,} is {now:.9g} now "
            f"and {before:.9g} in '{claim.curves_file}'; they should be equal {how}"
        )
    count = len(points) * len(columns)
    result = how.partition(", on")[0]
    about = {"claim": name, "seed": row["seed"], "commit": commit_of(root)[:12], **here}
    found = {"values": count, "equal": digits, "result": "refused" if refused else result}
    note(root, {**about, **found})
    alarm = false_alarm(same_place, len(points) * len(claim.curves), len(rows))
    if refused:
        raise UserError(f"{refused}. {alarm}")
    say(
        f"{job.about}: {len(points)} points up to step {int(again[points[-1]]['env_steps']):,} "
        f"equal the stored curve {how}"
    )
    text = f"{digits} of {count} values have the same digits"
    if not same_place:
        share = f"{manifest.tolerance:.0%}"
        text += f", {near} are within {share}; the others are as another seed may be"
    say(text, alarm)


def false_alarm(same_place: bool, values: int, seeds: int) -> str:
    """How likely a correct run is refused, in words.

    values: of curves that are compared; seeds: that are stored.
    """
    if same_place:
        return (
            "On the same processor, with these versions and this compiled code, a correct run is "
            "never refused."
        )
    if seeds < LEAST_SEEDS:
        return (
            "How often a correct run is refused elsewhere is not known: that takes "
            f"{LEAST_SEEDS} stored seeds."
        )
    most = min(100, round(100 * (1 - FURTHER_SEEDS) * values))
    return (
        f"Elsewhere, if scores of seeds are normal, at most {most} of 100 correct runs are "
        f"refused, one for each of the {values} values. Often they are not normal: if each stored "
        "seed is judged by the others of its claim, one in ten is refused."
    )


def _first_points(rows: Sequence[store.Row], seeds: Sequence[str]) -> Mapping[str, list[store.Row]]:
    """The first points of the curve of each seed: those that are stored one by one."""
    found: dict[str, list[store.Row]] = {seed: [] for seed in seeds}
    for row in rows:
        curve = found.get(row["seed"])
        if curve is not None and len(curve) < FIRST_POINTS:
            curve.append(row)
    return found


def _equal(now: float, before: float) -> bool:
    return now == before or (math.isnan(now) and math.isnan(before))


def _within(now: float, before: float, tolerance: float) -> bool:
    return _equal(now, before) or abs(now - before) <= tolerance * abs(before)


def _as_another_seed(now: float, stored: Sequence[float]) -> bool:
    """Whether a value is where a further seed may be beside the stored ones."""
    finite = [value for value in stored if math.isfinite(value)]
    if len(finite) < LEAST_SEEDS:
        return False
    low, high = prediction_interval(finite, FURTHER_SEEDS)
    return bool(low <= now <= high)
