"""A run is one process, whatever a cluster's variables say: SLURM_PROCID, RANK, WORLD_SIZE and the
like.

Tasks of one job train seeds of their own. Lightning would take them for parts of one run, and let
only the first of them log.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from pytorch_lightning import utilities

_LOGS: Any = utilities.rank_zero_only
"""Whose attribute ``rank`` says whether this process logs."""
_LOCK = threading.Lock()
_RANKS: list[int] = []
"""The rank that Lightning took from the variables, once for each run under way: one may begin
within another.
"""


class SingleProcess(LightningEnvironment):
    """The only process of its run, which leaves the variables as they are."""

    @property
    def creates_processes_externally(self) -> bool:
        return False

    def local_rank(self) -> int:
        return 0

    def node_rank(self) -> int:
        return 0

    def teardown(self) -> None:
        """Lightning's own removes WORLD_SIZE."""


@contextlib.contextmanager
def first_rank() -> Iterator[None]:
    """Makes this process the one that logs; afterwards its rank is again what it was."""
    with _LOCK:
        _RANKS.append(_RANKS[0] if _RANKS else _LOGS.rank)
        _LOGS.rank = 0
    try:
        yield
    finally:
        with _LOCK:
            rank = _RANKS.pop()
            if not _RANKS:
                _LOGS.rank = rank
