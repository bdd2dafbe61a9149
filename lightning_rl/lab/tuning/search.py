"""The search over trials with Ray Tune, on this machine or on a cluster that shares the logdir."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import keep_record, read_text, refuse_foreign, remove
from lightning_rl.core.lines import say
from lightning_rl.core.modules import notes, take
from lightning_rl.core.outputs import Out
from lightning_rl.core.stopping import LEAVE_S, SIGNALS, after, give_back
from lightning_rl.evolution.cluster import join_cluster, leave_cluster
from lightning_rl.lab.scalars import UnknownScalarError
from lightning_rl.lab.tuning.grid import run_grid
from lightning_rl.lab.tuning.results import (
    BEST,
    SEARCH,
    TABLE,
    best_trial,
    ranked,
    read_search,
    read_trials,
    require_same,
    write_results,
    write_search,
)
from lightning_rl.lab.tuning.space import spaces
from lightning_rl.lab.tuning.trial import FAILED, Plan, fail, run_trial
from lightning_rl.run.options import RunOptions
from lightning_rl.run.state import held

STATE = "ray"  # folder of Ray Tune's own state
NEEDS = {
    "asha": (),
    "grid": (),
    "optuna": ("optuna",),
    "bohb": ("ConfigSpace", "hpbandster.optimizers.config_generators.bohb"),
}


def tune(plan: Plan, resume: bool) -> int:
    """Runs the search, or goes on with one that was stopped; the exit code."""
    plan.check()
    require("the figure of a search", "matplotlib")
    _require_packages(plan.tune.algorithm)
    if (plan.folder / SEARCH).exists() and not resume:
        raise UserError(
            f"'{plan.folder}' already holds a search; continue with --resume, or choose another "
            "--exp_name"
        )
    if resume and (plan.folder / SEARCH).exists():
        require_same(plan)
    if plan.tune.algorithm == "grid":
        with _searching(plan):
            interrupted = run_grid(plan)
    else:
        interrupted = _with_ray(plan, resume)
    if interrupted:
        say(
            f"interrupted; continue with --resume, what was tried is in '{plan.folder}'", error=True
        )
        return 128 + interrupted
    if (failed := plan.folder / FAILED).exists():
        raise UserError(read_text(failed, "record").strip())
    trials = read_trials(plan.folder)
    if best_trial(trials, plan.tune.mode) is None:
        failures = sorted(trial.failure for trial in trials if trial.failure)
        reason = f": {failures[0]}" if failures else ""
        raise UserError(f"no trial reported a score{reason}; see '{plan.folder}'")
    from lightning_rl.lab.figures.tuning import draw_search  # matplotlib

    write_results(plan, trials)
    order = ranked(trials, plan.tune.mode)
    draw_search(Out(plan.folder / "search"), order, read_search(plan.folder))
    return 0


def _with_ray(plan: Plan, resume: bool) -> int:
    """Runs the trials on a cluster of Ray's; the signal that has interrupted it, or 0."""
    os.environ.setdefault("TUNE_GLOBAL_CHECKPOINT_S", "2")  # what a kill may cost of Ray's state
    # A trial may fail before its first report.
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    joined = join_cluster(plan.ray_address)
    import ray

    try:
        check_room(trial_bundles(plan.options), ray.nodes())
        with _searching(plan):
            return _fit(plan, plan.folder / STATE, resume)
    finally:
        if joined:
            leave_cluster()


@contextmanager
def _searching(plan: Plan) -> Iterator[None]:
    """The folder of the search is ours alone; it says what is searched."""
    with held(plan.folder, "wait until that search has ended, or choose another --exp_name"):
        keep_record(plan.folder)
        for name in (BEST, TABLE, SEARCH, "search.png", "search.svg", "search.csv"):
            refuse_foreign(plan.folder / name)  # before the work
        remove(plan.folder / FAILED)  # of an earlier start
        write_search(plan)
        yield


def _require_packages(algorithm: str) -> None:
    others = " or ".join(each for each in NEEDS if each != algorithm)
    remedy = f"pip install 'lightning_rl[{algorithm}]', or take {others}"
    for name in NEEDS[algorithm]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            what = f"--tune algorithm={algorithm}: {name.partition('.')[0]}"
            raise UserError(f"{what} is not installed ({error}); {remedy}") from error


def trial_bundles(options: RunOptions) -> list[dict[str, float]]:
    """What a trial takes of the cluster: its own process, then each worker of its population; Ray
    gives a trial all of them, or lets it wait.
    """
    count = max(options.num_workers or 0, 1)
    trial: dict[str, float] = {}
    workers: list[dict[str, float]] = []
    # workers of Ray are on any machine, processes on that of their parent, which waits meanwhile
    if options.executor == "ray":
        workers = [{"CPU": 1.0}] * count
    else:
        trial["CPU"] = count
    if options.accelerator == "gpu":
        trial = {**trial, "GPU": 1.0}
    return [trial, *workers]


def check_room(bundles: Sequence[Mapping[str, float]], nodes: Sequence[Mapping[str, Any]]) -> None:
    """UserError where not even one trial fits the nodes, as ``ray.nodes()`` gives them: Ray itself
    would wait for ever.
    """
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    for resource, flag in (("GPU", "--accelerator gpu"), ("CPU", "--num_workers")):
        sizes = [bundle[resource] for bundle in bundles if resource in bundle]
        present = [machine.get(resource, 0) for machine in machines]
        if not sizes or sum(each // max(sizes) for each in present) >= len(sizes):
            continue
        where, most = "on one machine", max(present, default=0)
        if len(sizes) > 1:  # bundles of one size each, on any machine
            where, most = "in all", sum(present)
        raise UserError(
            f"{flag}: a trial takes {sum(sizes):g} {resource}s {where}, the cluster has {most:g}; "
            f"lower or leave out {flag.split()[0]}, or give the --ray_address of a larger cluster"
        )


def _fit(plan: Plan, state: Path, resume: bool) -> int:
    """Lets Ray run the trials; the signal that has interrupted it, or 0."""
    tuner = _tuner(plan, state, resume)
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
        give_back(before, timers)
    if timers:
        return signal.SIGTERM
    return signal.SIGINT if interrupted else 0


def _tuner(plan: Plan, state: Path, resume: bool) -> Any:
    """Ray's tuner of the search, or what was kept of it."""
    from ray import tune as ray_tune

    from lightning_rl.lab.tuning import with_ray

    allowed = notes()

    def train(drawn: dict[str, Any]) -> None:
        take(allowed)
        name = str(ray_tune.get_context().get_trial_id())
        settings = plan.settings(drawn)
        try:
            for report in run_trial(plan, name, settings):
                ray_tune.report(report)
        except UserError as error:  # diverged: a result of its own, that the other trials outlive
            fail(plan.folder / name, error)
            no_metric = isinstance(error, UnknownScalarError)
            if no_metric and best_trial(read_trials(plan.folder), plan.tune.mode) is None:
                fail(plan.folder, UserError(f"--tune metric: {error}"))  # which no trial will have

    bundles = ray_tune.PlacementGroupFactory(trial_bundles(plan.options))
    placed: Any = ray_tune.with_resources(train, bundles)
    if resume and ray_tune.Tuner.can_restore(str(state)):
        return ray_tune.Tuner.restore(
            str(state), placed, resume_unfinished=True, restart_errored=True
        )
    searcher, scheduler = with_ray.algorithm(plan)
    return ray_tune.Tuner(
        placed,
        param_space={space.key: with_ray.domain(space) for space in spaces(plan.tune.search)},
        tune_config=ray_tune.TuneConfig(
            metric="score",
            mode=plan.tune.mode,
            num_samples=plan.tune.trials,
            search_alg=searcher,
            scheduler=scheduler,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: trial.trial_id,
        ),
        run_config=ray_tune.RunConfig(
            name=STATE,
            storage_path=str(plan.folder),
            verbose=0,
            callbacks=[with_ray.Progress(plan)],
            stop=with_ray.StopWhereAllFail(plan),
            # Of workers and machines; see ``train`` for the rest.
            failure_config=ray_tune.FailureConfig(max_failures=2),
        ),
    )
