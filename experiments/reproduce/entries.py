"""Claims and what is measured of them: values, verdicts, and both in words."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.reproduce.checkout import MANIFEST
from experiments.reproduce.claims import Claim, Goal, Manifest
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.seeds import seed_list
from experiments.reproduce.store import number, read_runs, runs_path
from experiments.reproduce.sweeps import read_sweeps
from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import difference_interval, mean_interval
from lightning_rl.lab.tables import interval

MET, NOT_MET, SOME, NONE, REPORTED = "met", "not met", "some seeds", "not run yet", "reported"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim and the seeds that are measured: in their order values, bests, CPU-hours and commits;
    each machine once.

    beside: what is to be known beside the value.
    """

    name: str
    claim: Claim
    values: Sequence[float]
    bests: Sequence[float]
    hours: Sequence[float]
    commits: Sequence[str]
    machines: Sequence[str]
    beside: str = ""

    @property
    def asked(self) -> int:
        return len(seed_list(self.claim.seeds))


def read_entry(name: str, claim: Claim, root: Path) -> Entry:
    """A claim with what is measured of it."""
    rows, path = read_runs(root, claim), runs_path(root, claim)
    values, bests, hours = (
        [number(row, column, path) for row in rows] for column in ("value", "best", "cpu_hours")
    )
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    sweeps = read_sweeps(root, claim)
    beside = sweeps.text if sweeps else ""
    return Entry(
        name, claim, values, bests, hours, [row["commit"] for row in rows], machines, beside
    )


def read_entries(manifest: Manifest, root: Path) -> dict[str, Entry]:
    """All claims with what is measured of them."""
    return {name: read_entry(name, claim, root) for name, claim in manifest.claims.items()}


def verdict(entry: Entry, entries: Mapping[str, Entry]) -> str:
    """Met or not, once all seeds are there, or so many have failed that the others cannot save
    it.
    """
    goal, measured = entry.claim.goal, len(entry.values)
    if not measured:
        return NONE
    failed = (
        0 if goal is None else sum(not reaches(goal, value, goal.every) for value in entry.values)
    )
    lost = goal is not None and failed > entry.asked - (goal.seeds or entry.asked)
    if measured < entry.asked:
        return NOT_MET if lost else SOME
    if goal is None:
        return REPORTED
    met = [not lost, reaches(goal, sum(entry.values) / measured, goal.mean)]
    if goal.above is not None:
        other = entries[goal.above]
        if len(other.values) < other.asked:
            return SOME
        met.append(bool(difference_interval(entry.values, other.values)[1] > 0))
    return MET if all(met) else NOT_MET


def verdict_text(entry: Entry, word: str) -> str:
    """A verdict for a page; says where seeds are missing, or the interval of a mean that is met
    reaches beyond the goal.
    """
    goal = entry.claim.goal
    if word == NOT_MET and len(entry.values) < entry.asked:
        return f"**{word}** ({len(entry.values)} of {entry.asked} seeds)"
    if word != MET or goal is None or goal.mean is None:
        return f"**{word}**" if word in (MET, NOT_MET) else word
    _, low, high = map(float, mean_interval(entry.values))
    sure = reaches(goal, high if goal.lower else low, goal.mean)
    return f"**{word}**" if sure else f"**{word}** (interval includes the goal)"


def reaches(goal: Goal, value: float, limit: float | None) -> bool:
    """Whether a value is as good as is asked for, if anything is."""
    return limit is None or (value <= limit if goal.lower else value >= limit)


def goal_text(goal: Goal | None) -> str:
    """A goal in words."""
    if goal is None:
        return "–"
    sign = "≤" if goal.lower else "≥"
    which = "every seed" if goal.seeds is None else f"{goal.seeds} seeds"
    parts = [
        f"mean {sign} {goal.mean:g}" if goal.mean is not None else "",
        f"{which} {sign} {goal.every:g}" if goal.every is not None else "",
        f"above {goal.above}" if goal.above is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def measured_text(entry: Entry) -> str:
    """The mean and its interval; how many seeds never got there, where values are infinite."""
    finite = [value for value in entry.values if math.isfinite(value)]
    if not entry.values:
        return ""
    if len(finite) < len(entry.values):
        reached = (
            f", the others at {', '.join(f'{value:,.6g}' for value in finite)}" if finite else ""
        )
        return (
            f"not reached by {len(entry.values) - len(finite)} of {len(entry.values)} "
            f"seeds{reached}"
        )
    mean, low, high = map(float, mean_interval(finite))
    return interval(mean, low, high, ",.1f" if abs(mean) >= 10 else ".2f")


def value_of_claim(name: str, what: str) -> float:
    """A number of a claim: published, or measured: the mean, the ends of its interval, the least,
    the highest, how many seeds.

    Of an error of obedience also its floor, and the error of the worst command, its seed, and what
    it asked for and obtained.
    """
    claim = load_claims(MANIFEST).chosen([name])[name]
    if what == "published" and claim.published is not None and claim.published.value is not None:
        return claim.published.value
    if (
        what in ("floor", "error", "seed", "asked", "obtained")
        and (sweeps := read_sweeps(Path(), claim)) is not None
    ):
        return float(getattr(sweeps, what))
    values = read_entry(name, claim, Path()).values
    if not values or what not in ("mean", "low", "high", "min", "max", "seeds"):
        raise UserError(f"claim '{name}' has no '{what}' to be printed; it may not be measured yet")
    mean, low, high = map(float, mean_interval(values))
    return {
        "mean": mean,
        "low": low,
        "high": high,
        "min": min(values),
        "max": max(values),
        "seeds": float(len(values)),
    }[what]


def difference_of_claims(name: str, less: str, what: str) -> float:
    """The mean of a claim less that of another, or an end of the interval of this difference,
    Welch's.
    """
    claims = load_claims(MANIFEST).chosen([name, less])
    values, others = (read_entry(each, claims[each], Path()).values for each in (name, less))
    if not values or not others or what not in ("mean", "low", "high"):
        raise UserError(
            f"claim '{name}' less '{less}' has no '{what}' to be printed; one may not be measured "
            "yet"
        )
    return dict(
        zip(("mean", "low", "high"), map(float, difference_interval(values, others)), strict=True)
    )[what]
