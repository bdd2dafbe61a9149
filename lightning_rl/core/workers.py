"""How many workers there can be, and what each does first, so that it neither outlives its parent nor takes its signals."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

GRACE_S = 600  # for a parent that finishes its epoch
_POLL_S = 0.5


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compute_for_small_networks() -> None:
    """Sets torch to one thread, as cores are for seeds and workers, and flushes denormal numbers (below 1e-38) to zero.

    Adam's moments of dead units decay into that range, where arithmetic is slow.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def begin_worker(worker_id: int = 0) -> None:
    """One thread; leaves with its parent. Ctrl-C and SIGTERM are for the parent, which then ends its workers.

    A SIGTERM to the whole group gives the parent time to finish its epoch before the worker leaves too.
    worker_id: as a DataLoader numbers its workers.
    """
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.alarm(GRACE_S))
    leave_with_parent()


def leave_with_parent(leave: Callable[[], None] = lambda: os._exit(1)) -> None:
    """Calls ``leave`` in a thread once the process that started this one is gone, also by ``kill -9``; by default it ends at
    once. Nothing happens in a process that multiprocessing has not started.

    The parent is polled: Linux's parent-death signal comes when the *thread* that forked ends, and other systems have none. The
    parent's process id was recorded before the fork, so a parent that has already gone is noticed, too.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(_POLL_S)
        leave()

    threading.Thread(target=watch, daemon=True, name="parent watch").start()


def finish_epoch() -> None:
    """Asks this process, a training run of its own, to finish its epoch and leave, and ends it if that takes too long."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)
