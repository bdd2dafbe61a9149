"""What the command line does to its process (threads, determinism, memory), and training for its
while: fewer messages of Lightning.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import warnings
from collections.abc import Iterator

from lightning_rl.core.workers import compute_for_small_networks

NO_ADVICE = (
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",  # Lightning's use of torch
    r"GPU available but not used",  # --accelerator cpu is the default: the networks are small
)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def prepare_process() -> None:
    """Sets the process up for a command: threads, denormal numbers, determinism, memory."""
    import torch

    compute_for_small_networks()
    keep_freed_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what the next line asks of CUDA
    torch.set_deterministic_debug_mode("error")  # also without its compiler, unlike the longer name
    # Or an empty replay memory would be written from end to end.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def keep_freed_memory() -> None:
    """Tells the C library (glibc; elsewhere nothing happens) to keep freed blocks instead of giving
    them back to the system.

    A batch's activations are freed and asked for again at every update; fetching their pages anew
    costs more than using them.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(_M_MMAP_THRESHOLD, 2**25)  # the most that it takes
        libc.mallopt(_M_TRIM_THRESHOLD, 2**29)


@contextlib.contextmanager
def quiet(logger: str, level: int, *messages: str) -> Iterator[None]:
    """Meanwhile this logger shows only what is of this level, and warnings that begin with one of
    the messages (patterns) are not shown.
    """
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(level)
    try:
        with warnings.catch_warnings():
            for message in messages:
                warnings.filterwarnings("ignore", message=message)
            yield
    finally:
        log.setLevel(before)
