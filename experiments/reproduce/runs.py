"""One seed of a claim: its commands are run, and what counts is read from what they leave."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import platform
import re
import shlex
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from experiments.reproduce.checkout import require_commit
from experiments.reproduce.claims import TRAININGS, Claim, Value, seed_list
from experiments.reproduce.reading import identity, read_curve, read_kept, read_rows, read_value
from lightning_rl.core.catalogue import BASELINE, entry
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import make_folder
from lightning_rl.core.gamenames import folder_name
from lightning_rl.core.limits import shorten
from lightning_rl.core.lines import say
from lightning_rl.core.stopping import Stopped
from lightning_rl.core.yaml_files import read_yaml

Main = Callable[[Sequence[str], str], int]
"""The command line: words, the name of the program; the exit code."""


@dataclass(frozen=True)
class Job:
    """One seed of a claim.

    logdir: the folder of the runs of this commit; main: the command line; root: of the checkout,
    which has to stay as it is, or None; smoke: tiny budgets.
    """

    name: str
    claim: Claim
    seed: int
    commit: str
    logdir: Path
    main: Main
    root: Path | None
    smoke: bool = False

    @property
    def about(self) -> str:
        return f"{self.name}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """For files of commands that are no training."""
        return self.logdir / self.name / f"seed_{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    about: a row of the claim's runs; curve: rows of its CSV; failure: one line, or empty;
    kept: rows of its agents or of their mean curves.
    """

    job: Job
    about: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]]
    failure: str = ""
    kept: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Step:
    """A command of a job: the words after ``lightning-rl``.

    place: where one command at a time is at work for the seeds that begin with first; run: the run
    directory, where it is a training; done: a file that says that it is done, of evaluations, which
    other claims may have in common. Other commands find out what is left.
    """

    words: list[str]
    place: Path
    first: int | str
    run: Path | None = None
    done: Path | None = None


def budget_of(claim: Claim, smoke: bool) -> Mapping[str, Value]:
    """Keys of the config that say how long a training is."""
    return {**claim.budget, **claim.smoke} if smoke else claim.budget


def shown_command(claim: Claim, seed: int | str = "N") -> str:
    """The commands as one would type them."""
    budget = [f"--set {key}={_yaml(value)}" for key, value in claim.budget.items()]
    lines = []
    for command in claim.commands:
        words = ["lightning-rl", command.replace("{seed}", str(seed))]
        if command.split()[0] in TRAININGS:
            words += [f"--seed {_first_seed(claim, command, seed)}", *budget]
        lines.append(" ".join(words))
    return " && ".join(lines)


def _first_seed(claim: Claim, command: str, seed: int | str) -> int | str:
    """The ``--seed`` of a training for a seed; with ``--num_seeds`` the first of the claim."""
    return seed_list(claim.seeds)[0] if "--num_seeds" in shlex.split(command) else seed


def steps_of(job: Job, budget: Mapping[str, Value]) -> list[Step]:
    """The commands of a job.

    Trainings with the same words share a run directory, whatever claim they belong to.
    """
    found: list[Step] = []
    run = job.folder
    for command in job.claim.commands:
        words = [_filled(word, job, run) for word in shlex.split(command)]
        if words[0] in TRAININGS:
            first = _first_seed(job.claim, command, job.seed)
            words += ["--seed", str(first)]
            if words[0] == "train":
                words += ["--num_workers", "0"]
            words.append("--resume")
            if job.smoke and "--accelerator" in words:
                words += ["--accelerator", "cpu"]
            for key, value in budget.items():
                words += ["--set", f"{key}={_yaml(value)}"]
            place = _short_hash(shlex.join(words).replace(str(job.logdir), ""))
            words += ["--logdir", str(job.logdir), "--exp_name", place]
            run = _run_dir(words, job.seed)
            found.append(Step(words, run.parent, first, run))
            continue
        if job.smoke:
            words += shlex.split(job.claim.smoke_flags)
        if words[0] == "eval":
            words += ["--num_workers", "0"]
            name = _short_hash(shlex.join(words[2:]))
            found.append(Step(words, run.parent, job.seed, done=run / f".{name}.done"))
        else:
            found.append(Step(words, job.folder, job.seed))
    return found


def _filled(word: str, job: Job, run: Path) -> str:
    for name, value in (("seed", job.seed), ("run", run), ("folder", job.folder)):
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _yaml(value: Value) -> str:
    return json.dumps(value)


def _run_dir(words: Sequence[str], seed: int) -> Path:
    """Where a training with these words writes what is of a seed."""
    flags = dict(itertools.pairwise(words))
    game, method = folder_name(flags["--gamename"]), entry(flags["--implementation"]).name
    prefix = BASELINE if words[0] == "baseline" else ""
    return Path(flags["--logdir"], game, flags["--exp_name"], f"{prefix}{method}", f"seed_{seed}")


def run_job(job: Job) -> Outcome:
    """Runs what is left of a job and reads it; what its commands print goes to ``log.txt``.

    An error of ours, there or while its results are read, is a failed run as well, its traceback in
    the log: the others go on.
    """
    started = time.process_time()
    fresh = not job.folder.exists()
    make_folder(job.folder)
    steps = steps_of(job, budget_of(job.claim, job.smoke))
    try:
        with _logged(job.folder):
            for step in steps:
                _run_step(job, step)
            # another machine has the code alone
            if job.root is not None and (job.root / ".git").exists():
                require_commit(job.root, job.commit)
            runs = [step.run for step in steps if step.run is not None]
            with _explained(job.folder):
                value, best = read_value(job.claim.read, runs, job.folder)
                if job.claim.curves:
                    curve = read_curve(job.claim.curves, runs[0], job.claim.read.last)
                else:
                    curve = read_rows(job.claim.read, runs)
                kept = read_kept(job.claim.read, job.folder, job.seed)
    except UserError as error:
        return Outcome(job, {}, [], f"{job.about}: {error}")
    hours = (time.process_time() - started) / 3600 if fresh else float("nan")
    about = {
        "seed": job.seed,
        "value": value,
        "best": best,
        "commit": job.commit[:12],
        "config_hash": config_hash(runs, job),
        "machine": machine(job.claim),
        "versions": versions(job.claim),
        "cpu_hours": hours,
        "read": job.claim.read.text,
        "command": shown_command(job.claim, job.seed),
        **identity(runs),
    }
    return Outcome(job, about, curve, kept=kept)


@contextlib.contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """What is printed goes to log.txt, line by line."""
    with (
        (folder / "log.txt").open("a", buffering=1) as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        yield


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """An error of ours is a UserError that says where its traceback is."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        traceback.print_exc()
        reason = shorten(f"{type(error).__name__}: {error}", 300)
        raise UserError(f"{reason}; its traceback is in {folder / 'log.txt'}") from error


def _run_step(job: Job, step: Step) -> None:
    """Runs a command, unless it is done or as soon as the same one of another claim is."""
    make_folder(step.place)
    with FileLock(step.place / f".{step.first}.lock"):
        if step.done is not None and step.done.exists():
            return
        say(f"lightning-rl {shlex.join(step.words)}")
        with _explained(job.folder):
            code = job.main(step.words, "lightning-rl")
        if step.done is not None and not code:
            step.done.touch()
    if code:
        said = (job.folder / "log.txt").read_text().strip().splitlines()
        if code > 128:  # a signal, which is for this command as well
            raise Stopped(code - 128)
        raise UserError(said[-1].removeprefix("error: "))


def config_hash(runs: Sequence[Path], job: Job) -> str:
    """Of what the trainings have written; see ``hash_of_settings``."""
    return hash_of_settings([read_yaml(run / "config.yaml")["config"] for run in runs], runs, job)


def hash_of_settings(configs: Sequence[Any], runs: Sequence[Path], job: Job) -> str:
    """Of all values of the trainings' configs, without the place of their files."""
    text = json.dumps(configs, sort_keys=True)
    # a later training may start from a file of an earlier one, whose folder has the seed in its
    # name
    for run in runs:
        text = text.replace(str(run), "")
    text = text.replace(str(job.logdir), "")
    return _short_hash(text) if runs else ""


def machine(claim: Claim) -> str:
    """The processor, which of its instructions torch uses, and the GPU of claims on one.

    Other instructions round in another way.
    """
    import torch

    processor = f"{platform.machine()} {platform.system()}"
    with contextlib.suppress(OSError):
        found = re.search(r"^model name.*?:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        processor = found[1].strip() if found else processor
    parts = [processor, torch.backends.cpu.get_cpu_capability()]
    if claim.on_gpu and torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def versions(claim: Claim) -> str:
    """Of what its number may depend on."""
    from importlib import metadata

    packages = ["torch", "numpy", "pytorch-lightning", "gymnasium", "mujoco", "scipy"]
    if claim.of_baseline:
        packages.append("stable-baselines3")
    parts = [f"{name} {metadata.version(name)}" for name in packages]
    return " ".join([f"python {platform.python_version()}", *parts])


def first_epochs(job: Job) -> list[dict[str, Any]]:
    """The curve of the first epochs of a seed, run anew.

    ``max_epochs`` ends a run early and changes nothing before.
    """
    first, *_ = steps_of(job, {**job.claim.budget, "max_epochs": job.claim.verify_epochs})
    assert first.run is not None  # a claim with curves begins with a training
    say(f"lightning-rl {shlex.join(first.words)}", error=True)
    if code := job.main(first.words, "lightning-rl"):
        raise UserError(
            f"{job.about}: its first epochs ended with exit code {code}; what is above says why"
        )
    return read_curve(job.claim.curves, first.run)
