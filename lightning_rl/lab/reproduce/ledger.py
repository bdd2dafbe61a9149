"""``docs/results.md``: what is published beside what was measured, met or not, one row for each claim."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shorten
from lightning_rl.lab.reports.numbers import matching_rows
from lightning_rl.lab.reproduce.checkout import MANIFEST
from lightning_rl.lab.reproduce.claims import Claim, Earlier, Goal, Manifest, Tuning, load_claims, seed_list
from lightning_rl.lab.reproduce.runs import shown_command
from lightning_rl.lab.reproduce.store import number, read_runs, runs_path
from lightning_rl.lab.tables import interval, markdown

MET, NOT_MET, SOME, NONE, REPORTED = "met", "not met", "some seeds", "not run yet", "reported"
_HOW = """\
Every number here is on seeds from 100 on that no trial had seen, run once, none left out; settings are tuned on seeds 0 to 9
(those of before this page on 1 to 3 and 25 to 29). The value of a run is that of its end; the mean over seeds has the 95 %
interval of Student's t, which covers that much for normal and mildly skewed scores, and less for others
([how much](evidence.md)). *Reported*: there is no goal. *Some seeds*: not all that are asked for are measured yet. `{run}` in a
command is the run directory of the training before it, `{folder}` any folder. `lightning-rl reproduce --verify NAME` runs the
first epochs of a row again and compares."""
_BUILT = re.compile(r"^Built at commit (\w+)\.$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim and the seeds that are measured: values, bests and commits in the order of the seeds."""

    name: str
    claim: Claim
    values: Sequence[float]
    bests: Sequence[float]
    commits: Sequence[str]
    machines: Sequence[str]

    @property
    def asked(self) -> int:
        return len(seed_list(self.claim.seeds))


def read_entries(manifest: Manifest, root: Path) -> dict[str, Entry]:
    """All claims with what is measured of them."""
    found = {}
    for name, claim in manifest.claims.items():
        rows, path = read_runs(root, claim), runs_path(root, claim)
        values, bests = ([number(row, column, path) for row in rows] for column in ("value", "best"))
        machines = list(dict.fromkeys(row["machine"] for row in rows))
        found[name] = Entry(name, claim, values, bests, [row["commit"] for row in rows], machines)
    return found


def verdict(entry: Entry, entries: Mapping[str, Entry]) -> str:
    """Met or not, once all seeds are there."""
    if not entry.values:
        return NONE
    if len(entry.values) < entry.asked:
        return SOME
    goal = entry.claim.goal
    if goal is None:
        return REPORTED
    met = [reaches(goal, sum(entry.values) / len(entry.values), goal.mean)]
    reached = sum(reaches(goal, value, goal.every) for value in entry.values)
    met.append(reached >= (goal.seeds or len(entry.values)))
    if goal.above is not None:
        other = entries[goal.above]
        if len(other.values) < other.asked:
            return SOME
        from lightning_rl.functional.intervals import difference_interval

        met.append(bool(difference_interval(entry.values, other.values)[1] > 0))
    return MET if all(met) else NOT_MET


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
        reached = f", the others at {', '.join(f'{value:,.6g}' for value in finite)}" if finite else ""
        return f"not reached by {len(entry.values) - len(finite)} of {len(entry.values)} seeds{reached}"
    from lightning_rl.functional.intervals import mean_interval

    mean, low, high = map(float, mean_interval(finite))
    return interval(mean, low, high, ",.1f" if abs(mean) >= 10 else ".2f")


def ledger(manifest: Manifest, root: Path, commit: str) -> str:
    """The page. commit: of the checkout that it is built from; seeds of another one say so."""
    entries = read_entries(manifest, root)
    verdicts = {name: verdict(entry, entries) for name, entry in entries.items()}
    counts = Counter(verdicts.values())
    rows: list[Sequence[str]] = [("claim", "published", "here, 95 % interval", "seeds", "goal", "", "settings tried", "again")]
    rows += [_row(entry, verdicts[name]) for name, entry in entries.items()]
    head = ("claims", MET, NOT_MET, REPORTED, SOME, NONE)
    summary = [head, (str(len(entries)), *(str(counts[word]) for word in head[1:]))]
    elsewhere = [("claim", "what", "goal", "where")]
    elsewhere += [(name, each.task, each.goal, each.see) for name, each in manifest.elsewhere.items()]
    tuned = [("claim", "on tuning seeds", "read from")]
    tuned += [
        (f"`{name}`", tuning_text(claim.tuning, root), _link(claim.tuning.csv, ".."))
        for name, claim in manifest.claims.items() if claim.tuning
    ]  # fmt: skip
    parts = [
        "# Results",
        "Made by `lightning-rl reproduce --ledger` from `results/claims.yaml` and the CSVs that it names; not to be edited.",
        f"Built at commit {commit}.",
        markdown(summary),
        _HOW,
        markdown(rows),
        "## Where each comes from",
        "\n".join(_source(entry, commit) for entry in entries.values()),
        "## Not measured by this command",
        markdown(elsewhere),
        "## On tuning seeds",
        "What the settings reached on the seeds that they were chosen on. This flatters and is no evidence.",
        markdown(tuned),
        "## Files of before this page",
        "How each was made. `{run}` is the run directory of the training before, `{out}` the file.",
        "\n".join(_earlier(path, each) for path, each in manifest.earlier.items()),
    ]
    return "\n\n".join(parts) + "\n"


def show(given: argparse.Namespace) -> None:
    """Prints what is published and measured of some claims; of one that is not run yet, what was measured before, and where."""
    manifest = load_claims(MANIFEST)
    entries = read_entries(manifest, Path())
    rows: list[Sequence[str]] = [("task", "published", "here, 95 % interval", "goal", "claim")]
    for name, claim in manifest.chosen(given.ids).items():
        entry, tuning = entries[name], claim.tuning
        word = verdict(entry, entries)
        here = f"{measured_text(entry)}, seeds {_seeds(entry, word)}"
        if word == NONE:
            here = NONE + (f"; before {tuning_text(tuning, Path())}, {_link(tuning.csv, '.')}" if tuning else "")
        what = re.split("[:,(]", claim.task)[0].strip()
        published = claim.published.text if claim.published and claim.published.value is None else _published(claim)
        rows.append((what, published, here, goal_text(claim.goal), f"`{name}`"))
    print(markdown(rows))


def value_of_claim(name: str, what: str) -> float:
    """A number of a claim: published, or measured: the mean, the ends of its interval, the least, the highest, how many seeds."""
    manifest = load_claims(MANIFEST)
    claim = manifest.chosen([name])[name]
    if what == "published" and claim.published is not None and claim.published.value is not None:
        return claim.published.value
    values = read_entries(manifest, Path())[name].values
    if not values or what not in ("mean", "low", "high", "min", "max", "seeds"):
        raise UserError(f"claim '{name}' has no '{what}' to be printed; it may not be measured yet")
    from lightning_rl.functional.intervals import mean_interval

    mean, low, high = map(float, mean_interval(values))
    return {"mean": mean, "low": low, "high": high, "min": min(values), "max": max(values), "seeds": float(len(values))}[what]


def tuning_text(tuning: Tuning, root: Path) -> str:
    """What was reached on tuning seeds: the mean and each seed, read from its CSV, or as the manifest says it."""
    if tuning.key is None:
        return tuning.text
    curves: dict[str, list[float]] = {}
    for row in matching_rows(root / tuning.csv, tuning.where):
        if row[tuning.by] not in ("mean", "iqm", "low", "high", "sd", "min", "reference"):  # of all runs, or of others
            curves.setdefault(row[tuning.by], []).append(float(row[tuning.key]))
    values = [sum(curve[-tuning.last :]) / len(curve[-tuning.last :]) for curve in curves.values()]
    if not values:
        raise UserError(f"'{tuning.csv}' has no seeds where {dict(tuning.where)}; mend tuning of the claim")
    return f"{sum(values) / len(values):.1f} ({', '.join(f'{value:.0f}' for value in values)}), {tuning.text}"


def built_at(page: str) -> str:
    """The commit that a page says it was built at; empty where it says none."""
    match = _BUILT.search(page)
    return match[1] if match else ""


def _row(entry: Entry, word: str) -> tuple[str, ...]:
    tried = "not counted" if entry.claim.tried is None else str(entry.claim.tried)
    again = f"`lightning-rl reproduce {entry.name}`"
    shown = f"**{word}**" if word in (MET, NOT_MET) else word
    goal, seeds = goal_text(entry.claim.goal), _seeds(entry, word)
    return f"`{entry.name}`", _published(entry.claim), measured_text(entry), seeds, goal, shown, tried, again


def _published(claim: Claim) -> str:
    published = claim.published
    return "–" if published is None else "see below" if published.value is None else f"{published.value:,.6g}"


def _seeds(entry: Entry, word: str) -> str:
    return f"{len(entry.values)} of {entry.asked}" if word == SOME else entry.claim.seeds


def _link(path: str, root: str) -> str:
    return f"[{path.removeprefix('results/')}]({root}/{path})".replace("(./", "(")


def _earlier(path: str, each: Earlier) -> str:
    shown = f"`{path}`" if "*" in path else _link(path, "..")
    lines = [f"* {shown}: {each.made}"]
    return "\n".join([*lines, *(f"  `lightning-rl {command}`" for command in each.commands)])


def _source(entry: Entry, commit: str) -> str:
    """What a claim is, in a few lines."""
    claim = entry.claim
    lines = [f"* **`{entry.name}`**: {claim.task}."]
    if claim.published is not None:
        lines.append(f"  Published: {claim.published.text} ({claim.published.source}).")
    lines.append(f"  {len(seed_list(claim.seeds))} seeds, {claim.cpu_hours:g} CPU-hours expected: `{shown_command(claim)}`")
    if entry.values:
        best = [value for value in entry.bests if math.isfinite(value)]
        beside = f" best over time {sum(best) / len(best):,.1f};" if best else ""
        values = ", ".join(f"{value:,.6g}" for value in entry.values)
        lines.append(f"  Seeds one by one: {values};{beside} [{Path(claim.csv).name}](../{claim.csv}).")
        lines.append(f"  {_commits(entry.commits, commit)}; {'; '.join(entry.machines)}.")
    return "\n".join(lines)


def _commits(commits: Sequence[str], commit: str) -> str:
    """Which commits the seeds are of."""
    distinct = list(dict.fromkeys(commits))
    texts = [shorten(each, 12) if each == commit else f"**another commit, {each[:12]}**" for each in distinct]
    return ("Commit " if len(distinct) == 1 else "Seeds of several commits: ") + ", ".join(texts)
