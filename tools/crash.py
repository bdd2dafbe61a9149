"""The crash simulator: runs on a disk that fails must end as if nothing had happened.

Everything that the package writes goes through ``lightning_rl.core.files.system``, here a ``Disk``
that fails in one call:

* ``kill``: the process is gone before the call; ``torn``: after it, or after half of what it was to
  write;
* ``crash``: as torn, and the machine goes down: what was not synced is lost, wholly or in part,
  names and folders, too;
* ``full``: from this call on there is no space; ``error``: this call fails once with EIO.

Then the same command is given again, in a quarter of the cases with a second failure in it, until
it ends by itself. What it leaves must be equal to the bit to what an undisturbed run leaves; a full
disk and EIO must be one line; other files must stay.

``make crash`` or ``python tools/crash.py`` tries them all; ``--replay 123`` is one again, told in
full.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import csv
import errno
import functools
import io
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import yaml

from lightning_rl.cli import main
from lightning_rl.core import files
from lightning_rl.core.workers import cores
from lightning_rl.lab.protocols.results import open_results
from lightning_rl.run import logger as log
from lightning_rl.run import state
from lightning_rl.run.logger import RunLogger

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from helpers.budgets import tiny_flags

KINDS = ("kill", "torn", "crash", "full", "error")
SEED = 0
_NOBODY = 2**22 + 1  # more than any process has
FOREIGN = {
    "notes.txt": b"half a line",
    ".notes.12.tmp.txt": b"",
    ".backup.tmp": b"\xff",
    "epoch=mine.ckpt": b"mine",
}


class Killed(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Fault:
    """What happens in call number ``at``."""

    kind: str
    at: int


class Disk(files.System):
    """A folder of real files that notes every ``(call, file)`` and fails as a ``Fault`` says.

    before: the disk of the process before this one, whose changes may not be synced yet.
    """

    def __init__(self, fault: Fault | None = None, before: Disk | None = None):
        self.fault = fault
        self.calls: list[tuple[str, str]] = []
        self.dead = False
        self._paths: dict[int, Path] = {}
        self._synced: dict[Path, bytes] = {}  # files with unsynced changes, as last synced
        self._undo = collections.defaultdict[Path, list[Callable[[], Any]]](list)  # by folder
        if before is not None:
            self._synced, self._undo = before._synced, before._undo

    def _meet(self, call: str, path: Path) -> bool:
        """Whether the process dies after this call; raises where it is gone, or the call fails."""
        if self.dead:
            raise Killed
        number, fault = len(self.calls), self.fault
        self.calls.append((call, path.name))
        if fault is None or number < fault.at:
            return False
        if fault.kind == "full" and call in ("open", "write", "rename", "make_folder", "fsync"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if fault.kind == "error" and number == fault.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.dead = fault.kind in ("kill", "torn", "crash")
        if fault.kind == "kill":
            raise Killed
        return self.dead

    def _end(self, dies: bool) -> None:
        if dies:
            raise Killed

    def open(self, path: Path, flags: int) -> int:
        new = not path.exists()
        folder = bool(flags & os.O_DIRECTORY)
        dies = self._meet("open folder" if folder else "open", path)
        if not folder:
            self._changes(path)
        descriptor = super().open(path, flags)
        self._paths[descriptor] = path
        if new:
            self._undo[path.parent].append(lambda: path.unlink(missing_ok=True))
        if dies:
            super().close(descriptor)
        self._end(dies)
        return descriptor

    def close(self, descriptor: int) -> None:
        self._paths.pop(descriptor)
        super().close(descriptor)

    def _changes(self, path: Path) -> None:
        if path not in self._synced:
            self._synced[path] = path.read_bytes() if path.exists() else b""

    def write(self, descriptor: int, content: memoryview) -> int:
        try:
            dies = self._meet("write", self._paths[descriptor])
        except OSError:
            super().write(descriptor, content[: len(content) // 2])
            raise
        self._changes(self._paths[descriptor])
        written = super().write(descriptor, content[: len(content) // 2] if dies else content)
        self._end(dies)
        return written

    def truncate(self, descriptor: int, size: int) -> None:
        dies = self._meet("truncate", self._paths[descriptor])
        self._changes(self._paths[descriptor])
        super().truncate(descriptor, size)
        self._end(dies)

    def fsync(self, descriptor: int) -> None:
        path = self._paths[descriptor]
        dies = self._meet("fsync folder" if path.is_dir() else "fsync", path)
        super().fsync(descriptor)
        self._undo.pop(path, None)
        self._synced.pop(path, None)
        self._end(dies)

    def rename(self, source: Path, target: Path) -> None:
        dies = self._meet("rename", target)
        before = target.read_bytes() if target.exists() else None

        def undo() -> None:
            target.rename(source)
            if source in self._synced or target in self._synced:
                self._synced[source] = self._synced.pop(target)
            if before is not None:
                target.write_bytes(before)

        super().rename(source, target)
        self._synced.pop(target, None)
        if source in self._synced:
            self._synced[target] = self._synced.pop(source)
        self._undo[target.parent].append(undo)
        self._end(dies)

    def unlink(self, path: Path) -> None:
        dies = self._meet("unlink", path)
        if path.exists():
            before = path.read_bytes()
            self._undo[path.parent].append(lambda: path.write_bytes(before))
            self._synced.pop(path, None)
        super().unlink(path)
        self._end(dies)

    def make_folder(self, path: Path) -> None:
        dies = self._meet("make_folder", path)
        for folder in [each for each in (path, *path.parents) if not each.exists()]:
            remove = functools.partial(shutil.rmtree, folder, ignore_errors=True)
            self._undo[folder.parent].append(remove)
        super().make_folder(path)
        self._end(dies)

    def lose(self, chance: random.Random) -> None:
        """The machine goes down: of what is not synced, some names and parts of contents stay."""
        for folder in sorted(self._undo):
            changes = self._undo[folder]
            for undo in reversed(changes[chance.randint(0, len(changes)) :]):
                if folder.exists():
                    undo()
        for path, synced in self._synced.items():
            if path.exists():
                now = path.read_bytes()
                kept = len(synced) if now.startswith(synced) else 0  # what was appended to stays
                half = now[: (kept + len(now)) // 2]
                path.write_bytes(chance.choice([synced, half, now]))
        self._synced.clear()
        self._undo.clear()


def _train(
    implementation: str, *flags: str, gamename: str = "cartpole", **settings: Any
) -> Callable[[Path], int]:
    every = {"eval_interval": 1, "checkpoint_interval": 1, "eval_episodes": 1, **settings}
    # With this seed the best evaluation is not the first one.
    words = f"--implementation {implementation} --gamename {gamename} --seed 1 --num_workers 0"
    words = [*words.split(), "--resume", *tiny_flags(implementation, **every), *flags]
    return lambda folder: main([*words, "--logdir", str(folder)])


def _evaluate(folder: Path) -> int:
    """Rows of a results CSV, one by one, as ``lightning-rl proxies`` makes them."""
    columns = ("name", "number", "value")
    try:
        with open_results(folder / "out" / "results.csv", columns, columns[:2]) as results:
            for number in range(6):
                if not results.has(name="a", number=number):
                    results.add([{"name": "a", "number": number, "value": number**7 / 3}])
    except files.UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


FAMILIES: dict[str, Callable[[Path], int]] = {
    "RCP-A": _train("RCP-A", "--max_epochs", "3", learning_starts=2, steps_per_iter=20),
    "REINFORCE": _train("REINFORCE", "--max_epochs", "4", num_episodes_per_iter=1),
    "DDQN, 2 seeds": _train(
        "DDQN", "--max_epochs", "3", "--num_seeds", "2", steps_per_epoch=10, learning_rate=0.05
    ),
    "SE": _train("SE", "--max_epochs", "3", eval_agents=1, center_agents=1, max_train_steps=20),
    "simple-model": _train("simple-model", "--max_epochs", "3", gamename="procmaze-3"),
    "results CSV": _evaluate,
}


class Logger(RunLogger):
    """Known, so that the thread of a process that is gone ends as well."""

    known: ClassVar[list[RunLogger]] = []

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.known.append(self)

    @classmethod
    def end(cls) -> None:
        for logger in cls.known:
            if logger._experiment is not None:
                logger._experiment.close()
        cls.known.clear()


@contextlib.contextmanager
def quick() -> Any:
    """Without the seconds that a thousand runs would spend on what is the same in each."""
    commit, system = state._git_commit, files.system
    log.RunLogger = Logger
    state._git_commit = lambda: None
    try:
        yield
    finally:
        state._git_commit, files.system, log.RunLogger = commit, system, RunLogger


def attempt(family: str, folder: Path, disk: Disk, chance: random.Random) -> tuple[int | None, str]:
    """The exit code (None: killed) of the family's command, and what it said on stderr."""
    files.system = disk
    said = io.StringIO()
    code = None
    files._records.clear()  # which a process begins without
    files._digest_of.clear()
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(Killed),
    ):
        code = FAMILIES[family](folder)
    Logger.end()
    if disk.dead and disk.fault is not None and disk.fault.kind == "crash":
        disk.lose(chance)
    if not disk.dead:
        return code, said.getvalue()
    ours, others = f".{os.getpid()}.tmp", f".{_NOBODY}.tmp"  # the next process has another number
    for path in folder.rglob(f".*{ours}"):
        path.rename(path.with_name(path.name.replace(ours, others)))
    for record in folder.rglob(files.RECORD):
        record.write_text(record.read_text().replace(ours, others))
    return None, said.getvalue()


def contents(folder: Path) -> dict[str, Any]:
    """What a run leaves, by file; logs and the lock aside."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or "logger" in path.parts:
            continue
        if path.name in (".lock", files.RECORD, *FOREIGN):
            continue
        name = str(path.relative_to(folder))
        if path.suffix in (".ckpt", ".pt"):
            found[name] = torch.load(path, weights_only=True)
        elif path.name == "config.yaml":
            found[name] = yaml.safe_load(path.read_bytes())
        else:
            found[name] = path.read_bytes()
    return found


def difference(a: Any, b: Any, where: str = "") -> str:
    """Where two contents differ first; empty where they are equal to the bit."""
    if type(a) is not type(b):
        return f"{where}: {type(a).__name__}, {type(b).__name__}"
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return f"{where}: {sorted(map(str, a.keys() ^ b.keys()))} in one only"
        parts = (difference(a[key], b[key], f"{where}/{key}") for key in a)
        return next(filter(None, parts), "")
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return f"{where}: lengths {len(a)}, {len(b)}"
        parts = (difference(a[n], b[n], f"{where}[{n}]") for n in range(len(a)))
        return next(filter(None, parts), "")
    if isinstance(a, torch.Tensor):
        return "" if a.dtype == b.dtype and torch.equal(a, b) else where
    return "" if a == b or (a != a and b != b) else f"{where}: {a!r:.60}, {b!r:.60}"


@dataclass(frozen=True)
class Reference:
    """An undisturbed run: its calls and what it leaves."""

    calls: list[tuple[str, str]]
    contents: dict[str, Any]


@functools.cache
def reference(family: str) -> Reference:
    """The family's undisturbed run."""
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as scratch:
        disk = Disk()
        code, said = attempt(family, Path(scratch), disk, random.Random())
        assert code == 0, said
        return Reference(disk.calls, contents(Path(scratch)))


def points(families: tuple[str, ...] = tuple(FAMILIES)) -> list[tuple[str, Fault]]:
    """Every call of every family with every fault; a point's place in this order is its number."""
    every = []
    for family in families:
        calls = range(len(reference(family).calls))
        every += [(family, Fault(kind, at)) for kind in KINDS for at in calls]
    random.Random(SEED).shuffle(every)
    return every


def simulate(
    number: int, family: str, fault: Fault, told: Callable[[str], None] = lambda line: None
) -> str:
    """What is wrong after this fault; empty if nothing."""
    chance = random.Random(f"{SEED} {number}")
    expected = reference(family)
    faults: list[Fault | None] = [fault, None]
    if chance.random() < 0.25:
        faults.insert(1, Fault(chance.choice(KINDS), chance.randrange(len(expected.calls))))
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as scratch:
        folder = Path(scratch)
        homes = {(folder / name).parent for name in expected.contents}
        theirs: dict[Path, bytes] = {}
        disk: Disk | None = None
        for each in faults:
            disk = Disk(each, disk)
            code, said = attempt(family, folder, disk, chance)
            met = ""
            if each is not None:
                met = f"{each.kind} in call {each.at} {disk.calls[each.at : each.at + 1]}"
            told(f"{met or 'no fault'}: {len(disk.calls)} calls, exit code {code}\n{said}")
            lines = [line for line in said.splitlines() if line.startswith("error: ")]
            may_refuse = each is not None and each.kind in ("full", "error")
            if code == 2 and (len(lines) != 1 or not may_refuse):
                return f"{met}: refused with {said!r}"
            if "Traceback" in said or code not in (0, 2, None):
                return f"{met}: exit code {code}, {said!r}"
            left = [path.name for path in folder.rglob(".*.tmp") if path.name not in FOREIGN]
            if code == 2:  # a refusal may come before those of other processes are removed
                left = [name for name in left if name.endswith(f".{os.getpid()}.tmp")]
            if left and code is not None:
                return f"{met}: left {left}"
            for path, content in theirs.items():
                # a crash may lose new folders
                if path.parent.exists() and path.read_bytes() != content:
                    return f"{met}: {path.name} of others changed"
            theirs.clear()
            for home in filter(Path.exists, homes):
                for name, content in FOREIGN.items():
                    (home / name).write_bytes(content)
                    theirs[home / name] = content
        wrong = difference(expected.contents, contents(folder))
        return f"not as undisturbed after {fault.kind} in call {fault.at}: {wrong}" if wrong else ""


_SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _one(number: int) -> tuple[int, str]:
    torch.set_num_threads(1)
    try:
        return number, simulate(number, *points()[number])
    except Exception as error:  # a traceback in the program is a finding, too
        return number, f"{type(error).__name__}: {error}"


def crash(count: int | None, jobs: int) -> int:
    """Tries the first ``count`` points and prints a table; the number of failures."""
    every = points()
    numbers = range(len(every) if count is None else min(count, len(every)))
    done, failed = collections.Counter[Any](), collections.Counter[Any]()
    started = told = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        for number, wrong in pool.map(_one, numbers, chunksize=4):
            family, fault = every[number]
            done[family, fault.kind] += 1
            if wrong:
                failed[family, fault.kind] += 1
                print(f"fault {number}: {family}: {wrong}\n  again: --replay {number}", flush=True)
            if time.monotonic() - told > 10:
                told = time.monotonic()
                share = done.total() / len(numbers)
                left = (told - started) * (1 - share) / share
                so_far = f"{done.total()}/{len(numbers)} faults · {failed.total()} failed"
                print(f"{so_far} · ETA {left / 60:.1f} min", file=sys.stderr, flush=True)
    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    writer.writerow(("faults (failed)", "calls", *KINDS))
    for family in FAMILIES:
        cells = (f"{done[family, kind]} ({failed[family, kind]})" for kind in KINDS)
        writer.writerow((family, len(reference(family).calls), *cells))
    print(f"{done.total()} faults, {failed.total()} failed, {time.monotonic() - started:.0f} s")
    return failed.total()


def _main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, metavar="N", help="only the first N faults")
    parser.add_argument("--jobs", type=int, default=cores(), metavar="N", help="processes")
    parser.add_argument(
        "--replay", type=int, metavar="N", help="fault number N again, told in full"
    )
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with quick():
        if asked.replay is None:
            return min(crash(asked.count, asked.jobs), 1)
        family, fault = points()[asked.replay]
        print(f"{family}: {fault}")
        wrong = simulate(asked.replay, family, fault, print)
        print(wrong or "nothing is wrong")
        return bool(wrong)


if __name__ == "__main__":
    sys.exit(_main())
