"""Where a population is evaluated. Every executor gives the same results in the same order.

A shard is a list of items; a function of (proposal, items) gives one plain result for each. Results depend on seeds alone, so a
shard can be evaluated anywhere, and again after a failure.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import torch

from lightning_rl.evolution.strategies import Item, Proposal
from lightning_rl.types import RolloutError, UserError

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


def _start_process() -> None:
    """One thread for each process; Ctrl-C is for the main process, which finishes the generation."""
    torch.set_num_threads(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


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
            self._pool = ProcessPoolExecutor(self.processes, mp_context=context, initializer=_start_process)
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

        self._ray = ray
        _check_address(address)
        package = str(Path(__file__).resolve().parent.parent)
        remote: dict[str, Any] = {} if address is None else {"runtime_env": {"py_modules": [package]}}
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        self._mine = not ray.is_initialized()
        if self._mine:
            try:
                ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **remote)
            except (ConnectionError, RuntimeError, ValueError) as error:
                reason = str(error).splitlines()[0]
                raise UserError(f"--ray_address '{address}': no Ray cluster answers there ({reason}); start one with "
                                "'ray start --head', or leave the flag out for a local one") from error  # fmt: skip
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


def _check_address(address: str | None) -> None:
    """Ray itself waits for minutes where nobody answers."""
    if address is None or address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"--ray_address '{address}': no Ray cluster answers there ({error}); give host:port of one started with "
            "'ray start --head', or leave the flag out for a local one"
        ) from error


EXECUTORS: dict[str, Callable[[int, str | None], Executor]] = {
    "serial": lambda processes, address: SerialExecutor(processes),
    "ray": lambda processes, address: RayExecutor(address),
}
"""Executors by the name that ``--executor`` takes, from (--num_workers, --ray_address)."""
