"""What a search gives to Ray Tune: the space, the algorithm, when to stop, and a line of progress.

Imported only where a search starts, as importing Ray takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ray import tune
from ray.tune.schedulers import ASHAScheduler, HyperBandForBOHB
from ray.tune.search.basic_variant import BasicVariantGenerator

from lightning_rl.core.lines import say
from lightning_rl.lab.tuning.results import Trial, best_trial, read_trials
from lightning_rl.lab.tuning.space import Space
from lightning_rl.lab.tuning.trial import FAILED, Plan

_LINE_EVERY_S = 10.0


def domain(space: Space) -> Any:
    """A space of ours as one of Ray's."""
    if space.form == "choice":
        return tune.choice(space.codes())
    low, high = space.values
    if space.form == "int":
        return tune.randint(low, high + 1)
    if space.form == "log_int":
        return tune.lograndint(low, high + 1)
    if space.form == "uniform":
        return tune.uniform(low, high)
    return tune.loguniform(low, high)


def algorithm(plan: Plan) -> tuple[Any, Any]:
    """What draws the settings of trials, and what stops them early."""
    reports: dict[str, Any] = {"time_attr": "report", "max_t": plan.tune.reports}
    reports["reduction_factor"] = 3
    if plan.tune.algorithm == "bohb":
        return _bohb(plan.options.seed), HyperBandForBOHB(**reports, stop_last_trials=False)
    halving = ASHAScheduler(**reports, grace_period=1)
    if plan.tune.algorithm == "asha":
        return BasicVariantGenerator(random_state=plan.options.seed), halving
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return OptunaSearch(seed=plan.options.seed), halving


def _bohb(seed: int) -> Any:
    from ray.tune.search.bohb import TuneBOHB  # of an extra

    class ResumableBOHB(TuneBOHB):
        """In Ray's state of a killed search a trial may be paused that the searcher has already
        counted as complete.
        """

        def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
            drawn = {}
            for key, value in result.items():
                if key.startswith("config/"):
                    drawn[key.removeprefix("config/")] = value
            self.trial_to_params.setdefault(trial_id, drawn)
            super().on_trial_result(trial_id, result)

        def on_trial_complete(
            self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
        ) -> None:
            if trial_id in self.trial_to_params:
                super().on_trial_complete(trial_id, result, error)

    return ResumableBOHB(seed=seed)


@dataclass
class StopWhereAllFail(tune.Stopper):
    """Ends the search once a trial has noted that none can give a score."""

    plan: Plan

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return (self.plan.folder / FAILED).exists()


class Progress(tune.Callback):
    """A line now and then: trials done, the best so far, and the time left."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.started = self.printed = time.monotonic()
        self.done_at_start: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Ray keeps this with the search; a process that resumes it has a clock and a count of its
        own.
        """
        return Progress, (self.plan,)

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        self.show(trials, False)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.show(trials, True)

    def show(self, trials: list[Any], now: bool) -> None:
        """Says how far the search is. now: also where the last line was printed a moment ago."""
        done = sum(each.is_finished() for each in trials)
        if self.done_at_start is None:
            self.done_at_start = done - now
        if not now and time.monotonic() - self.printed < _LINE_EVERY_S:
            return
        self.printed = time.monotonic()
        new = done - self.done_at_start
        per_trial = (self.printed - self.started) / new if new else None
        say(progress_line(self.plan, read_trials(self.plan.folder), done, per_trial), error=True)


def progress_line(plan: Plan, trials: Sequence[Trial], done: int, per_trial: float | None) -> str:
    """What a person wants to know of a search that is running. per_trial: seconds, once that is
    known.
    """
    facts = [f"{done}/{plan.tune.trials} trials", "no score yet"]
    if best := best_trial(trials, plan.tune.mode):
        facts[1] = f"best {best.score:.4g} ({best.name})"
    if per_trial is not None:
        facts.append(f"ETA {per_trial * (plan.tune.trials - done) / 60:.0f} min")
    return f"tune {plan.options.implementation} {plan.options.gamename}: {' · '.join(facts)}"
