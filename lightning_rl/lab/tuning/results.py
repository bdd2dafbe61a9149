"""The results of a search: its trials, a table of them, and the best settings as a YAML that
``--config`` takes.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import (
    is_recorded,
    read_text,
    record_of,
    refuse_foreign,
    was_there,
    write_text,
)
from lightning_rl.core.limits import shown
from lightning_rl.core.lines import say
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.lab.tables import counted, put_rows
from lightning_rl.lab.tuning.trial import FAILED, REPORTS, SETTINGS, Plan, read_reports

BEST, TABLE, SEARCH = "best.yaml", "trials.csv", "search.yaml"


@dataclass(frozen=True)
class Trial:
    """A trial on disk. reports: (budget, score) of each report; failure: why it ended before its
    time, or empty.
    """

    name: str
    settings: Mapping[str, Any]
    reports: Sequence[tuple[float, float]]
    seed_scores: str
    failure: str

    @property
    def score(self) -> float:
        return self.reports[-1][1] if self.reports else float("nan")


def _about(plan: Plan) -> dict[str, Any]:
    """What is searched, as ``search.yaml`` has it."""
    options = plan.options
    return {
        "implementation": options.implementation,
        "gamename": options.gamename,
        "seed": options.seed,
        "preset": options.preset,
        "reload": None if options.reload is None else str(options.reload),
        "config": {**options.config, **options.settings},
        "tune": dataclasses.asdict(plan.tune),
    }


def write_search(plan: Plan) -> None:
    """``search.yaml``: what is searched, for people and for the figure."""
    write_text(plan.folder / SEARCH, yaml.safe_dump(_about(plan), sort_keys=False))


def require_same(plan: Plan) -> None:
    """UserError where the search that is there is another one: its trials would be taken for
    those of this.
    """
    path = plan.folder / SEARCH
    old = _flat(read_search(plan.folder))
    new = _flat(yaml.safe_load(yaml.safe_dump(_about(plan))))
    for key in sorted(new.keys() | old.keys()):
        if old.get(key) != new.get(key):
            raise UserError(
                f"--resume: {key} is {shown(new.get(key))} now but {shown(old.get(key))} in "
                f"'{path}'; use the same settings, or another --exp_name for a new search"
            )


def _flat(about: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of ``search.yaml``, those of its blocks as ``tune.KEY`` and ``config.KEY``."""
    flat: dict[str, Any] = {}
    for name, value in about.items():
        if name in ("tune", "config"):
            flat |= {f"{name}.{key}": each for key, each in (value or {}).items()}
        else:
            flat[name] = value
    return flat


def read_search(folder: Path) -> dict[str, Any]:
    """What ``write_search`` wrote; UserError if it is not there."""
    try:
        return dict(read_yaml(folder / SEARCH))
    except (UserError, TypeError, ValueError) as error:
        raise UserError(
            f"'{folder}' is not the tune/ folder of a search: it has no whole {SEARCH}"
        ) from error


def read_trials(folder: Path) -> list[Trial]:
    """All trials of a search, also while it runs; UserError if there is none."""
    found = []
    for settings in sorted(folder.glob(f"*/{SETTINGS}")):
        recorded = record_of(settings) is None or is_recorded(settings)
        if not recorded and not was_there(settings):
            continue  # a folder of the user
        refuse_foreign(settings)
        trial, rows = settings.parent, read_reports(settings.parent)
        failure = read_text(trial / FAILED, "record").strip() if (trial / FAILED).exists() else ""
        try:
            reports = [(float(row["budget"]), float(row["score"])) for row in rows]
            seeds = rows[-1]["seed_scores"] if rows else ""
        except (KeyError, ValueError, TypeError) as error:
            remedy = "move its folder away, then start again"
            raise UserError(
                f"'{trial / REPORTS}' is not as a trial has written it; {remedy}"
            ) from error
        found.append(Trial(trial.name, read_yaml(settings) or {}, reports, seeds, failure))
    if not found:
        raise UserError(
            f"'{folder}' holds no trial: expected folders with {SETTINGS} and {REPORTS}, as "
            "--use_tune writes them"
        )
    return found


def best_trial(trials: Sequence[Trial], mode: str) -> Trial | None:
    """The best of the trials with the most reports: a score at a smaller budget says less. None
    where none has a score.
    """
    return next((trial for trial in ranked(trials, mode) if trial.reports), None)


def ranked(trials: Sequence[Trial], mode: str) -> list[Trial]:
    """Furthest first, then best first; of equally far ones, those whose score is no number last."""
    sign = 1 if mode == "max" else -1

    def place(trial: Trial) -> tuple[int, bool, float, str]:
        score = trial.score if trial.reports else 0.0
        return -len(trial.reports), math.isnan(score), -sign * score, trial.name

    return sorted(trials, key=place)


def write_results(plan: Plan, trials: Sequence[Trial]) -> None:
    """``best.yaml`` and ``trials.csv``; prints the table."""
    order = ranked(trials, plan.tune.mode)
    best, options = order[0], plan.options
    content = {
        "implementation": options.implementation,
        "gamename": options.gamename,
        # Whole, as a run's config.yaml has it: what a preset says is not lost.
        "config": dataclasses.asdict(plan.config(best.settings)),
    }
    ((key, total),) = plan.tune.budget.items()
    seeds = f"{options.seed} .. {options.seed + plan.tune.seeds - 1}"
    settings = ", ".join(f"{name}={plain(value)}" for name, value in best.settings.items())
    head = (
        f"# The best of {len(trials)} trials ({plan.tune.algorithm}): {plan.tune.metric} "
        f"{best.score:.6g}, mean of seeds {seeds} at {key} {best.reports[-1][0]:.0f} of {total}.\n"
        f"# It has {settings}\n"
    )
    write_text(plan.folder / BEST, head + yaml.safe_dump(content, sort_keys=False))
    table = [_row(trial, plan) for trial in order]
    write_text(plan.folder / TABLE, pd.DataFrame(table).to_csv(index=False, lineterminator="\n"))
    rows = [("trial", "state", key, "score", "settings")]
    for row in table:
        words = [f"{name}={row[name].replace(' ', '')}" for name in plan.tune.search]
        rows.append((row["trial"], row["state"], row[key], row["score"], " ".join(words)))
    method = f"{options.implementation} on {options.gamename}"
    put_rows(rows, f"{method}: {plan.tune.metric}, {counted([plan.tune.seeds])}")
    use = (
        f"--implementation {options.implementation} --gamename {options.gamename} --config "
        f"{shlex.quote(str(plan.folder / BEST))}"
    )
    if options.logdir != Path("exp_dir").absolute():
        use += f" --logdir {shlex.quote(str(options.logdir))}"
    if options.dataset is not None:
        use += f" --dataset {shlex.quote(str(options.dataset))}"
    if options.reload is not None:
        use += f" --reload {shlex.quote(str(options.reload))}"
    unseen = max(100, options.seed + plan.tune.seeds)
    say(
        f"best settings: {plan.folder / BEST}",
        f"use them, on a seed not searched: lightning-rl train {use} --seed {unseen}",
    )


def _row(trial: Trial, plan: Plan) -> dict[str, str]:
    (key,) = plan.tune.budget
    row = {"trial": trial.name, "state": state_of(trial, plan.tune.reports), key: "", "score": ""}
    if trial.reports:
        budget, score = trial.reports[-1]
        row |= {key: f"{budget:.6g}", "score": f"{score:.6g}"}
    row["seed_scores"] = trial.seed_scores
    return row | {name: plain(trial.settings.get(name)) for name in plan.tune.search}


def plain(value: Any) -> str:
    """A setting in few characters."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)


def state_of(trial: Trial, reports: int) -> str:
    """finished, stopped early, or failed and why."""
    if trial.failure:
        return f"failed: {trial.failure}"
    return "finished" if len(trial.reports) >= reports else "stopped early"
