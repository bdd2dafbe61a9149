"""``docs/results.md``: published beside measured, met or not, a row for each claim."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.reproduce.changes import change_text, read_changes
from experiments.reproduce.checkout import MANIFEST, ROOT
from experiments.reproduce.claims import Claim, Earlier, EarlierSeeds, Manifest, seed_list
from experiments.reproduce.entries import (
    MET,
    NONE,
    NOT_MET,
    REPORTED,
    SOME,
    Entry,
    goal_text,
    lost_seeds,
    measured_text,
    read_entries,
    verdict,
    verdict_text,
)
from experiments.reproduce.export import export
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.runs import shown_command
from experiments.reproduce.store import Row, runs_path
from experiments.reproduce.thumbnail import thumbnail
from experiments.reproduce.verified import read_verified
from lightning_rl.core.lines import say
from lightning_rl.lab.tables import Rows, markdown

HOW_TO_READ = Path(__file__).with_name("how_to_read.md")
FILTER = (
    '<div id="ledger-filter"></div>\n<script src="../ledger.js" defer></script>\n\n'
    "The families are folded; on the site a line here shows the claims that have all of its words."
)
FOLD = '<details class="ledger" markdown="1">\n<summary>{}</summary>'
_THINNED = "Not to be computed again, as the curves that are kept are thinned"
_COLUMNS = (
    "claim",
    "published",
    "what differs here",
    "here, 95 % interval",
    "verdict",
    "goal",
    "seeds",
    "earlier seeds",
    "settings tried",
    "unit",
    "machine",
    "code",
)


_SHOWN = (
    "task",
    "published",
    "what differs here",
    "here, 95 % interval",
    "goal",
    "verdict",
    "claim",
)


_BRIEF = (
    "task",
    "unit",
    "here, 95 % interval",
    "curve",
    "seeds",
    "published",
    "what differs here",
    "goal of ours",
)
_THEIRS = "sb3-"


def ledger(manifest: Manifest, root: Path, commit: str) -> str:
    """The page of what is measured in ``root``; seeds of another commit than this one say so."""
    entries = read_entries(manifest, root)
    verdicts = {name: verdict(entry, entries) for name, entry in entries.items()}
    families: dict[str, list[Entry]] = {}
    for entry in entries.values():
        families.setdefault(entry.claim.family, []).append(entry)
    elsewhere = [("claim", "what", "goal", "where")]
    for name, each in manifest.elsewhere.items():
        elsewhere.append((name, each.task, each.goal, each.see))
    parts = [
        "# Results",
        "Made by `lightning-rl reproduce --ledger` from `results/claims.yaml` and the CSVs that it "
        "names; not to be edited.",
        f"Built at commit {commit}.",
        markdown(counts(families, verdicts)),
        HOW_TO_READ.read_text().strip(),
        FILTER,
        *(_family(name, its, verdicts, manifest, root) for name, its in families.items()),
        "## Not measured by this command",
        markdown(elsewhere),
        "## Files of before this page",
        "How each was made. `{run}` is the run directory of the training before, `{out}` the file.",
        "\n".join(_earlier(path, each) for path, each in manifest.earlier.items()),
    ]
    return "\n\n".join(parts) + "\n"


def counts(families: Mapping[str, Sequence[Entry]], verdicts: Mapping[str, str]) -> Rows:
    """The table at the top: how many claims have which verdict, or are met after earlier seeds."""
    words = (NOT_MET, REPORTED, SOME, NONE)

    def row(name: str, entries: Sequence[Entry]) -> Sequence[str]:
        found = [verdicts[entry.name] for entry in entries]
        met = [entry for entry in entries if verdicts[entry.name] == MET]
        again = sum(bool(entry.claim.earlier_seeds) for entry in met)
        numbers = [len(found), len(met), again, *map(found.count, words)]
        return name, *map(str, numbers)

    rows = [row(name, its) for name, its in families.items()]
    total = row("**all**", [entry for its in families.values() for entry in its])
    return [("", "claims", MET, "of these after earlier seeds", *words), *rows, total]


def _family(
    name: str, entries: Sequence[Entry], verdicts: Mapping[str, str], manifest: Manifest, root: Path
) -> str:
    """A table of what is claimed and measured, and where each comes from, folded away."""
    changes, verified = read_changes(root), read_verified(root)
    rows: Rows = [_COLUMNS]
    sources = []
    for entry in entries:
        since = {}
        for commit in entry.commits:
            since[commit] = change_text(changes.get((entry.name, commit)))
        rows.append(_row(entry, verdicts[entry.name], code_text(since.values())))
        sources.append(_source(entry, manifest, root, since, verified.get(entry.name)))
    claims = f"{len(entries)} claim{'s' * (len(entries) != 1)}"
    return (
        f"## {name}\n\n{FOLD.format(claims)}\n\n{markdown(rows)}\n\n"
        + "\n".join(sources)
        + "\n\n</details>"
    )


def show(given: Namespace) -> None:
    """Prints what is published and measured of some claims."""
    root = Path() if MANIFEST.exists() else ROOT  # a checkout that one is in, or this one
    manifest = load_claims(root / MANIFEST)
    if given.export is not None:
        export(manifest.chosen(given.ids), root, given.export)
        return
    entries = read_entries(manifest, root)
    if given.brief:
        brief(list(manifest.chosen(given.ids)), entries, root)
        return
    rows: Rows = [_SHOWN]
    for name, claim in manifest.chosen(given.ids).items():
        entry = entries[name]
        word = verdict(entry, entries)
        here = NONE
        if word != NONE:
            here = f"{measured_text(entry)}, seeds {_seeds(entry)}{_beside(entry)}"
        published = _published(claim)
        if claim.published is not None and claim.published.value is None:
            published = claim.published.text
        row = (
            _task(claim),
            published,
            _otherwise(claim),
            here,
            goal_text(claim.goal),
            verdict_text(entry, word),
            f"`{name}`",
        )
        rows.append(row)
    say(*markdown(rows).split("\n"))


def brief(names: Sequence[str], entries: Mapping[str, Entry], root: Path) -> None:
    """Prints a short line of each claim.

    ``beside-..`` claims have what ``sb3-..`` ones measure instead of what is published.
    """
    rows: Rows = [_BRIEF]
    for name in names:
        entry = entries[name]
        claim = entry.claim
        published, differs = _published(claim), ""
        if claim.published is not None:
            differs = ", ".join(claim.published.here.found) or "nothing that is known"
        theirs = entries.get(_THEIRS + name.removeprefix("beside-"))
        if theirs is not None:
            published = f"Stable-Baselines3: {measured_text(theirs)}"
            differs = _otherwise(claim)
        rows.append(
            (
                f"[{_task(claim)}](results.md#{name})",
                claim.unit,
                measured_text(entry) + (f"; {entry.sweeps.chance}" if entry.sweeps else ""),
                thumbnail(root, claim),
                str(len(entry.values)),
                published,
                differs,
                f"{goal_text(claim.goal)}: {verdict_text(entry, verdict(entry, entries))}",
            )
        )
    say(*markdown(rows).split("\n"))


def _task(claim: Claim) -> str:
    """What is measured, in a few words."""
    return re.split("[:,(]", claim.task)[0].strip()


def code_text(since: Iterable[str]) -> str:
    """Of the code of a claim's seeds, in a word: whether it is the one of today."""
    texts = list(since)
    if any("compiled" in text for text in texts):
        return "stale, compiled"
    return "stale" if any(texts) else ""


def _row(entry: Entry, word: str, code: str) -> tuple[str, ...]:
    claim = entry.claim
    return (
        f"`{entry.name}`",
        _published(claim),
        _otherwise(claim),
        measured_text(entry) + _beside(entry),
        verdict_text(entry, word),
        goal_text(claim.goal),
        _seeds(entry),
        "; ".join(_earlier_seeds(each) for each in claim.earlier_seeds),
        "not counted" if claim.tried is None else str(claim.tried),
        claim.unit,
        "; ".join(entry.machines),
        code,
    )


def _beside(entry: Entry) -> str:
    return f"; {entry.sweeps.chance}; {entry.sweeps.worst}" if entry.sweeps else ""


def _published(claim: Claim) -> str:
    if claim.published is None:
        return "–"
    value = claim.published.value
    return "see below" if value is None else f"{value:,.6g}"


def _otherwise(claim: Claim) -> str:
    return "" if claim.published is None else claim.published.here.text


def _seeds(entry: Entry) -> str:
    some = 0 < len(entry.values) < entry.asked
    return f"{len(entry.values)} of {entry.asked}" if some else entry.claim.seeds


def _earlier_seeds(each: EarlierSeeds) -> str:
    """Which, the mean of those that got there, how far they spread, and how many never did."""
    values = [value for value in each.values if math.isfinite(value)]
    if not values:
        return f"{each.seeds}: not kept"
    text = f"{each.seeds}: {_four_digits(sum(values) / len(values))}"
    if len(values) > 1:
        text += f" ({_four_digits(min(values))} to {_four_digits(max(values))})"
    if len(values) < len(each.values):
        text += f", {len(each.values) - len(values)} never"
    return text


def _four_digits(value: float) -> str:
    """Without an exponent: 12345.6 is 12,350."""
    return f"{float(f'{value:.4g}'):,.9g}"


def _earlier(path: str, each: Earlier) -> str:
    shown = f"`{path}`" if "*" in path else f"[{path.removeprefix('results/')}](../{path})"
    lines = [f"* {shown}: {each.made}"]
    return "\n".join([*lines, *(f"  `lightning-rl {command}`" for command in each.commands)])


def _source(
    entry: Entry, manifest: Manifest, root: Path, since: Mapping[str, str], verified: Row | None
) -> str:
    """What a claim is, in a few lines."""
    claim = entry.claim
    lines = [f'* <a id="{entry.name}"></a>**`{entry.name}`**: {claim.task}.']
    if claim.published is not None:
        lines.append(f"  Published: {claim.published.text} ({claim.published.source}).")
    for each in claim.earlier_seeds:
        lines.append(f"  Earlier seeds {_earlier_seeds(each)}; then: {each.then}.")
    seeds = f"{entry.asked} seed{'s' * (entry.asked != 1)}"
    lines.append(f"  {seeds}, {hours_text(entry, manifest)}: `{shown_command(claim)}`")
    if entry.values:
        best = [value for value in entry.bests if math.isfinite(value)]
        beside = ""
        if best and claim.read.in_unit_of_curve:
            beside = f" best over time {sum(best) / len(best):,.1f};"
        values = ", ".join(f"{value:,.6g}" for value in entry.values)
        path = Path(claim.curves_file) if claim.columns else runs_path(Path(), claim)
        lines.append(f"  Seeds one by one: {values};{beside} [{path.name}](../{path}).")
        if lost := lost_seeds(root, claim):
            lines.append(f"  {_THINNED}: seed{'s' * (len(lost) > 1)} {', '.join(lost)}.")
        lines.append(f"  {_commits(since)}.")
    if verified is not None:
        lines.append(
            f"  Last verified {verified['date']} on {verified['machine']}: {verified['result']}."
        )
    return "\n".join(lines)


def hours_text(entry: Entry, manifest: Manifest) -> str:
    """What the seeds cost, as expected and as measured."""
    text = f"{entry.claim.cpu_hours:g} CPU-hours expected"
    if (owner := manifest.shared_trainings.get(entry.name)) is not None:
        training = manifest.claims[owner]
        again = training.cpu_hours / len(seed_list(training.seeds))
        text += (
            f" after the trainings of `{owner}` ({again:.2g} a seed more where their run "
            "directories are gone)"
        )
    measured = [hours for hours in entry.hours if math.isfinite(hours)]
    # seeds trained at once: the first has the hours of all
    stacked = any("--num_seeds" in command for command in entry.claim.commands)
    if measured and not (stacked and len(measured) < len(entry.hours)):
        text += f", {sum(measured) / len(measured):.2g} a seed measured"
    return text


def _commits(since: Mapping[str, str]) -> str:
    """Which commits the seeds are of, each with what of their code has changed since."""
    texts = [f"{commit}, {changed}" if changed else commit for commit, changed in since.items()]
    made = "Made at commit " if len(texts) == 1 else "Made at several commits: "
    return made + "; ".join(texts)
