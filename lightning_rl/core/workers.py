"""How many workers there can be, and what each does first, so that it neither outlives its
parent nor takes its signals.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import FunctionType
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.stopping import LEAVE_S

GRACE_S = 600  # for a parent that finishes its epoch; one that is not ours may take long
_POLL_S = 0.5


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_workers(most: int = 2) -> int:
    """Processes that play where nobody says how many: ``most``, if there are so many cores; none
    below a worker of multiprocessing, which may start none.
    """
    return 0 if multiprocessing.current_process().daemon else min(most, cores())


def check_may_start(what: str, remedy: str) -> None:
    """UserError in a process that may start none."""
    if multiprocessing.current_process().daemon:
        raise UserError(
            f"{what}: this process is a worker of multiprocessing, which may start no others; "
            f"{remedy}"
        )


def check_sendable(work: object) -> None:
    """UserError for what workers that are not forked could not be given, e.g. a class that is
    defined in a notebook.
    """
    if multiprocessing.get_start_method() == "fork":
        return
    try:
        _Finder(BytesIO()).dump(work)
    # a function within a function, an open file
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise UserError(
            f"worker processes cannot be given this ({error}); {_TO_A_MODULE}"
        ) from error


_TO_A_MODULE = "write it to a module and import it, or give num_workers=0"


class _Finder(pickle.Pickler):
    """Finds classes and functions of a ``__main__`` that is no file: the interpreter of a worker
    knows nothing of it.
    """

    def reducer_override(self, found: Any) -> Any:
        main: Any = sys.modules["__main__"]
        is_module = getattr(main, "__spec__", None) is not None
        nowhere = not is_module and not Path(getattr(main, "__file__", "")).is_file()
        if nowhere and isinstance(found, type | FunctionType) and found.__module__ == "__main__":
            name = found.__qualname__
            raise UserError(
                f"'{name}' is defined in a notebook or at a prompt, unknown to worker processes; "
                f"{_TO_A_MODULE}"
            )
        return NotImplemented


def compute_for_small_networks() -> None:
    """Sets torch to one thread, as cores are for seeds and workers, and flushes denormal numbers
    (below 1e-38) to zero.

    Adam's moments of dead units decay into that range, where arithmetic is slow.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def begin_worker(worker_id: int = 0, nice: int = 0) -> None:
    """One thread; leaves with its parent. Ctrl-C and SIGTERM are for the parent, which then ends
    its workers.

    A SIGTERM to the whole group gives the parent time to finish its epoch before the worker leaves
    too.
    worker_id: as a DataLoader numbers its workers. nice: how far others go first where there are
    fewer cores than processes.
    """
    import torch

    torch.set_num_threads(1)
    os.nice(nice)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.alarm(GRACE_S))
    leave_with_parent()


def leave_with_parent(leave: Callable[[], None] = lambda: os._exit(1)) -> None:
    """Calls ``leave`` in a thread once the process that started this one is gone, also by ``kill
    -9``; by default it ends at once. Nothing happens in a process that multiprocessing has not
    started.

    The parent is polled: Linux's parent-death signal comes when the *thread* that forked ends, and
    other systems have none. The parent's process id was recorded before the fork, so a parent that
    has already gone is noticed, too.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def parent_works() -> bool:
        if multiprocessing.get_start_method() == "forkserver":
            return parent.is_alive()  # the server is the parent that the system knows
        return os.getppid() == parent.pid

    def watch() -> None:
        while parent_works():
            time.sleep(_POLL_S)
        leave()

    threading.Thread(target=watch, daemon=True, name="parent watch").start()


def finish_epoch() -> None:
    """Asks this process, a training run of its own, to finish its epoch and leave, and ends it
    if that takes too long.
    """
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LEAVE_S)
    os._exit(1)
