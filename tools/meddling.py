"""Random walks of commands with a user between them who changes files in a run's folder.

Whatever he does, nothing valuable may vanish: not his own files, whatever their names, not what an
evaluation or a film has written, not the best model. A refusal is one line; where it says to move a
file away, that must help.

``make crash`` tries 500 walks after the faults of ``crash.py``; ``python tools/meddling.py --replay
123`` is one again, in full.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import io
import multiprocessing
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import ray
import torch

from lightning_rl.cli import main
from lightning_rl.core import files
from lightning_rl.core.workers import cores
from lightning_rl.lab import evaluate, films
from lightning_rl.lab.tuning import search
from lightning_rl.lab.tuning.trial import Plan, run_trial
from lightning_rl.run import state

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from helpers.budgets import tiny_flags

SEED = 0
COMMANDS = 6
"""Of a walk, each after what the user did."""
METHODS = {"QL": "cliff", "REINFORCE": "cartpole", "RCP-R": "cartpole"}
NAMES = (
    *(f"epoch={k}.ckpt" for k in (0, 1, 2, 3, 5, 7, 99)),
    "epoch=1-v1.ckpt",
    "epoch=mine.ckpt",
    "best.ckpt",
    "last.ckpt",
    ".last.ckpt.next",
    ".last.ckpt.1.tmp",
    "config.yaml",
    "state.yaml",
    ".lock",
    "proxy.pt",
    "evaluation.json",
    "evaluation_epoch=1.json",
    "sweep.csv",
    "sweep.png",
    "film.gif",
    "report.html",
    "notes.txt",
    "logger/version_0/notes.txt",
    "best.yaml",
    "trials.csv",
    "search.yaml",
    "search.png",
)
SEARCH = ("trials=2", "seeds=1", "reports=1", "budget={max_epochs: 1}")
REMEDY = re.compile(r"\b(move|choose|use|give|copy|start|ask|add|leave|name|remove|--\w+)\b")


@dataclass
class Walk:
    """One walk in an empty folder.

    theirs: the files that the user has put there or changed, by path, with their content.
    """

    folder: Path
    chance: random.Random
    told: Callable[[str], None]
    theirs: dict[Path, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.method = self.chance.choice(list(METHODS))
        self.game = METHODS[self.method]
        self.run = self.folder / self.game / "default" / self.method / "seed_1"
        self.tune = self.run.parent / "tune"
        self.epochs = 0

    def train(self, *flags: str, method: str = "") -> list[str]:
        self.epochs += self.chance.choice([0, 1, 2])
        method = method or self.method
        words = (
            f"--implementation {method} --gamename {METHODS[method]} --seed 1 --num_workers 0 "
            f"--logdir {self.folder} --max_epochs {max(1, self.epochs)}"
        )
        every = tiny_flags(method, eval_interval=1, checkpoint_interval=1, eval_episodes=1)
        return [*words.split(), *flags, *every]

    def command(self) -> list[str]:
        """The words of the next command."""
        checkpoints = sorted(self.run.glob("*.ckpt"))
        chosen = str(self.chance.choice([self.run, *checkpoints]))
        played = ["eval", chosen, "--episodes", "1"]
        kinds = {
            "train": self.train(),
            "resume": self.train("--resume"),
            "resume with other settings": self.train("--resume", "--set", "gamma=0.5"),
            "eval": played,
            "sweep": [*played, "--command", "sweep=0,1"],
            "film": ["film", chosen],
            "report": ["report", str(self.folder), "--out", str(self.run / "report.html")],
            "runs": ["runs", str(self.folder), "--csv", str(self.run / "runs.csv")],
            "reload": self.train("--exp_name", "again", "--reload", chosen),
            "tune": self.train("--use_tune", *(f"--tune={each}" for each in SEARCH)),
        }
        kinds["tune again"] = [*kinds["tune"], "--resume"]
        kind = self.chance.choices(list(kinds), [1, 5, 1, 3, 1, 1, 1, 1, 1, 1, 1])[0]
        if kind.startswith("tune"):  # which searches over budgets of its own
            kinds[kind] = [word for word in kinds[kind] if not word.startswith("--set=eval")]
            del kinds[kind][kinds[kind].index("--max_epochs") :][:2]
        return kinds[kind]

    def act(self) -> None:
        """The user does something in the run's folder."""
        home = self.chance.choice([self.run, self.run, self.tune])
        there = [path for path in files_in(home) if path.name != state.LOCK]
        target = home / self.chance.choice(NAMES)
        kind = self.chance.choice(["delete", "copy", "rename", "add", "edit"])
        if kind == "add" or not there:
            self._put(target, f"mine {self.chance.random()}".encode())
            self.told(f"  the user adds {target.name}")
            return
        source = self.chance.choice(there)
        self.told(f"  the user: {kind} {source.name}, {target.name}")
        content = source.read_bytes()
        if kind in ("delete", "rename"):
            source.unlink()
            self.theirs.pop(source, None)
        if kind in ("copy", "rename"):
            self._put(target, content)
        if kind == "edit" and source.name != files.RECORD:
            self._put(source, content + b"# mine")

    def _put(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            return
        path.write_bytes(content)
        self.theirs[path] = content
        if files.is_recorded(path):  # he has put back what the run wrote
            del self.theirs[path]

    def do(self, words: Sequence[str]) -> str:
        """What is wrong with a command, or empty; moves files away where a refusal says so."""
        for _ in range(len(NAMES)):
            there = [*files_in(self.run), *files_in(self.tune)]
            before = {path: path.read_bytes() for path in there}
            best = self.best()
            code, said = run(words)
            self.told(f"{' '.join(words)}\n  exit code {code} {said}")
            if wrong := self._wrong(words, code, said, before, best):
                return f"{' '.join(words[:4])}: {wrong}"
            moved = re.search(
                r"'([^']+)' (?:is not as|was not written|was changed).*move (?:it|the file) away",
                said,
            )
            if code != 2 or moved is None or self.folder not in Path(moved[1]).parents:
                return ""
            path = Path(moved[1])
            if not path.exists():
                return f"the remedy names {path}, which is not there"
            path.rename(self.folder / f"aside_{self.chance.random()}")
            self.theirs.pop(path, None)
        return f"the remedy never ends: {said}"

    def best(self) -> float:
        """The highest score of a checkpoint that the run has written, and which is still there."""
        scores = [score_of(path) for path in self.run.glob("epoch=*.ckpt")]
        return max([score for score in scores if score is not None], default=-float("inf"))

    def _wrong(
        self, words: Sequence[str], code: int, said: str, before: dict[Path, bytes], best: float
    ) -> str:
        if code not in (0, 2) or "Traceback" in said:
            return f"exit code {code}, {said}"
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        if code == 2 and (len(errors) != 1 or not REMEDY.search(errors[0])):
            return f"refused with {said!r}"
        resumed = "--resume" in words and code == 0
        for path, content in list(self.theirs.items()):
            if resumed and path.name == "last.ckpt":  # what he has put there to go on from
                del self.theirs[path]
            elif not path.exists() or path.read_bytes() != content:
                return f"the user's {path.name} is gone or changed"
        trains = words[0].startswith("-")
        for path, content in before.items():
            if path in self.theirs or path.name.startswith((".", "epoch=")):
                continue
            if not path.exists():
                return f"{path.name} is gone"
            played = path.name.startswith(("evaluation", "sweep", "film", "runs", "report"))
            if trains and played and path.read_bytes() != content:
                return f"{path.name} is changed"
        if self.best() < best:
            return f"the best model is gone: {best} before, {self.best()} now"
        return ""


def files_in(folder: Path) -> list[Path]:
    """All files below a folder."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def score_of(path: Path) -> float | None:
    """The score in a best checkpoint; None where there is none."""
    try:
        content = torch.load(path, weights_only=True)
    except Exception:
        return None
    return content.get("eval/return_mean") if isinstance(content, dict) else None


def run(words: Sequence[str]) -> tuple[int, str]:
    """A command in this process, as one of its own: the exit code and what it says on stderr."""
    files._records.clear()
    files._digest_of.clear()
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(list(words), "trainer.py" if words[0].startswith("-") else "lightning-rl")
    return code, said.getvalue()


def try_trials(plan: Plan, folder: Path, resume: bool) -> int:
    """The trials of a search, one after the other, in this process."""
    folder.mkdir(exist_ok=True)
    for k in range(plan.tune.trials):
        collections.deque(run_trial(plan, f"trial_{k}", {}), 0)
    return 0


@contextlib.contextmanager
def quick() -> object:
    """Without films and the time that they take: what is written instead has their names."""
    with contextlib.ExitStack() as patches:
        for place, name, value in (
            (state, "_git_commit", lambda: None),
            (evaluate, "can_film", lambda spec: False),
            (films, "can_film", lambda spec: True),
            (films, "play_filmed", lambda *_: None),
            (films, "_report", lambda *_: None),
            (films, "_stage", lambda *_: contextlib.nullcontext((None, mock.Mock(fps=30.0)))),
            (films, "gif", lambda reels, fps: b"GIF lightning_rl film"),
            (search, "join_cluster", lambda address: False),
            (ray, "nodes", lambda: []),
            (search, "check_room", lambda bundles, nodes: None),
            (search, "_fit", try_trials),
        ):
            patches.enter_context(mock.patch.object(place, name, value))
        yield None


def simulate(number: int, told: Callable[[str], None] = lambda line: None) -> str:
    """What is wrong in a walk; empty if nothing."""
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as scratch:
        walk = Walk(Path(scratch), random.Random(f"{SEED} {number}"), told)
        if wrong := walk.do(walk.train("--resume")):
            return wrong
        for _ in range(COMMANDS):
            for _ in range(walk.chance.choice([0, 1, 1, 2, 3])):
                walk.act()
            if wrong := walk.do(walk.command()):
                return wrong
    return ""


_SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None


def _one(number: int) -> tuple[int, str]:
    torch.set_num_threads(1)
    with quick():
        return number, simulate(number)


def walks(count: int, jobs: int) -> int:
    """Tries ``count`` walks; how many went wrong."""
    started = told = time.monotonic()
    failed = 0
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for done, (number, wrong) in enumerate(pool.map(_one, range(count)), 1):
            if wrong:
                failed += 1
                print(f"walk {number}: {wrong}; --replay {number}", flush=True)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                left = (told - started) * (count - done) / done
                print(
                    f"{done}/{count} walks · {failed} failed · ETA {left / 60:.1f} min",
                    file=sys.stderr,
                    flush=True,
                )
    print(f"{count} walks, {failed} failed, {time.monotonic() - started:.0f} s")
    return failed


def _main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, metavar="N", help="how many walks")
    parser.add_argument("--jobs", type=int, default=cores(), metavar="N", help="processes")
    parser.add_argument("--replay", type=int, metavar="N", help="walk number N again, told in full")
    asked = parser.parse_args()
    if asked.replay is None:
        return min(walks(asked.count, asked.jobs), 1)
    with quick():
        wrong = simulate(asked.replay, print)
    print(wrong or "nothing is wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(_main())
