"""The search over trials with Ray Tune, on this machine or on a cluster that shares the logdir."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from lightning_rl.core.checks import optional_module
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import keep_record, read_text, refuse_foreign, remove
from lightning_rl.core.lines import say
from lightning_rl.core.modules import notes, take
from lightning_rl.core.outputs import Out
from lightning_rl.core.stopping import LEAVE_S, SIGNALS, after
from lightning_rl.evolution.cluster import join_cluster, leave_cluster
from lightning_rl.lab.scalars import UnknownScalarError
from lightning_rl.lab.tuning.placement import check_room, trial_bundles
from lightning_rl.lab.tuning.results import (
    BEST,
    SEARCH,
    TABLE,
    Trial,
    best_trial,
    ranked,
    read_search,
    read_trials,
    require_same,
    write_results,
    write_search,
)
from lightning_rl.lab.tuning.space import Space, spaces
from lightning_rl.lab.tuning.trial import FAILED, Plan, fail, run_trial
from lightning_rl.run.state import held

STATE = "ray"  # folder of Ray Tune's own state
NEEDS = {
    "asha": (),
    "optuna": ("optuna",),
    "bohb": ("ConfigSpace", "hpbandster.optimizers.config_generators.bohb"),
}
_LINE_EVERY_S = 10.0


def tune(plan: Plan, resume: bool) -> int:
    """Runs the search, or goes on with one that was stopped; the exit code."""
    plan.check()
    _require_packages(plan.tune.algorithm)
    state = plan.folder / STATE
    if state.exists() and not resume:
        raise UserError(
            f"'{plan.folder}' already holds a search; continue with --resume, or choose another "
            "--exp_name"
        )
    if resume and (plan.folder / SEARCH).exists():
        require_same(plan)
    os.environ.setdefault(
        "TUNE_GLOBAL_CHECKPOINT_S", "2"
    )  # what a kill may cost of the search's own state
    os.environ.setdefault(
        "TUNE_DISABLE_STRICT_METRIC_CHECKING", "1"
    )  # a trial may fail before its first report
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    joined = join_cluster(plan.ray_address)
    import ray

    try:
        check_room(trial_bundles(plan.options), ray.nodes())
        with held(plan.folder, "wait until that search has ended, or choose another --exp_name"):
            keep_record(plan.folder)
            for name in (BEST, TABLE, SEARCH, "search.png", "search.svg", "search.csv"):
                refuse_foreign(plan.folder / name)  # before the work
            remove(plan.folder / FAILED)  # of an earlier start
            write_search(plan)
            interrupted = _fit(plan, state, resume)
    finally:
        if joined:
            leave_cluster()
    if interrupted:
        say(
            f"interrupted; continue with --resume, what was tried is in '{plan.folder}'", error=True
        )
        return 128 + interrupted
    if (failed := plan.folder / FAILED).exists():
        raise UserError(read_text(failed, "record").strip())
    trials = read_trials(plan.folder)
    if best_trial(trials, plan.tune.mode) is None:
        reason = min((trial.failure for trial in trials if trial.failure), default="")
        raise UserError(
            f"no trial reported a score{': ' + reason if reason else ''}; see '{plan.folder}'"
        )
    from lightning_rl.lab.figures.tuning import draw_search  # matplotlib

    write_results(plan, trials)
    draw_search(
        Out(plan.folder / "search"), ranked(trials, plan.tune.mode), read_search(plan.folder)
    )
    return 0


def _require_packages(algorithm: str) -> None:
    remedy = (
        f"pip install 'lightning_rl[{algorithm}]', or take "
        f"{' or '.join(each for each in NEEDS if each != algorithm)}"
    )
    for name in NEEDS[algorithm]:
        optional_module(name, f"--tune algorithm={algorithm}: {name.partition('.')[0]}", remedy)


def _fit(plan: Plan, state: Path, resume: bool) -> int:
    """The signal that has interrupted it, or 0."""
    from ray import tune as ray_tune

    allowed = notes()

    def trainable(drawn: dict[str, Any]) -> None:
        take(allowed)
        name = str(ray_tune.get_context().get_trial_id())
        settings = plan.settings(drawn)
        try:
            for report in run_trial(plan, name, settings):
                ray_tune.report(report)
        except UserError as error:  # diverged: a result of its own, that the other trials outlive
            fail(plan.trial_folder(name), error)
            if (
                isinstance(error, UnknownScalarError)
                and best_trial(read_trials(plan.folder), plan.tune.mode) is None
            ):
                fail(plan.folder, UserError(f"--tune metric: {error}"))  # which no trial will have

    placed: Any = ray_tune.with_resources(
        trainable, ray_tune.PlacementGroupFactory(trial_bundles(plan.options))
    )
    if resume and ray_tune.Tuner.can_restore(str(state)):
        tuner = ray_tune.Tuner.restore(
            str(state), placed, resume_unfinished=True, restart_errored=True
        )
    else:
        algorithm, scheduler = ALGORITHMS[plan.tune.algorithm](plan)
        tune_config = ray_tune.TuneConfig(
            metric="score",
            mode=plan.tune.mode,
            num_samples=plan.tune.trials,
            search_alg=algorithm,
            scheduler=scheduler,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: trial.trial_id,
        )
        run_config = ray_tune.RunConfig(
            name=STATE,
            storage_path=str(plan.folder),
            verbose=0,
            callbacks=[_progress(plan)],
            stop=_stopper(plan),
            failure_config=ray_tune.FailureConfig(
                max_failures=2
            ),  # of workers and machines; see trainable for the rest
        )
        space = {each.key: _domain(each) for each in spaces(plan.tune.search)}
        tuner = ray_tune.Tuner(
            placed, param_space=space, tune_config=tune_config, run_config=run_config
        )
    if threading.current_thread() is not threading.main_thread():
        tuner.fit()  # where Ray does not catch signals
        return 0
    timers: list[threading.Timer] = []

    def as_ctrl_c(number: int, frame: FrameType | None) -> None:
        timers.append(after(LEAVE_S, os._exit, 128 + number))
        signal.raise_signal(signal.SIGINT)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGTERM, as_ctrl_c)
    try:
        tuner.fit()
        # Ray's handler gives its place back when it has caught a Ctrl-C, after which all trials
        # count as ended.
        interrupted = signal.getsignal(signal.SIGINT) is before[signal.SIGINT]
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
    if timers:
        return signal.SIGTERM
    return signal.SIGINT if interrupted else 0


def _domain(space: Space) -> Any:
    from ray import tune as ray_tune

    domains: dict[str, Callable[..., Any]] = {
        "choice": lambda *_: ray_tune.choice(space.codes()),
        "uniform": ray_tune.uniform,
        "log": ray_tune.loguniform,
        "one_minus_log": ray_tune.loguniform,
        "int": lambda low, high: ray_tune.randint(low, high + 1),
        "log_int": lambda low, high: ray_tune.lograndint(low, high + 1),
    }
    return domains[space.form](*space.values)


def _halving(plan: Plan) -> Any:
    from ray.tune.schedulers import ASHAScheduler

    return ASHAScheduler(
        time_attr="report", max_t=plan.tune.reports, grace_period=1, reduction_factor=3
    )


def _asha(plan: Plan) -> tuple[Any, Any]:
    from ray.tune.search.basic_variant import BasicVariantGenerator

    return BasicVariantGenerator(random_state=plan.options.seed), _halving(plan)


def _optuna(plan: Plan) -> tuple[Any, Any]:
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return OptunaSearch(seed=plan.options.seed), _halving(plan)


def _bohb(plan: Plan) -> tuple[Any, Any]:
    from ray.tune.schedulers import HyperBandForBOHB
    from ray.tune.search.bohb import TuneBOHB

    class ResumableBOHB(TuneBOHB):
        """In Ray's state of a killed search a trial may be paused that the searcher has already
        counted as complete.
        """

        def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
            drawn = {
                key.removeprefix("config/"): value
                for key, value in result.items()
                if key.startswith("config/")
            }
            self.trial_to_params.setdefault(trial_id, drawn)
            super().on_trial_result(trial_id, result)

        def on_trial_complete(
            self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
        ) -> None:
            if trial_id in self.trial_to_params:
                super().on_trial_complete(trial_id, result, error)

    scheduler = HyperBandForBOHB(
        time_attr="report", max_t=plan.tune.reports, reduction_factor=3, stop_last_trials=False
    )
    return ResumableBOHB(seed=plan.options.seed), scheduler


ALGORITHMS: dict[str, Callable[[Plan], tuple[Any, Any]]] = {
    "asha": _asha,
    "optuna": _optuna,
    "bohb": _bohb,
}


def _stopper(plan: Plan) -> Any:
    from ray.tune import Stopper

    class StopWhereAllFail(Stopper):
        """Ends the search once a trial has noted that none can give a score."""

        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            return (plan.folder / FAILED).exists()

        def __reduce__(self) -> tuple[Any, ...]:
            """Ray keeps this with the search."""
            return _stopper, (plan,)

    return StopWhereAllFail()


def _progress(plan: Plan) -> Any:
    from ray.tune import Callback

    class Progress(Callback):
        """A line now and then: trials done, the best so far, and the time left."""

        def __init__(self) -> None:
            self.started = self.printed = time.monotonic()
            self.done_at_start: int | None = None

        def __reduce__(self) -> tuple[Any, ...]:
            """Ray keeps this with the search; a process that resumes it has a clock and a count
            of its own.
            """
            return _progress, (plan,)

        def on_trial_result(
            self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
        ) -> None:
            self.show(trials, False)

        def on_trial_complete(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            self.show(trials, True)

        def show(self, trials: list[Any], now: bool) -> None:
            done = sum(each.is_finished() for each in trials)
            if self.done_at_start is None:
                self.done_at_start = done - now
            if not now and time.monotonic() - self.printed < _LINE_EVERY_S:
                return
            self.printed = time.monotonic()
            new = done - self.done_at_start
            line = progress_line(
                plan,
                read_trials(plan.folder),
                done,
                (self.printed - self.started) / new if new else None,
            )
            say(line, error=True)

    return Progress()


def progress_line(plan: Plan, trials: list[Trial], done: int, per_trial: float | None) -> str:
    """What a person wants to know of a search that is running. per_trial: seconds, once that is
    known.
    """
    best = best_trial(trials, plan.tune.mode)
    shown = f"best {best.score:.4g} ({best.name})" if best else "no score yet"
    left = (
        f" · ETA {per_trial * (plan.tune.trials - done) / 60:.0f} min"
        if per_trial is not None
        else ""
    )
    return (
        f"tune {plan.options.implementation} {plan.options.gamename}: "
        f"{done}/{plan.tune.trials} trials · {shown}{left}"
    )
