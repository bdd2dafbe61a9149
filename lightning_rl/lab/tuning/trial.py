"""One trial: the seeds of one setting, trained stretch by stretch, so that all of them can be
judged together.

All of a trial is on disk: its runs with their checkpoints, and a record of what it reported. So one
that was paused or killed goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from lightning_rl.core.config import Layer, build_config, config_layers, refuse_ignored
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import appending, read_lines, remove, write_text
from lightning_rl.core.schema import MethodConfig
from lightning_rl.core.stopping import Stopped
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.lab.tables import csv_lines, csv_rows
from lightning_rl.lab.tuning.space import TuneConfig, spaces
from lightning_rl.methods.registry import implementation
from lightning_rl.run.callbacks import StopAtBudget
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import check_accelerator, run_config
from lightning_rl.run.runtime import prepare_process
from lightning_rl.run.train import run_training

COLUMNS = ("report", "budget", "score", "seed_scores")
SETTINGS, REPORTS, FAILED = "settings.yaml", "reports.csv", "failed.txt"


@dataclass(frozen=True)
class Plan:
    """A search: the run that every trial varies, and its ``tune:`` block.

    options: with an absolute logdir, and without an address: ray_address is where the trials run,
    None for this machine.
    """

    options: RunOptions
    tune: TuneConfig
    ray_address: str | None = None

    @property
    def folder(self) -> Path:
        """Where all of the search is."""
        return self.options.run_dir.parent / "tune"

    @property
    def fixed(self) -> dict[str, Any]:
        """What all trials set: the budget counts, as it may be the only stop rule that they
        have.
        """
        return {**self.options.settings, **self.tune.settings, **self.tune.budget}

    @property
    def _layers(self) -> list[Layer]:
        """The values of the run's config without what is set, the most special last."""
        o = self.options
        return config_layers(o.implementation, o.gamename, o.preset, o.config)

    def _alone(self) -> dict[str, Any]:
        """Values of the searched keys for a config without a trial's settings: none, if the config
        is valid without them.

        Otherwise those that are null get the first value of their space, as at least one of several
        keys may have to be set.
        """
        try:
            run_config(dataclasses.replace(self.options, settings=self.fixed))
        except UserError:
            values: dict[str, Any] = {}
            for _, layer in self._layers:
                values |= layer
            missing = [
                space for space in spaces(self.tune.search) if values.get(space.key, ...) is None
            ]
            return {space.key: space.bounds()[0] for space in missing}
        return {}

    def settings(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The searched keys' values for what the search algorithm drew, without those that make
        no difference beside others.
        """
        found = {space.key: space.decode(drawn[space.key]) for space in spaces(self.tune.search)}
        # The keys of single agents, ``agent.DDQN.gamma``, are left out: naming one would choose it.
        plain = {key: value for key, value in found.items() if "." not in key}
        layers = [*self._layers, ("--set", {**self.fixed, **plain})]
        schema = implementation(self.options.implementation).Config
        try:
            ignored_keys = build_config(schema, layers).ignored_keys()
        except UserError:  # a combination that cannot be, as its training will say
            return found
        return {key: value for key, value in found.items() if key not in ignored_keys}

    def runs(self, name: str, settings: Mapping[str, Any]) -> list[RunOptions]:
        """The runs of a trial, with the whole budget: one of all seeds where the method stacks
        them, else one for each.
        """
        base = self.options
        run = dataclasses.replace(
            base,
            exp_name=f"{base.exp_name}/{base.implementation}/tune/{name}",
            settings={**self.fixed, **settings},
            num_seeds=self.tune.seeds,
        )
        return [run] if implementation(base.implementation).stackable else run.single_runs()

    def config(self, settings: Mapping[str, Any]) -> MethodConfig:
        """The whole config of a trial with these settings."""
        return run_config(
            dataclasses.replace(self.options, settings={**self._alone(), **self.fixed, **settings})
        )

    def check(self) -> None:
        """UserError for a search that cannot run, e.g. a space beyond what a key may be."""
        config = self.config({})
        name = self.options.implementation
        # one is made here, so that what does not fit is refused once, not by each trial
        implementation(name)(self.options.gamename, implementation=name, config=config)
        check_accelerator(self.options)
        search = self.tune.search
        inner = [key for key in search if "." in key and key.partition(".")[0] not in search]
        if inner:
            refuse_ignored(config.ignored_keys(), ("tune search", inner))
        others = self._alone()
        for space in spaces(self.tune.search):
            for value in space.bounds():
                settings = {**others, space.key: value}
                run_config(self.runs("check", settings)[0], "tune search")


def run_trial(plan: Plan, name: str, settings: Mapping[str, Any]) -> Iterator[dict[str, float]]:
    """Trains the trial's runs to 1/reports, 2/reports, .. of the budget; after each, the mean score
    over seeds.

    All the while the runs' budget is the whole one, which annealing is a share of, so that they
    become those of the best settings by themselves. What was reported before is not done again;
    where nothing is left to do, the last report is given once more, as the search may have been
    killed before it received it. UserError where a run fails, e.g. diverges; UnknownScalarError
    where it does not log the metric.
    """
    prepare_process()
    folder, tune = plan.folder / name, plan.tune
    write_text(folder / SETTINGS, yaml.safe_dump(dict(settings), sort_keys=False))
    remove(folder / FAILED)  # of an earlier start
    ((key, total),) = tune.budget.items()
    before_now = read_reports(folder)
    if len(before_now) >= tune.reports:
        yield {name: float(before_now[-1][name]) for name in COLUMNS[:3]}
    for number in range(len(before_now) + 1, tune.reports + 1):
        budget = round(total * number / tune.reports)
        begin = None
        if key == "max_env_steps":
            begin = round(total * (number - 1) / tune.reports)
        scores = []
        for run in plan.runs(name, settings):
            resumed = dataclasses.replace(run, resume=True)
            ended = run_training(resumed, [StopAtBudget(key, budget)])
            if ended.signal:
                raise Stopped(ended.signal)
            for seed in run.single_runs():
                scores.append(stretch_score(seed.run_dir, tune.metric, begin))
        report = {"report": number, "budget": budget, "score": float(np.mean(scores))}
        row = [*report.values(), " ".join(f"{score:.6g}" for score in scores)]
        with appending(folder / REPORTS, ",".join(COLUMNS), "move it away") as reports:
            reports.append(csv_lines([row]))
        yield report


def stretch_score(run_dir: Path, metric: str, after: float | None) -> float:
    """Mean of the metric's values after so many env_steps; the last one where there is none, or
    after is None.
    """
    curve = read_scalar(run_dir, metric)
    new = curve.value[curve.env_steps > after] if after is not None else curve.value[-1:]
    return float(new.mean() if new.size else curve.value[-1])


def read_reports(folder: Path) -> list[dict[str, str]]:
    """What a trial has reported so far."""
    path = folder / REPORTS
    if not path.exists():
        return []
    return list(csv_rows(read_lines(path, "trial's reports")))


def fail(folder: Path, error: UserError) -> None:
    """Notes why a trial, or the search that the folder is of, has ended before its time."""
    write_text(folder / FAILED, f"{error}\n")
