"""Do the tests notice a wrong formula? Each of ``mutations/`` is tried on the tests of its area.

``make mutants`` runs all of them: a mutant is killed when a test fails or hangs, and has survived
when all pass. Exit code 0 if every snippet still stands in its file once and at least 95 % of the
mutants are killed. Results are kept in ``.mutants.jsonl``, so that a run that was cut off goes on;
a changed snippet, file or test is judged anew.

A process that has imported everything but this package forks for each mutant; the fork imports the
package with one snippet replaced. No file is written but the results.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, EXPERIMENTS, TESTS = ROOT / "lightning_rl", ROOT / "experiments", ROOT / "tests"
sys.path[:0] = [str(ROOT), str(TESTS)]

from mutations import MUTATIONS, Mutation  # noqa: E402

RESULTS = ROOT / ".mutants.jsonl"
ENOUGH = 0.95
# A mutant may take so many seconds, plus so many times as long as the area's tests without it.
_GRACE_S, _PATIENCE = 30.0, 5.0
_PASSED, _FAILED = 0, 1  # pytest's exit codes
_WITHOUT = (
    "cacheprovider",
    "xdist",
    "hypothesispytest",
    "unraisableexception",
    "threadexception",
)  # each costs more than a test
_PLAIN = ["-x", "-q", "--tb=short", "--assert=plain", *(f"-pno:{name}" for name in _WITHOUT)]


class Verdict(NamedTuple):
    """What became of a mutant: ``killed``, ``hung`` (killed too), ``survived``, or ``broken``."""

    outcome: str
    seconds: float
    note: str

    @property
    def killed(self) -> bool:
        return self.outcome in ("killed", "hung")


class _OneSnippet(MetaPathFinder):
    """Imports one file of the package with a snippet replaced."""

    def __init__(self, mutation: Mutation):
        self.file, self.source = file_of(mutation), mutated(mutation)

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != ".".join(self.file.relative_to(ROOT).with_suffix("").parts):
            return None
        finder = self

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> Any:
                return compile(finder.source, str(finder.file), "exec", dont_inherit=True)

        return importlib.util.spec_from_file_location(
            name, self.file, loader=Loader(name, str(self.file))
        )


def file_of(mutation: Mutation) -> Path:
    """Of the package, or of ``experiments``."""
    of_experiments = mutation.path.startswith("experiments/")
    return (ROOT if of_experiments else PACKAGE) / mutation.path


def occurrences(mutation: Mutation) -> int:
    """How often the snippet stands in its file; it must be once."""
    file = file_of(mutation)
    return file.read_text().count(mutation.old) if file.exists() else 0


def mutated(mutation: Mutation) -> str:
    """The file's text with the snippet replaced."""
    return file_of(mutation).read_text().replace(mutation.old, mutation.new)


def _run_tests(tests: Sequence[str], mutation: Mutation | None) -> int:
    """pytest's exit code in a process that has not imported the package yet."""
    import pytest

    for name, module in list(sys.modules.items()):  # where this runs inside of the test suite
        file = Path(getattr(module, "__file__", None) or "/")
        ours = file.is_relative_to(PACKAGE) or file.is_relative_to(EXPERIMENTS)
        if ours or name.startswith(("tests.", "helpers.")):
            del sys.modules[name]
    if mutation is not None:
        sys.meta_path.insert(0, _OneSnippet(mutation))
    os.chdir(ROOT)
    where = [str(TESTS / test) for test in tests]
    return int(pytest.main([*_PLAIN, *where]))


class Trial:
    """A fork that runs the tests of an area; it ends by itself or at its time limit."""

    def __init__(self, tests: tuple[str, ...], mutation: Mutation | None, limit: float):
        self.tests, self.mutation, self.limit = tests, mutation, limit
        self.began = time.monotonic()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed with the trial
        self.pid = os.fork()
        if not self.pid:
            self._be_the_fork()

    def _be_the_fork(self) -> None:
        code = 70
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for number in (1, 2):
                os.dup2(self._log.fileno(), number)
            sys.stdout, sys.stderr = (
                os.fdopen(os.dup(number), "w", buffering=1) for number in (1, 2)
            )
            sys.dont_write_bytecode = True
            code = _run_tests(self.tests, self.mutation)
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os._exit(code)

    def verdict(self) -> Verdict | None:
        """None while it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        seconds = time.monotonic() - self.began
        if pid:
            return self._judge(os.waitstatus_to_exitcode(status), seconds)
        if seconds < self.limit:
            return None
        self.end()
        return Verdict("hung", seconds, f"no end after {seconds:.0f} s")

    def end(self) -> None:
        """Kills it with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _judge(self, code: int, seconds: float) -> Verdict:
        self.end()  # what it may have left behind
        text = self.output()
        if code == _PASSED:
            return Verdict("survived", seconds, "")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
        if code == _FAILED and failed:
            return Verdict("killed", seconds, failed.group(1).rpartition("/")[2])
        if code < 0:
            return Verdict("killed", seconds, f"died of signal {-code}")
        lines = text.strip().splitlines() or [f"exit code {code}"]
        return Verdict("broken", seconds, lines[-1])

    def output(self) -> str:
        """What pytest wrote."""
        self._log.seek(0)
        return self._log.read()


def judge(mutation: Mutation, limit: float = 300.0) -> Verdict:
    """What becomes of one mutant."""
    trial = Trial(mutation.tests, mutation, limit)
    while (verdict := trial.verdict()) is None:
        time.sleep(0.01)
    return verdict


def run_all(
    trials: Iterable[Callable[[], Trial]], jobs: int, report: Callable[[Trial, Verdict], None]
) -> None:
    """Runs trials, at most ``jobs`` at a time."""
    waiting = deque(trials)
    running: list[Trial] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(waiting.popleft()())
            time.sleep(0.01)
            for trial in list(running):
                if (verdict := trial.verdict()) is not None:
                    running.remove(trial)
                    report(trial, verdict)
    finally:
        for trial in running:
            trial.end()


def warm_up() -> None:
    """Imports what the package imports, but not the package: a fork says what that is."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import pytest
    import torch

    torch.set_num_threads(1)
    assert pytest
    names, sent = os.pipe()
    if not (pid := os.fork()):
        importlib.import_module("lightning_rl.cli")
        ours = ("lightning_rl", "experiments")
        others = [name for name in sys.modules if not name.startswith(ours)]
        os.write(sent, "\n".join(others).encode())
        os._exit(0)
    os.close(sent)
    with os.fdopen(names) as told:
        wanted = told.read().split()
    os.waitpid(pid, 0)
    for name in wanted:
        with contextlib.suppress(Exception):  # what only its own package can import
            importlib.import_module(name)


class Memory:
    """Verdicts of earlier runs, by what they depend on."""

    def __init__(self, path: Path, fresh: bool):
        self.path = path
        if fresh:
            path.unlink(missing_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.known: dict[str, Verdict] = {}
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):  # a line that was cut off
                key, *verdict = json.loads(line)
                self.known[key] = Verdict(*verdict)

    def add(self, key: str, verdict: Verdict) -> None:
        self.known[key] = verdict
        with self.path.open("a") as file:
            file.write(json.dumps([key, *verdict]) + "\n")

    @staticmethod
    def key(tests: Sequence[str], mutation: Mutation | None) -> str:
        """What a verdict is of: the snippet, its file, its tests and their helpers."""
        if mutation is None:
            sources = sorted([*PACKAGE.rglob("*.py"), *EXPERIMENTS.rglob("*.py")])
        else:
            sources = [file_of(mutation)]
        asked = [TESTS / test.partition("::")[0] for test in tests]
        imported: set[str] = set()
        for file in asked:
            text = file.read_text()
            imported.update(re.findall(r"^from helpers\.(\w+) import", text, re.MULTILINE))
        helpers = [TESTS / "helpers" / f"{name}.py" for name in sorted(imported)]
        read = [*sources, *asked, *(file for file in helpers if file.exists())]
        words = [*tests, *(() if mutation is None else mutation[:3])]
        parts = [*(file.read_bytes() for file in read), *(word.encode() for word in words)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def time_left(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def check_areas(
    chosen: Sequence[Mutation], memory: Memory, jobs: int
) -> dict[tuple[str, ...], float]:
    """Seconds that the tests of each area take without a mutation; SystemExit if any fails."""
    areas = list(dict.fromkeys(mutation.tests for mutation in chosen))
    keys = {tests: memory.key(tests, None) for tests in areas}
    new = [tests for tests in areas if keys[tests] not in memory.known]
    print(f"{len(areas)} areas, {len(new)} to be tested without mutations")

    def report(trial: Trial, verdict: Verdict) -> None:
        words = " ".join(trial.tests)
        if verdict.outcome != "survived":
            reason = f"{words}: {verdict.outcome} without any mutation; mend the tests first"
            sys.exit(f"{trial.output()}\nerror: {reason}")
        memory.add(keys[trial.tests], verdict)
        print(f"  green in {verdict.seconds:5.1f} s  {words}", flush=True)

    run_all([functools.partial(Trial, tests, None, 600.0) for tests in new], jobs, report)
    return {tests: memory.known[keys[tests]].seconds for tests in areas}


def run(chosen: Sequence[Mutation], jobs: int, memory: Memory) -> dict[Mutation, Verdict]:
    """The verdicts on all mutations ``chosen``, those known from earlier runs included."""
    seconds = check_areas(chosen, memory, jobs)
    keys = {mutation: memory.key(mutation.tests, mutation) for mutation in chosen}
    new = [mutation for mutation in chosen if keys[mutation] not in memory.known]
    known = len(chosen) - len(new)
    print(f"{len(chosen)} mutants, {known} known from earlier runs")
    began = time.monotonic()
    done = 0

    def report(trial: Trial, verdict: Verdict) -> None:
        nonlocal done
        done += 1
        assert trial.mutation is not None
        memory.add(keys[trial.mutation], verdict)
        left = time_left((time.monotonic() - began) / done * (len(new) - done))
        print(f"[{done}/{len(new)}, {left} left] {describe(trial.mutation, verdict)}", flush=True)

    limits = {tests: _GRACE_S + _PATIENCE * usual for tests, usual in seconds.items()}
    run_all([functools.partial(Trial, m.tests, m, limits[m.tests]) for m in new], jobs, report)
    return {mutation: memory.known[keys[mutation]] for mutation in chosen}


def describe(mutation: Mutation, verdict: Verdict | None = None) -> str:
    """One line."""
    change = f"{mutation.path}: {_one_line(mutation.old)}  ->  {_one_line(mutation.new)}"
    if verdict is None:
        return change
    note = f"  ({verdict.note})" if verdict.note else ""
    return f"{verdict.outcome:8} {verdict.seconds:5.1f} s  {change}{note}"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip() or "nothing"


def conclude(verdicts: dict[Mutation, Verdict], stale: Sequence[Mutation]) -> int:
    """Prints the table, the survivors and what is out of date; the exit code."""
    folders = {mutation.path.rpartition("/")[0] or mutation.path for mutation in verdicts}
    folders |= {mutation.path.rpartition("/")[0] or mutation.path for mutation in stale}
    print(f"\n{'':24} {'mutants':>8} {'killed':>8} {'survived':>9} {'broken':>8} {'stale':>8}")
    for folder in [*sorted(folders), ""]:
        mine = [v for m, v in verdicts.items() if m.path.startswith(folder)]
        killed = sum(v.killed for v in mine)
        survived, broken = (sum(v.outcome == kind for v in mine) for kind in ("survived", "broken"))
        gone = sum(m.path.startswith(folder) for m in stale)
        count = len(mine) + gone
        print(f"{folder or 'all':24} {count:8} {killed:8} {survived:9} {broken:8} {gone:8}")
    for mutation, verdict in verdicts.items():
        if not verdict.killed:
            why = verdict.note or mutation.reason or "no reason is given: a test is missing"
            print(f"{verdict.outcome}: {describe(mutation)}\n    {why}")
        elif mutation.reason:
            print(f"killed, though said to survive: {describe(mutation)}\n    {mutation.reason}")
    for mutation in stale:
        times = occurrences(mutation)
        print(f"stands {times} times in its file, must be once: {describe(mutation)}")
    killed, count = sum(v.killed for v in verdicts.values()), len(verdicts)
    share = killed / max(count, 1)
    print(f"{killed} of {count} killed ({share:.1%}; at least {ENOUGH:.0%} are asked for)")
    return int(bool(stale) or killed < ENOUGH * count)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description="Runs the tests against wrong formulas; see this file's first lines."
    )
    parser.add_argument(
        "--only", metavar="TEXT", help="mutations whose line (see --list) has this text"
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="print the mutations and what is known of each; run nothing",
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    args = parser.parse_args(argv)
    chosen = [
        mutation for mutation in MUTATIONS if args.only is None or args.only in describe(mutation)
    ]
    if not chosen:
        sys.exit(f"error: --only '{args.only}' is in the line of no mutation; --list shows them")
    memory = Memory(RESULTS, args.fresh)
    stale = [mutation for mutation in chosen if occurrences(mutation) != 1]
    sound = [mutation for mutation in chosen if mutation not in stale]
    if args.list:
        for mutation in chosen:
            print(
                describe(
                    mutation,
                    memory.known.get(memory.key(mutation.tests, mutation))
                    if mutation in sound
                    else None,
                )
            )
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: what was started ends too
    warm_up()
    return conclude(run(sound, args.jobs, memory), stale)


if __name__ == "__main__":
    sys.exit(main())
