"""Where a population is evaluated. Every executor gives the same results in the same order.

A shard is a list of items; a function of (proposal, items) gives one plain result for each. Results depend on seeds alone, so a
shard can be evaluated anywhere, and again after a failure.
"""

from __future__ import annotations

import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch

from lightning_rl.evolution.cluster import join_cluster
from lightning_rl.evolution.strategies import Item, Proposal
from lightning_rl.types import RolloutError
from lightning_rl.workers import begin_worker

Evaluate = Callable[[Proposal, Sequence[Item]], list[Any]]
"""Plain results, one for each item. It must be picklable for executors other than a serial one without processes."""


def shards(items: Sequence[Item], count: int) -> list[list[Item]]:
    """At most ``count`` parts of nearly equal size; items that come after each other (like algorithms) are dealt out."""
    return [list(items[i::count]) for i in range(min(count, len(items)))]


def unshard(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """The results of ``shards`` in the order of the items."""
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
            context = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(self.processes, mp_context=context, initializer=begin_worker)
        try:
            parts = shards(items, self.processes)
            return unshard(list(self._pool.map(evaluate, [proposal] * len(parts), parts)))
        except BrokenProcessPool as error:
            raise RolloutError(
                "an evaluating process died (out of memory?); free memory or lower --num_workers, then --resume"
            ) from error

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class RayExecutor(Executor):
    """Tasks on a Ray cluster, one CPU each, twice as many as there are CPUs; a local cluster is started without an address.

    A task that dies with its worker or its node is run again by Ray, as often as it takes.
    """

    def __init__(self, address: str | None = None):
        import ray

        self._ray, self._mine = ray, join_cluster(address)
        self._task = ray.remote(num_cpus=1, max_retries=-1)(_evaluate)

    def map(self, evaluate: Evaluate, proposal: Proposal, items: Sequence[Item]) -> list[Any]:
        ray = self._ray
        function, shared = ray.put(evaluate), ray.put(proposal)
        count = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        return unshard(ray.get([self._task.remote(function, shared, part) for part in shards(items, count)]))

    def close(self) -> None:
        if self._mine:
            self._ray.shutdown()


def _evaluate(evaluate: Evaluate, proposal: Proposal, items: Sequence[Item]) -> list[Any]:
    torch.set_num_threads(1)
    return evaluate(proposal, items)


EXECUTORS: dict[str, Callable[[int, str | None], Executor]] = {
    "serial": lambda processes, address: SerialExecutor(processes),
    "ray": lambda processes, address: RayExecutor(address),
}
"""Executors by the name that ``--executor`` takes, from (--num_workers, --ray_address)."""
