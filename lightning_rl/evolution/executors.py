"""Where a population is evaluated. Every executor gives the same outcomes, up to rounding, in the
same order.

A shard is a list of items; a function of (proposal, items) gives one plain outcome for each.
Outcomes depend on seeds alone, so a shard can be evaluated anywhere, and again after a failure. (A
stack of another size may add up in another order.)
"""

from __future__ import annotations

import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from lightning_rl.core.errors import RolloutError
from lightning_rl.core.workers import begin_worker, check_may_start
from lightning_rl.evolution.strategies import Item, Proposal

Evaluate = Callable[[Proposal, Sequence[Item]], list[Any]]
"""Plain outcomes, one for each item. It must be picklable for executors other than a serial one
without processes.
"""


def shards(items: Sequence[Item], count: int) -> list[list[Item]]:
    """At most ``count`` parts of nearly equal size; neighbours, which may be of one kind of
    agent, go to different parts.
    """
    return [list(items[i::count]) for i in range(min(count, len(items)))]


def unshard(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """The outcomes of ``shards`` in the order of the items."""
    return [parts[i % len(parts)][i // len(parts)] for i in range(sum(len(part) for part in parts))]


class Executor(ABC):
    """Evaluates the items of a generation."""

    @abstractmethod
    def map(self, evaluate: Evaluate, proposal: Proposal, items: Sequence[Item]) -> list[Any]:
        """``evaluate`` on every item, in order."""

    def close(self) -> None:
        """Ends processes, where there are any."""


class SerialExecutor(Executor):
    """One stacked batch in this process, or one in each of ``processes`` local ones."""

    def __init__(self, processes: int = 1):
        self.processes = max(processes, 1)
        self._pool: ProcessPoolExecutor | None = None

    def map(self, evaluate: Evaluate, proposal: Proposal, items: Sequence[Item]) -> list[Any]:
        if self.processes == 1:
            return evaluate(proposal, items)
        if self._pool is None:
            check_may_start(f"num_workers {self.processes}", "give num_workers=0")
            context = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(
                self.processes, mp_context=context, initializer=begin_worker
            )
        try:
            parts = shards(items, self.processes)
            return unshard(list(self._pool.map(evaluate, [proposal] * len(parts), parts)))
        except BrokenProcessPool as error:
            raise RolloutError(
                "an evaluating process died (out of memory?); free memory or lower --num_workers, "
                "then --resume"
            ) from error

    def close(self) -> None:
        if self._pool is not None:
            processes = list(self._pool._processes.values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()  # what it is still at may never end
            self._pool = None
