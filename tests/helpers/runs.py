"""Runs by the command line, what they leave, and a method's updates without a run."""

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import ROOT
from helpers.budgets import tiny_flags
from lightning_rl.cli import main
from lightning_rl.core import files
from lightning_rl.run.state import write_state


def run_cli(
    logdir: Path,
    *flags: str,
    gamename: str = "cartpole",
    implementation: str = "UDRL",
    **settings: Any,
) -> int:
    what = ["--implementation", implementation, "--gamename", gamename, "--num_workers", "0"]
    where = ["--logdir", str(logdir)]
    return main([*what, *where, *tiny_flags(implementation, **settings), *flags])


def train_cli(logdir: Path, max_epochs: int | str, *flags: str, **given: Any) -> None:
    """A training that succeeds: ``run_cli`` for so many epochs."""
    assert run_cli(logdir, "--max_epochs", str(max_epochs), *flags, **given) == 0


def cli(*words: object) -> int:
    """The exit code of a command line."""
    return main([str(word) for word in words])


def run_python(program: str, folder: Path, tries: int = 1) -> str:
    """Runs Python code in a process of its own; what it prints. tries: of a time limit, as other
    work only ever adds time.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for _ in range(tries):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True
        )
        if done.returncode == 0:
            return done.stdout
    raise AssertionError(done.stderr)


def log_scalars(run: Path, scalars: Mapping[str, Mapping[int, float]], version: int = 0) -> Path:
    """Writes scalars (a value at each step, by name) as a start of a run does; its directory."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(run / "logger" / f"version_{version}")) as writer:
        for name, points in scalars.items():
            for step, value in points.items():
                writer.add_scalar(name, value, step)
    return run


def refused(capsys: pytest.CaptureFixture[str], code: int) -> str:
    """The one line of an error."""
    captured = capsys.readouterr()
    assert code == 2, captured
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    return str(lines[0])


def run_dir(
    logdir: Path, gamename: str = "cartpole", seed: int = 25, implementation: str = "UDRL"
) -> Path:
    return logdir / gamename / "default" / implementation / f"seed_{seed}"


def last(
    logdir: Path, implementation: str, gamename: str = "cartpole", seed: int = 25
) -> dict[str, Any]:
    """The last checkpoint of a run."""
    return torch.load(
        run_dir(logdir, gamename, seed, implementation) / "last.ckpt", weights_only=True
    )


def forget_last(folder):
    """Makes a run one that was killed before its first last.ckpt."""
    lines = [
        line
        for line in (folder / files.RECORD).read_text().splitlines()
        if not line.endswith("last.ckpt")
    ]
    (folder / files.RECORD).write_text("\n".join(lines) + "\n")
    files._records.clear()
    (folder / "last.ckpt").unlink()
    write_state(folder, "running")


class Killed(BaseException):
    """The process is gone."""


def die(words: list[str], program: str) -> int:
    """A command line whose process is killed."""
    os._exit(9)


def resident_bytes() -> int:
    """This process's memory, less what earlier tests have left to be freed: a difference of two
    is what lies between.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
