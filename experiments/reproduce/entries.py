"""Claims and what is measured of them: values, verdicts, and both in words."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.reproduce.checkout import MANIFEST
from experiments.reproduce.claims import Claim, Goal, Manifest, seed_list
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.reading import counted, statistic
from experiments.reproduce.store import (
    Row,
    kept_path,
    number,
    read_curves,
    read_kept_rows,
    read_runs,
    runs_path,
)
from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import difference_interval, mean_interval
from lightning_rl.functional.statistics import sampling_floor
from lightning_rl.lab.tables import interval

MET, NOT_MET, SOME, NONE, REPORTED = "met", "not met", "some seeds", "not run yet", "reported"
_DIGITS = 1e-3  # numbers are kept in four digits and more


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim and its measured seeds: values, bests, CPU-hours and commits are in their order.

    machines: each once; sweeps: what is to be known beside an error of obedience.
    """

    name: str
    claim: Claim
    values: Sequence[float]
    bests: Sequence[float]
    hours: Sequence[float]
    commits: Sequence[str]
    machines: Sequence[str]
    sweeps: Sweeps | None = None

    @property
    def asked(self) -> int:
        return len(seed_list(self.claim.seeds))


@dataclasses.dataclass(frozen=True)
class Sweeps:
    """Beside an error of obedience: what chance alone would leave of it, and the worst command.

    floor: what chance leaves, in the unit of the claim; seed, asked, obtained: of the command that
    was missed by most, and its two returns.
    """

    floor: float
    seed: float
    asked: float
    obtained: float

    @property
    def error(self) -> float:
        """How far the worst is off."""
        return abs(self.obtained - self.asked)

    @property
    def chance(self) -> str:
        """What chance alone leaves of the error, for a cell of a table."""
        digits = 1 if self.floor >= 10 else 2
        return f"chance alone: {self.floor:,.{digits}f}"

    @property
    def worst(self) -> str:
        """The worst command, for a cell of a table."""
        asked, obtained = f"{self.asked:,.1f}", f"{self.obtained:,.1f}"
        return f"worst: seed {self.seed:.0f} asked for a return of {asked} obtains {obtained}"


def read_sweeps(root: Path, claim: Claim) -> Sweeps | None:
    """What the rows of the sweeps of all seeds say, of claims of an error that keep them."""
    if "obtained_sd" not in claim.read.rows or "error" not in str(claim.read.key):
        return None
    path = root / claim.curves_file
    names = ("seed", "commanded", "obtained_mean", "obtained_sd", "episodes")
    by_seed: dict[float, list[list[float]]] = {}
    for row in read_curves(root, claim):
        seed, *numbers = (number(row, name, path) for name in names)
        by_seed.setdefault(seed, []).append(numbers)
    if not by_seed:
        return None
    floors, missed = [], []
    for seed, rows in by_seed.items():
        commands, returns, sd, episodes = zip(*rows, strict=True)
        unit = max(commands) - min(commands) if claim.read.key == "error_share" else 1.0
        floors.append(sampling_floor(sd, episodes) / unit)
        for asked, obtained in zip(commands, returns, strict=True):
            missed.append((abs(obtained - asked), seed, asked, obtained))
    return Sweeps(statistics.fmean(floors), *max(missed)[1:])


def read_entry(name: str, claim: Claim, root: Path) -> Entry:
    """A claim with what is measured of it."""
    rows = read_runs(root, claim)
    path = runs_path(root, claim)
    return Entry(
        name,
        claim,
        values=[number(row, "value", path) for row in rows],
        bests=[number(row, "best", path) for row in rows],
        hours=[number(row, "cpu_hours", path) for row in rows],
        commits=[row["commit"] for row in rows],
        machines=list(dict.fromkeys(row["machine"] for row in rows)),
        sweeps=read_sweeps(root, claim),
    )


def read_entries(manifest: Manifest, root: Path) -> dict[str, Entry]:
    """All claims with what is measured of them."""
    return {name: read_entry(name, claim, root) for name, claim in manifest.claims.items()}


def verdict(entry: Entry, entries: Mapping[str, Entry]) -> str:
    """Met or not, once all seeds are there, or the others cannot save it any more."""
    goal, measured = entry.claim.goal, len(entry.values)
    if not measured:
        return NONE
    if goal is None:
        return SOME if measured < entry.asked else REPORTED
    failed = sum(not reaches(goal, value, goal.every) for value in entry.values)
    lost = failed > entry.asked - (goal.seeds or entry.asked)
    if measured < entry.asked:
        return NOT_MET if lost else SOME
    met = not lost and reaches(goal, sum(entry.values) / measured, goal.mean)
    if goal.above is not None:
        other = entries[goal.above]
        if len(other.values) < other.asked:
            return SOME
        met = met and bool(difference_interval(entry.values, other.values)[1] > 0)
    return MET if met else NOT_MET


def verdict_text(entry: Entry, word: str) -> str:
    """A verdict for a page; says what it lacks in seeds or in certainty, and where seeds were
    looked at, and settings changed, before these.
    """
    if word not in (MET, NOT_MET):
        return word
    if len(entry.values) < entry.asked:
        return f"**{word}** ({len(entry.values)} of {entry.asked} seeds)"
    goal = entry.claim.goal
    lacks = []
    if word == MET and entry.claim.earlier_seeds:
        lacks.append("after earlier seeds")
    if word == MET and goal is not None and goal.mean is not None:
        _, low, high = map(float, mean_interval(entry.values))
        if not reaches(goal, high if goal.lower else low, goal.mean):
            lacks.append("interval includes the goal")
    return f"**{word}** ({'; '.join(lacks)})" if lacks else f"**{word}**"


def reaches(goal: Goal, value: float, limit: float | None) -> bool:
    """Whether a value is as good as is asked for, if anything is."""
    return limit is None or (value <= limit if goal.lower else value >= limit)


def goal_text(goal: Goal | None) -> str:
    """A goal in words."""
    if goal is None:
        return "–"
    sign = "≤" if goal.lower else "≥"
    parts = []
    if goal.mean is not None:
        parts.append(f"mean {sign} {goal.mean:g}")
    if goal.every is not None:
        which = "every seed" if goal.seeds is None else f"{goal.seeds} seeds"
        parts.append(f"{which} {sign} {goal.every:g}")
    if goal.above is not None:
        parts.append(f"above {goal.above}")
    return ", ".join(parts)


def measured_text(entry: Entry) -> str:
    """The mean and its interval; how many seeds never got there, where values are infinite."""
    if not entry.values:
        return ""
    finite = [value for value in entry.values if math.isfinite(value)]
    never = len(entry.values) - len(finite)
    if never:
        text = f"not reached by {never} of {len(entry.values)} seeds"
        if finite:
            text += f", the others at {', '.join(f'{value:,.6g}' for value in finite)}"
        return text
    mean, low, high = map(float, mean_interval(finite))
    return interval(mean, low, high, ",.1f" if abs(mean) >= 10 else ".2f")


def value_of_claim(name: str, what: str) -> float:
    """A number of a claim, or of the worst command of an error of obedience, as ``docs`` says."""
    claim = load_claims(MANIFEST).chosen([name])[name]
    numbers: dict[str, float] = {}
    if claim.published is not None and claim.published.value is not None:
        numbers["published"] = claim.published.value
    if (sweeps := read_sweeps(Path(), claim)) is not None:
        numbers |= {**dataclasses.asdict(sweeps), "error": sweeps.error}
    values = read_entry(name, claim, Path()).values
    if values:
        numbers |= _named(mean_interval(values))
        numbers |= {"min": min(values), "max": max(values), "seeds": float(len(values))}
    if what not in numbers:
        raise UserError(f"claim '{name}' has no '{what}' to be printed; it may not be measured yet")
    return numbers[what]


def difference_of_claims(name: str, less: str, what: str) -> float:
    """The mean of a claim less that of another, or an end of Welch's interval of it."""
    claims = load_claims(MANIFEST).chosen([name, less])
    values = read_entry(name, claims[name], Path()).values
    others = read_entry(less, claims[less], Path()).values
    if not values or not others or what not in ("mean", "low", "high"):
        raise UserError(
            f"claim '{name}' less '{less}' has no '{what}' to be printed; one may not be measured "
            "yet"
        )
    return _named(difference_interval(values, others))[what]


def _named(interval: Iterable[Any]) -> dict[str, float]:
    return dict(zip(("mean", "low", "high"), map(float, interval), strict=True))


def lost_seeds(root: Path, claim: Claim) -> list[str]:
    """The seeds of which what is kept gives another value than was read from the run.

    Curves and means that are kept are thinned, so not all values can be computed again.
    """
    if claim.read.tag is None and claim.read.keep is None:
        return []
    kept = read_curves(root, claim) if claim.read.tag else read_kept_rows(root, claim)
    path = kept_path(root, claim) or root / claim.curves_file
    by_seed: dict[str, list[Row]] = {}
    for row in kept:
        if all(row.get(name, wanted) == wanted for name, wanted in claim.read.where.items()):
            by_seed.setdefault(row["seed"], []).append(row)
    lost = []
    for run in read_runs(root, claim):
        value = _value_again(claim, by_seed.get(run["seed"], []), path)
        if not math.isclose(value, number(run, "value", path), rel_tol=_DIGITS):
            lost.append(run["seed"])
    return lost


def _value_again(claim: Claim, rows: Sequence[Row], path: Path) -> float:
    """What is read, of the rows of one seed."""
    read = claim.read
    if read.keep == "agents":
        return statistics.fmean(number(row, "return_mean", path) for row in rows)
    if read.keep == "means":
        (row,) = rows
        curve = np.array([float(cell) for cell in row["returns"].split()])
        every = number(row, "every", path)
    else:
        steps = np.array([number(row, "env_steps", path) for row in rows])
        values = np.array([number(row, str(read.tag), path) for row in rows])
        curve = counted(read, steps, values)
        every = 1.0
    return statistic(read, every * np.arange(1, len(curve) + 1), curve)
