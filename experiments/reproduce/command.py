"""``lightning-rl reproduce``: what is missing is run, then the ledger is built."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import multiprocessing
import os
import shlex
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from experiments.reproduce import store
from experiments.reproduce.changes import write_changes
from experiments.reproduce.checkout import MANIFEST, PAGE, ROOT, commit_of, require_clean
from experiments.reproduce.claims import Claim, Manifest, seed_list
from experiments.reproduce.entries import NONE, goal_text, measured_text, read_entries, verdict
from experiments.reproduce.ledger import ledger
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.runs import Job, Main, Outcome, run_job, steps_of
from experiments.reproduce.verified import table
from experiments.reproduce.verify import verify
from lightning_rl.cli.tools import call_experiment
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import write_bytes, write_text
from lightning_rl.core.lines import say
from lightning_rl.core.modules import from_file
from lightning_rl.core.workers import finish_epoch, leave_with_parent
from lightning_rl.lab.tables import Rows, put_rows

_ALONE = ("list", "verify", "ledger", "figures", "smoke")


def run(arguments: Namespace) -> None:
    """``lightning-rl reproduce``."""
    alone = [name for name in _ALONE if getattr(arguments, name) not in (None, False)]
    if len(alone) > 1:
        flags = " and ".join(f"--{name}" for name in alone)
        raise UserError(f"{flags} exclude each other; leave one out")
    if arguments.ray_address is not None and arguments.executor != "ray":
        raise UserError("--ray_address goes with --executor ray; leave it out")
    reproduce(arguments, _main_of_file)


def _main_of_file(words: Sequence[str], program: str) -> int:
    """``main`` for the words of a claim, which nobody typed."""
    from lightning_rl.cli import main

    with from_file():
        return main(words, program)


def reproduce(arguments: Namespace, main: Main, root: Path = ROOT) -> None:
    """Runs what is missing of the claims that are asked for, and builds the ledger."""
    manifest = load_claims(root / MANIFEST)
    chosen = manifest.chosen(arguments.ids)
    verifies = arguments.verify is not None
    if arguments.ids and (verifies or arguments.ledger or arguments.figures):
        reason = "--ledger and --figures are of all claims"
        if verifies:
            reason = "--verify names its claim"
        raise UserError(f"'{arguments.ids[0]}': {reason}; leave it out")
    if arguments.list:
        show_list(manifest, chosen, root)
    elif arguments.verify == "":
        put_rows(table(manifest.claims, root))
    elif verifies:
        verify(arguments.verify, manifest, root, main)
    elif arguments.smoke:
        smoke(arguments, manifest, chosen, main)
    elif arguments.ledger:
        build(manifest, root)
    elif arguments.figures:
        draw(manifest, root, main)
    else:
        jobs = possible(missing(chosen, root, main), arguments)
        if jobs:
            require_clean(root)
            announce(jobs, manifest)
        _run_all(jobs, arguments, root)
        build(manifest, root)


def possible(jobs: Sequence[Job], arguments: Namespace) -> list[Job]:
    """Those that this machine, or a cluster, can run; UserError if others were asked for by name.

    The claims of others that were not are printed.
    """
    if arguments.executor == "ray":
        return list(jobs)  # other machines may have what this one lacks
    lacks = {job.name: what for job in jobs if (what := lacking(job.claim, job.smoke))}
    for what in dict.fromkeys(lacks.values()):
        names = ", ".join(name for name in lacks if lacks[name] == what)
        if arguments.ids:
            raise UserError(f"{names}: this machine lacks {what}; leave it out")
        say(f"left out, as this machine lacks {what}: {names}")
    return [job for job in jobs if job.name not in lacks]


def lacking(claim: Claim, smoke: bool = False) -> str:
    """What this machine lacks for the claim, or empty; in a smoke nothing is on a GPU."""
    if claim.of_baseline and importlib.util.find_spec("stable_baselines3") is None:
        return "Stable-Baselines3 (pip install 'lightning_rl[baselines]')"
    if claim.on_gpu and not smoke:
        import torch

        return "" if torch.cuda.is_available() else "a GPU"
    return ""


def missing(chosen: dict[str, Claim], root: Path, main: Main) -> list[Job]:
    """The seeds that the CSVs lack."""
    commit = commit_of(root)
    logdir = root / "exp_dir" / "claims" / commit[:12]
    jobs = []
    for name, claim in chosen.items():
        done = {row["seed"] for row in store.read_runs(root, claim)}
        for seed in seed_list(claim.seeds):
            if str(seed) not in done:
                jobs.append(Job(name, claim, seed, commit, logdir, main, root))
    return jobs


def announce(jobs: Sequence[Job], manifest: Manifest) -> None:
    """Says what is about to be run, and which trainings of other claims it needs again."""
    claims = {job.name: job.claim for job in jobs}
    running = {(job.name, job.seed) for job in jobs}
    hours = sum(job.claim.cpu_hours / len(seed_list(job.claim.seeds)) for job in jobs)
    say(f"{len(jobs)} runs of {len(claims)} claims are missing: about {hours:.2g} CPU-hours")
    again: dict[str, set[int]] = {}
    for job in jobs:
        owner = manifest.shared_trainings.get(job.name)
        if owner is None or (owner, job.seed) in running:
            continue
        for step in steps_of(job, job.claim.budget):
            if step.run is not None and not step.run.exists():
                again.setdefault(owner, set()).add(job.seed)
    for owner, seeds in again.items():
        training = manifest.claims[owner]
        hours = training.cpu_hours / len(seed_list(training.seeds)) * len(seeds)
        which = f"seeds {', '.join(map(str, sorted(seeds)))}, about {hours:.2g} CPU-hours"
        say(f"and the trainings of {owner} again, whose run directories are not here: {which}")


def smoke(arguments: Namespace, manifest: Manifest, chosen: dict[str, Claim], main: Main) -> None:
    """One seed of each claim with a tiny budget, and the ledger of it, in a folder of its own."""
    place = Path(tempfile.mkdtemp(prefix="lightning-rl-smoke-"))
    jobs = []
    for name, claim in chosen.items():
        seed = seed_list(claim.seeds)[0]
        jobs.append(Job(name, claim, seed, "smoke", place / "exp_dir", main, None, smoke=True))
    _run_all(possible(jobs, arguments), arguments, place)
    write_text(place / PAGE, ledger(manifest, place, "smoke"))
    shutil.rmtree(place / "exp_dir")
    say(f"tiny budgets, no evidence: {place / PAGE}")


def build(manifest: Manifest, root: Path) -> None:
    """Writes the ledger, and what of its claims' code has changed."""
    write_changes(manifest.claims, root)
    write_text(root / PAGE, ledger(manifest, root, commit_of(root)))
    say(f"wrote {root / PAGE}")


def draw(manifest: Manifest, root: Path, main: Main) -> None:
    """Draws the pictures of the manifest, whose numbers are in the CSVs beside them."""
    for path, words in manifest.figures.items():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(root):
            name, *rest = shlex.split(words)
            page = ("--no-caption", "--format", "png")
            if main(["figures", name, f"{folder}/figure", *rest, *page], "lightning-rl"):
                raise UserError(f"figure '{path}' was not drawn; what is above says why")
            write_bytes(root / path, Path(folder, "figure.png").read_bytes())


def show_list(manifest: Manifest, chosen: dict[str, Claim], root: Path) -> None:
    """The claims, and how far each is."""
    entries = read_entries(manifest, root)
    rows: Rows = [("claim", "goal", "here", "seeds", "CPU-hours", "")]
    for name, claim in chosen.items():
        entry = entries[name]
        word = verdict(entry, entries)
        here = "" if word == NONE else measured_text(entry)
        seeds = f"{len(entry.values)} of {entry.asked}"
        owner = manifest.shared_trainings.get(name)
        hours = f"{claim.cpu_hours:g}" if owner is None else f"{claim.cpu_hours:g} after {owner}"
        rows.append((name, goal_text(claim.goal), here, seeds, hours, word))
    put_rows(rows)


def _run_all(jobs: Sequence[Job], arguments: Namespace, root: Path) -> None:
    """Runs the jobs and stores each as soon as it is done; UserError at the end if any failed."""
    failed: list[str] = []
    with _executor(arguments, len(jobs)) as run:
        for count, outcome in enumerate(run(jobs), 1):
            if outcome.failure:
                failed.append(outcome.failure)
            else:
                store.add(root, outcome)
            value = outcome.failure or f"{outcome.job.about}: {outcome.about['value']:.6g}"
            say(f"{count} of {len(jobs)}: {value}", error=bool(outcome.failure))
    if failed:
        raise UserError(
            f"{len(failed)} of {len(jobs)} runs failed; the same command tries them again. The "
            f"first: {failed[0]}"
        )


Run = Callable[[Sequence[Job]], Iterator[Outcome]]


@contextlib.contextmanager
def _executor(arguments: Namespace, count: int) -> Iterator[Run]:
    """How jobs are run: here, in processes, or on a Ray cluster; outcomes as they come."""
    if arguments.executor == "ray" and count:
        with _on_ray(arguments.ray_address) as run:
            yield run
    elif min(arguments.jobs, count) <= 1:
        yield lambda jobs: map(run_job, jobs)
    else:
        with _in_processes(min(arguments.jobs, count), None if arguments.smoke else 1) as run:
            yield run


@contextlib.contextmanager
def _in_processes(processes: int, tasks_each: int | None) -> Iterator[Run]:
    """Processes that run jobs.

    tasks_each: a process ends after so many, so that no run meets what another has left behind.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes,
        context,
        initializer=call_experiment,
        initargs=("reproduce.command:begin_process",),
        max_tasks_per_child=tasks_each,
    ) as pool:

        def run(jobs: Sequence[Job]) -> Iterator[Outcome]:
            try:
                waiting = [pool.submit(run_job, job) for job in jobs]
                for done in as_completed(waiting):
                    yield done.result()
            except BrokenProcessPool as error:
                raise UserError(
                    "a process died (out of memory?); lower --jobs: the same command goes on"
                ) from error
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):  # which a terminal tells them, too
                    for process in list(pool._processes.values()):
                        process.terminate()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

        yield run


def begin_process() -> None:
    """Of a process of its own; where this program is killed, it finishes the epoch it is in."""
    os.environ["TTY_COMPATIBLE"] = "0"  # lines instead of progress bars
    leave_with_parent(finish_epoch)


@contextlib.contextmanager
def _on_ray(address: str | None) -> Iterator[Run]:
    """A CPU of a cluster for each job.

    Runs are resumed where their folder is: on a file system that all machines share.
    """
    import ray

    from lightning_rl.evolution.cluster import join_cluster, leave_cluster

    started_here = join_cluster(address, [ROOT / "experiments"])
    task = ray.remote(num_cpus=1, max_retries=-1)(run_job)

    def run(jobs: Sequence[Job]) -> Iterator[Outcome]:
        waiting: list[Any] = []
        for job in jobs:
            waiting.append(task.remote(dataclasses.replace(job, logdir=job.logdir.resolve())))
        while waiting:
            (done, *_), waiting = ray.wait(waiting)
            yield ray.get(done)

    try:
        yield run
    finally:
        if started_here:
            leave_cluster()
