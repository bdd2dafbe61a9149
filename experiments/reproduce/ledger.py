"""``docs/results.md``: what is published beside what was measured, met or not, one row for each
claim.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.reproduce.checkout import MANIFEST, ROOT
from experiments.reproduce.claims import Claim, Earlier, EarlierSeeds, Manifest
from experiments.reproduce.entries import (
    MET,
    NONE,
    NOT_MET,
    REPORTED,
    SOME,
    Entry,
    goal_text,
    measured_text,
    read_entries,
    verdict,
    verdict_text,
)
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.recomputed import lost_seeds
from experiments.reproduce.runs import shown_command
from experiments.reproduce.seeds import seed_list
from experiments.reproduce.store import runs_path
from lightning_rl.core.lines import say
from lightning_rl.lab.tables import markdown

_HOW = """\
A claim is one number together with all that makes it again: commands, seeds, budget, and what is read from the runs.

* **Seeds** are from 100 on, each is run once, and none is left out. Settings are tuned on seeds 0 to 9 (older
  ones on 1 to 3 and 25 to 29). Some were chosen anew after fresh seeds had been looked at: these are *earlier seeds*, and the
  claim is on others. Two trials saw seeds that are shown: of a setting of `pg-tuned-aac`, and of an agent that judges
  `se-suite-pendulum-*` (seeds 210 and 212). Both were dropped.
* **Earlier seeds**: fresh ones that were looked at before the settings, or the agents that judge, were what they are; mean (least
  to greatest). Such a claim had more than one chance to be met, so trust it less than one that has none; the table above counts
  them apart. What was changed stands below.
* **Here** is the mean over seeds with its 95 % interval, Student's t, which is far too narrow where
  single seeds fail ([by how much](evidence.md#what-an-interval-covers)). A seed counts as it is at the end of its run; the
  best over time only stands beside it.
* **Published** is what a paper or another program reports; *what differs here* says what our runs do in another way than those:
  method, budget, evaluation, seeds and schedule (what changes during a run, and what ends it). Of what is not named no difference
  is known.
* **Verdict**: *met* or *not met*, once all seeds are there, or too many have failed already; a mean is met by the number itself,
  and where its interval reaches beyond the goal, that is said; *above* another claim is met where the 95 % interval of the
  difference (Welch's) is above 0; *reported*, where there is no goal; *some seeds*, where some are still to be run; *not run
  yet*.
* **Settings tried** on tuning seeds before these were chosen; 1: those of the source alone; *not counted*: nobody kept count.
* **Seeds one by one**: values were read from whole curves, reports and tables, of which a part is kept. Those of scalars, of
  agents and mean curves that are kept (`.agents.csv`, `.means.csv`), and errors of obedience, can be computed again, except where
  a claim says that they cannot; of all others (evaluations at the end, slopes and rank correlations, agents that are not kept)
  the values alone are kept.
* **Machine**: the processor, and which of its vector instructions were used.
* **Commit**: what seeds were run with. Where work was committed anew, this history has it under another hash; `config_hash` in a
  claim's `.runs.csv` tells whether settings are the same.

`lightning-rl reproduce CLAIM` makes a row; `lightning-rl reproduce --verify CLAIM` runs the first epochs of its first seed again
and compares them with the stored curve. In commands, `N` is the seed, `{run}` the run directory of the training before,
`{folder}` any folder."""
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
)


def ledger(manifest: Manifest, root: Path, commit: str) -> str:
    """The page of what is measured in ``root``. commit: of the checkout; seeds of another one
    say so.
    """
    entries = read_entries(manifest, root)
    verdicts = {name: verdict(entry, entries) for name, entry in entries.items()}
    families: dict[str, list[Entry]] = {}
    for entry in entries.values():
        families.setdefault(entry.claim.family, []).append(entry)
    elsewhere = [("claim", "what", "goal", "where")]
    elsewhere += [
        (name, each.task, each.goal, each.see) for name, each in manifest.elsewhere.items()
    ]
    parts = [
        "# Results",
        "Made by `lightning-rl reproduce --ledger` from `results/claims.yaml` and the CSVs that it "
        "names; not to be edited.",
        f"Built at commit {commit}.",
        markdown(counts(families, verdicts)),
        _HOW,
        *(_family(name, its, verdicts, manifest, root, commit) for name, its in families.items()),
        "## Not measured by this command",
        markdown(elsewhere),
        "## Files of before this page",
        "How each was made. `{run}` is the run directory of the training before, `{out}` the file.",
        "\n".join(_earlier(path, each) for path, each in manifest.earlier.items()),
    ]
    return "\n\n".join(parts) + "\n"


def counts(
    families: Mapping[str, Sequence[Entry]], verdicts: Mapping[str, str]
) -> list[Sequence[str]]:
    """The table at the top: how many claims have which verdict, and how many of the met ones had
    other seeds before.
    """
    words = (NOT_MET, REPORTED, SOME, NONE)

    def row(name: str, entries: Sequence[Entry]) -> Sequence[str]:
        found = [verdicts[entry.name] for entry in entries]
        met = [entry for entry in entries if verdicts[entry.name] == MET]
        again = sum(bool(entry.claim.earlier_seeds) for entry in met)
        return (
            name,
            *map(str, (len(found), len(met), again, *(found.count(word) for word in words))),
        )

    rows = [row(name, its) for name, its in families.items()]
    total = row("**all**", [entry for its in families.values() for entry in its])
    return [("", "claims", MET, "of these after earlier seeds", *words), *rows, total]


def _family(
    name: str,
    entries: Sequence[Entry],
    verdicts: Mapping[str, str],
    manifest: Manifest,
    root: Path,
    commit: str,
) -> str:
    """A table of what is claimed and measured, and below it where each comes from."""
    rows = [_COLUMNS, *(_row(entry, verdicts[entry.name]) for entry in entries)]
    sources = "\n".join(_source(entry, manifest, root, commit) for entry in entries)
    return f"## {name}\n\n{markdown(rows)}\n\n{sources}"


def show(given: argparse.Namespace) -> None:
    """Prints what is published and measured of some claims."""
    root = (
        Path() if MANIFEST.exists() else ROOT
    )  # a checkout of one's own, or the one that this is of
    manifest = load_claims(root / MANIFEST)
    entries = read_entries(manifest, root)
    rows: list[Sequence[str]] = [
        (
            "task",
            "published",
            "what differs here",
            "here, 95 % interval",
            "goal",
            "verdict",
            "claim",
        )
    ]
    for name, claim in manifest.chosen(given.ids).items():
        entry, word = entries[name], verdict(entries[name], entries)
        here = (
            NONE
            if word == NONE
            else f"{measured_text(entry)}, seeds {_seeds(entry)}{_beside(entry)}"
        )
        what = re.split("[:,(]", claim.task)[0].strip()
        published = (
            claim.published.text
            if claim.published and claim.published.value is None
            else _published(claim)
        )
        otherwise = _otherwise(claim)
        rows.append(
            (
                what,
                published,
                otherwise,
                here,
                goal_text(claim.goal),
                verdict_text(entry, word),
                f"`{name}`",
            )
        )
    say(*markdown(rows).split("\n"))


def _row(entry: Entry, word: str) -> tuple[str, ...]:
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
    )


def _beside(entry: Entry) -> str:
    return f"; {entry.beside}" if entry.beside else ""


def _published(claim: Claim) -> str:
    published = claim.published
    return (
        "–"
        if published is None
        else "see below"
        if published.value is None
        else f"{published.value:,.6g}"
    )


def _otherwise(claim: Claim) -> str:
    return "" if claim.published is None else claim.published.here.text


def _seeds(entry: Entry) -> str:
    return (
        f"{len(entry.values)} of {entry.asked}"
        if 0 < len(entry.values) < entry.asked
        else entry.claim.seeds
    )


def _earlier_seeds(each: EarlierSeeds) -> str:
    """Which, the mean of those that got there, how far they spread, and how many never did."""
    values = [value for value in each.values if math.isfinite(value)]
    if not values:
        return f"{each.seeds}: not kept"
    spread = (
        f" ({_four_digits(min(values))} to {_four_digits(max(values))})" if len(values) > 1 else ""
    )
    never = f", {len(each.values) - len(values)} never" if len(values) < len(each.values) else ""
    return f"{each.seeds}: {_four_digits(sum(values) / len(values))}{spread}{never}"


def _four_digits(value: float) -> str:
    """Without an exponent: 12345.6 is 12,350."""
    return f"{float(f'{value:.4g}'):,.9g}"


def _link(path: str, root: str) -> str:
    return f"[{path.removeprefix('results/')}]({root}/{path})".replace("(./", "(")


def _earlier(path: str, each: Earlier) -> str:
    shown = f"`{path}`" if "*" in path else _link(path, "..")
    lines = [f"* {shown}: {each.made}"]
    return "\n".join([*lines, *(f"  `lightning-rl {command}`" for command in each.commands)])


def _source(entry: Entry, manifest: Manifest, root: Path, commit: str) -> str:
    """What a claim is, in a few lines."""
    claim = entry.claim
    lines = [f"* **`{entry.name}`**: {claim.task}."]
    if claim.published is not None:
        lines.append(f"  Published: {claim.published.text} ({claim.published.source}).")
    lines += [
        f"  Earlier seeds {_earlier_seeds(each)}; then: {each.then}."
        for each in claim.earlier_seeds
    ]
    seeds = len(seed_list(claim.seeds))
    lines.append(
        f"  {seeds} seed{'s' * (seeds != 1)}, {hours_text(entry, manifest)}: "
        f"`{shown_command(claim)}`"
    )
    if entry.values:
        best = [
            value for value in entry.bests if math.isfinite(value) and claim.read.in_unit_of_curve
        ]
        beside = f" best over time {sum(best) / len(best):,.1f};" if best else ""
        values = ", ".join(f"{value:,.6g}" for value in entry.values)
        path = Path(claim.curves_file) if claim.columns else runs_path(Path(), claim)
        lines.append(f"  Seeds one by one: {values};{beside} [{path.name}](../{path}).")
        if lost := lost_seeds(root, claim):
            lines.append(f"  {_THINNED}: seed{'s' * (len(lost) > 1)} {', '.join(lost)}.")
        lines.append(f"  {_commits(entry.commits, commit)}.")
    return "\n".join(lines)


def hours_text(entry: Entry, manifest: Manifest) -> str:
    """What the seeds cost: expected, of which the training is another claim's, and as measured."""
    text = f"{entry.claim.cpu_hours:g} CPU-hours expected"
    if (owner := manifest.shared_trainings.get(entry.name)) is not None:
        training = manifest.claims[owner]
        again = training.cpu_hours / len(seed_list(training.seeds))
        text += (
            f" after the trainings of `{owner}` ({again:.2g} a seed more where their run "
            "directories are gone)"
        )
    measured = [hours for hours in entry.hours if math.isfinite(hours)]
    return f"{text}, {sum(measured) / len(measured):.2g} a seed measured" if measured else text


def _commits(commits: Sequence[str], commit: str) -> str:
    """Which commits the seeds are of."""
    distinct = list(dict.fromkeys(commits))
    texts = [
        each if each == commit[:12] else f"**{each}**, another one than this page's"
        for each in distinct
    ]
    return ("Made at commit " if len(distinct) == 1 else "Made at several commits: ") + "; ".join(
        texts
    )
