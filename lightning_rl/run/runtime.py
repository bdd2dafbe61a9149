"""What the command line does to its process: fast imports, threads, determinism, memory, fewer
messages of Lightning.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import sys
import warnings

from lightning_rl.core.modules import readable_ranks
from lightning_rl.core.workers import compute_for_small_networks

_NO_ADVICE = (
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",  # Lightning's use of torch
    r"GPU available but not used",  # --accelerator cpu is the default: the networks are small
)
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def import_lightning() -> None:
    """Imports torch and Lightning with Python's garbage collector off, and exempts their objects
    from all later collections.

    They make half a million objects that stay. To search these for garbage takes a quarter of the
    time of the import, half a second now and then afterwards, and a second when the process ends.
    """
    if "pytorch_lightning" in sys.modules:
        return
    enabled = gc.isenabled()
    gc.disable()
    try:
        with readable_ranks():
            import pytorch_lightning  # noqa: F401
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def prepare_process() -> None:
    """Sets the process up for a command: threads, denormal numbers, determinism, memory, and
    Lightning's messages.
    """
    import torch

    quiet_lightning()
    compute_for_small_networks()
    keep_freed_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what the next line asks of CUDA
    torch.use_deterministic_algorithms(True)
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


def quiet_lightning() -> None:
    """Silences Lightning's greeting and the warnings that a user of the command line can do
    nothing about; others are shown.
    """
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    for message in _NO_ADVICE:
        warnings.filterwarnings("ignore", message=message)
