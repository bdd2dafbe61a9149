"""A run directory: which process uses it, what was asked for, and its state: running, finished,
interrupted or failed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import yaml

from lightning_rl.core.errors import DiskFullError, UserError
from lightning_rl.core.files import (
    RECORD,
    adopt,
    at_work,
    hold,
    is_recorded,
    keep_record,
    make_folder,
    not_ours,
    record_of,
    sweep,
    write_text,
)
from lightning_rl.core.gamenames import folder_name
from lightning_rl.core.limits import NAME_BYTES, shorten
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.run.shipped import shipped_checkpoint

if TYPE_CHECKING:
    from lightning_rl.core.schema import MethodConfig
    from lightning_rl.run.options import RunOptions

STATE, CONFIG, LOCK, LAST = "state.yaml", "config.yaml", ".lock", "last.ckpt"
WEIGHTS = "model.safetensors"  # of an exported policy
_PACKAGES = ("lightning_rl", "torch", "pytorch-lightning", "gymnasium", "numpy", "tensorboard")
_TAKEN = "choose another --seed or --exp_name"


def check_folder_names(exp_name: str, gamename: str) -> None:
    """UserError for names that no folders of results can have."""
    for flag, name in (("--exp_name", exp_name), ("--gamename", folder_name(gamename))):
        readable = name.isprintable() and len(name.encode()) <= NAME_BYTES
        if not readable or "/" in name or name in ("", ".", ".."):
            raise UserError(
                f"{flag} '{shorten(name)}' is not a folder name; use letters, digits, '-' and '_', "
                f"at most {NAME_BYTES} bytes"
            )


@contextlib.contextmanager
def held(folder: Path, remedy: str) -> Iterator[None]:
    """Locks a folder that is no run's, made if need be, against other processes; UserError with
    the remedy if one has it.
    """
    with _lock_file(folder, remedy) as lock:
        hold(lock, folder, remedy)
        yield


def _lock_file(folder: Path, remedy: str) -> IO[str]:
    """Opens the file in a folder, made if need be, that a process holds which is at work there."""
    make_folder(folder, remedy)
    try:
        lock = folder / LOCK
        if lock.exists() and not lock.is_file():  # opening a pipe waits for its other end
            raise UserError(f"'{lock}' is not a file; remove it")
        return lock.open("a")  # what is in it stays
    except OSError as error:
        raise UserError(f"cannot write to '{folder}': {error.strerror}; {remedy}") from error


@contextlib.contextmanager
def owned(run_dir: Path) -> Iterator[Callable[[], None]]:
    """Creates the run directory and locks it against other processes.

    Yields a function to call when the run begins: from then on ``state.yaml`` is kept. A run
    refused before leaves all as it was.
    """
    begun, new = False, not run_dir.exists()

    def begin() -> None:
        nonlocal begun
        if record_of(run_dir / STATE) is None:
            keep_record(run_dir)
            for path in (run_dir / STATE, run_dir / CONFIG):
                # of a run whose record is gone: ``refuse_changed`` has seen that they are its own
                if path.exists():
                    adopt(path)
        begun = True
        write_state(run_dir, "running")

    with _lock_file(run_dir, "choose another --logdir") as lock, _folder_held(run_dir):
        hold(lock, run_dir, _TAKEN)
        sweep(run_dir)
        try:
            yield begin
        except BaseException as error:
            with contextlib.suppress(UserError):  # the first error counts
                if begun and isinstance(error, Exception):
                    reason = str(error).partition("\n")[0]
                    if not isinstance(error, UserError):
                        reason = f"{type(error).__name__}: {reason}".removesuffix(": ")
                    write_state(run_dir, "failed", reason)
                elif begun:
                    write_state(run_dir, "interrupted")
                elif new:
                    _remove(run_dir)
            raise


def _remove(run_dir: Path) -> None:
    """Takes away a run directory in which nothing has begun, and the folders above it that are
    empty then.
    """
    with contextlib.suppress(OSError):
        (run_dir / LOCK).unlink()
        for folder in (run_dir, *run_dir.parents[:3]):  # of implementation, experiment and gamename
            folder.rmdir()


@contextlib.contextmanager
def _folder_held(run_dir: Path) -> Iterator[None]:
    """Holds the folder itself, too: a lock file may be removed. Some network file systems
    cannot; there the file alone counts.
    """
    folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        hold(folder, run_dir, _TAKEN)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EINVAL, errno.ENOTSUP):
            raise
    try:
        with at_work(run_dir, folder):
            yield
    finally:
        os.close(folder)


def refuse_second(run_dir: Path) -> None:
    """UserError where a new run would mix with, or overwrite, one that the directory holds."""
    state, reason = read_state(run_dir)
    if state == "running":
        raise UserError(f"'{run_dir}' is in use by another process; {_TAKEN}")
    remedy = "choose another --exp_name or --seed, or move that folder away"
    found = f"already holds a run; continue with --resume, or {remedy}"
    if not any(run_dir.glob("*.ckpt")):
        if not any((run_dir / name).exists() for name in (CONFIG, STATE, RECORD, "logger")):
            return
        if state == "failed":
            found = (
                f"holds a run that failed ({reason}) and left no checkpoint; begin it again with "
                f"--resume, or {remedy}"
            )
        elif state == "finished":
            found = f"already holds a run, without a checkpoint; {remedy}"
    raise UserError(f"'{run_dir}' {found}")


def checkpoint_at(path: Path) -> Path:
    """The checkpoint that a path means: a file itself; of a run directory its last one, or, where
    that is not there, its best; of an exported policy its weights.

    Where there is no such path, it may be the name of an agent that comes with the package.
    """
    if not path.exists():
        return shipped_checkpoint(str(path))
    if not path.is_dir():
        return path
    # Files that the run has not written come last.
    best = sorted(
        path.glob("epoch=*.ckpt"),
        key=lambda found: (is_recorded(found), found.stat().st_mtime),
        reverse=True,
    )
    for found in (path / LAST, *best, path / WEIGHTS):
        if found.is_file():
            return found
    raise UserError(
        f"'{path}' holds no checkpoint; give the path of one, or of a run directory (..../seed_25)"
    )


def first_start(run_dir: Path) -> dict[str, Any]:
    """How a run that is resumed once began: ``command`` and ``reload``; nothing where no whole
    ``config.yaml`` says it.
    """
    try:
        content = read_yaml(run_dir / CONFIG)
        return {key: content[key] for key in ("command", "reload")}
    except (UserError, TypeError, KeyError):
        return {}


def config_content(
    options: RunOptions,
    config: MethodConfig,
    networks: Mapping[str, str] | None = None,
    begun: Mapping[str, Any] | None = None,
    dataset: str | None = None,
) -> dict[str, Any]:
    """What ``config.yaml`` says: everything that is needed to repeat the run.

    networks: the classes of own ones, by name; begun: of a resumed run its ``first_start``, without
    which it is not repeated; dataset: what it learns from, in words.
    """
    return {
        "command": shlex.join(sys.argv),
        "implementation": options.implementation,
        "gamename": options.gamename,
        "exp_name": options.exp_name,
        "seed": options.seed,
        "preset": options.preset,
        "num_workers": options.num_workers,
        "accelerator": options.accelerator,
        "reload": None if options.reload is None else str(options.reload),
        **({} if dataset is None else {"dataset": dataset}),
        "config": dataclasses.asdict(config),
        **({"networks": dict(networks)} if networks else {}),
        "git_commit": _git_commit(),
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in _PACKAGES}},
        **(begun or {}),
    }


def write_config(run_dir: Path, content: Mapping[str, Any]) -> None:
    """Writes ``config.yaml``."""
    write_text(run_dir / CONFIG, yaml.safe_dump(dict(content), sort_keys=False))


def refuse_changed(run_dir: Path) -> None:
    """UserError where a start would overwrite a ``config.yaml`` or ``state.yaml`` that this program
    did not write so; the same for what else is in its way.
    """
    if (run_dir / RECORD).exists():
        keep_record(run_dir)  # which refuses a file that is none
    for folder in (run_dir / "logger", run_dir / "logger" / "version_0"):
        if folder.exists() and not folder.is_dir():
            raise UserError(
                f"'{folder}' is no folder, and that of the logs; move it away, then start again"
            )
    for path, key in ((run_dir / STATE, "state"), (run_dir / CONFIG, "config")):
        if not path.exists() or is_recorded(path):
            continue
        content = None
        if record_of(path) is None:  # of a run whose record is gone
            with contextlib.suppress(UserError):
                content = read_yaml(path)
        if not isinstance(content, dict) or key not in content:
            raise not_ours(path)


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def _git_commit() -> str | None:
    """The commit of the source tree, with ``-dirty`` where it has uncommitted changes: of the code
    that the process imported.

    None of an installed package: a repository that its folder happens to lie in has other files.
    """
    here = Path(__file__).resolve()
    try:
        _git(here.parent, "ls-files", "--error-unmatch", here.name)
        words = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
        return _git(here.parent, *words) or None
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ("git", *words), cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def write_state(run_dir: Path, state: str, reason: str = "") -> None:
    """``state.yaml``; a full disk, which is perhaps why the run ends, is no reason to lose the
    first error.
    """
    with contextlib.suppress(DiskFullError):
        content = {"state": state, **({"reason": reason} if reason else {})}
        write_text(run_dir / STATE, yaml.safe_dump(content, width=1000))


def read_state(run_dir: Path) -> tuple[str, str]:
    """(state, reason). A run that was killed while running is ``interrupted``; one without a
    ``state.yaml``, ``unknown``.
    """
    if _held(run_dir):
        return "running", ""
    try:
        content = read_yaml(run_dir / STATE)
        state, reason = str(content["state"]), str(content.get("reason", ""))
    except (UserError, TypeError, KeyError, AttributeError):
        return "unknown", ""
    return ("interrupted", "killed") if state == "running" else (state, reason)


def _held(run_dir: Path) -> bool:
    return any(_locked(path) for path in (run_dir, run_dir / LOCK))


def _locked(path: Path) -> bool:
    """Whether another process holds the file or folder; False where that cannot be found out."""
    # Network file systems lock only what is open for writing. A pipe of this name must not stop a
    # listing.
    access = os.O_RDWR if path.is_file() and os.access(path, os.W_OK) else os.O_RDONLY
    try:
        handle = os.open(path, access | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        # Shared: two that look at once do not see each other.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
