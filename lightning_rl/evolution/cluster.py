"""A population on a Ray cluster, and how to join one."""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.modules import looked_in, notes, take
from lightning_rl.core.workers import compute_for_small_networks, cores
from lightning_rl.evolution.executors import Evaluate, Executor, shards, unshard
from lightning_rl.evolution.strategies import Item, Proposal

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # where several tasks fail of one mistake, one is reported
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # a worker takes seconds to import torch; Ray ends one that has waited for a second for a task
    "RAY_idle_worker_killing_time_threshold_ms": "60000",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def join_cluster(address: str | None, packages: Sequence[Path] = ()) -> bool:
    """Joins the Ray cluster at ``address`` (``auto``: the one on this machine), or else at
    RAY_ADDRESS, and sends this package there, and these; without an address, a cluster is started
    here, on the cores that this process may use. Does nothing in a process that is in a cluster
    already. Returns whether it has joined or started one, which the caller then has to
    ``leave_cluster``.

    UserError where no cluster answers.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    require("a Ray cluster", "ray")
    import ray

    address = address or os.environ.get("RAY_ADDRESS") or None  # Ray itself reads it, too
    _check_address(address)
    if ray.is_initialized():
        return False
    place: dict[str, Any] = {"address": address}
    if address is None:
        place = {"address": "local", "num_cpus": cores()}
    sent = list(packages)
    if address is not None or not _installed():
        sent.append(Path(__file__).resolve().parent.parent)
    if sent:
        place["runtime_env"] = {"py_modules": [str(package) for package in sent]}
    if looked_in() is not None and not place["address"].startswith("ray://"):
        place["job_config"] = _plain_job()
    if address is None:
        _make_token()
    on_term = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **place)
    except Exception as error:  # Ray raises it bare where a node does not start in time
        _forget_token()
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if address is not None:
            raise _no_answer(address, reason) from error
        raise UserError(
            f"no local Ray cluster has started ({reason}); try again when the machine has less to "
            "do"
        ) from error
    if callable(on_term) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_term)  # Ray has set its own
    return True


def leave_cluster() -> None:
    """Leaves the cluster that was joined, and ends it if it was started here."""
    import ray

    ray.shutdown()
    _forget_token()


_own_token: dict[str, str] = {}  # of the cluster that was started here, as it is in the environment


def _make_token() -> None:
    """The cluster that is about to be started answers only those who know this token: the processes
    that inherit it.

    Ray listens on every network of the machine, and runs whatever a client sends. Where the user
    has said how Ray is to authenticate, that counts.
    """
    if any(name.startswith("RAY_AUTH_") for name in os.environ):
        return
    _own_token.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    os.environ.update(_own_token)
    _read_token()


def _forget_token() -> None:
    if _own_token:
        for name in _own_token:
            os.environ.pop(name, None)
        _own_token.clear()
        _read_token()


def _read_token() -> None:
    """Has Ray, which reads the environment when it is imported, read it again."""
    raylet: Any = importlib.import_module("ray._raylet")
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def _installed() -> bool:
    """Whether a new process finds this package."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    return any(finder.find_spec("lightning_rl", None) is not None for finder in finders)


def _plain_job() -> Any:
    """A job whose workers look for modules where Python does, and not, as Ray has it, in the
    folders of script and user, too.
    """
    from ray.job_config import JobConfig

    class PlainJob(JobConfig):
        def _serialize(self) -> Any:
            self._py_driver_sys_path.clear()
            return super()._serialize()

    return PlainJob()


def _check_address(address: str | None) -> None:
    """Ray itself waits for minutes where nobody answers."""
    if address is None or address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise _no_answer(address, str(error)) from error


def _no_answer(address: str, reason: str) -> UserError:
    return UserError(
        f"--ray_address '{address}': no Ray cluster answers there ({reason}); give host:port of "
        "one started with 'ray start --head', or leave the flag and RAY_ADDRESS out for a local one"
    )


class RayExecutor(Executor):
    """Tasks on a Ray cluster, one CPU each, twice as many as there are CPUs; a local cluster is
    started without an address.

    Inside a trial of a search they have the CPUs that are set aside for the trial. A task that dies
    with its worker or its node is run again by Ray, as often as it takes.
    """

    def __init__(self, address: str | None = None):
        require("executor=ray", "ray")
        import ray

        self._ray, self._started_here = ray, join_cluster(address)
        self._task = ray.remote(num_cpus=1, max_retries=-1)(_evaluate)

    def map(self, evaluate: Evaluate, proposal: Proposal, items: Sequence[Item]) -> list[Any]:
        ray = self._ray
        function, shared = ray.put(evaluate), ray.put(proposal)
        try:
            parts = [
                self._task.remote(notes(), function, shared, part)
                for part in shards(items, 2 * self._cpus())
            ]
            return unshard(ray.get(parts))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error

    def _cpus(self) -> int:
        group = self._ray.util.get_current_placement_group()
        bundles = [self._ray.cluster_resources()] if group is None else group.bundle_specs
        return max(int(sum(bundle.get("CPU", 0) for bundle in bundles)), 1)

    def close(self) -> None:
        if self._started_here:
            leave_cluster()


def _evaluate(
    allowed: dict[str, str], evaluate: Evaluate, proposal: Proposal, items: Sequence[Item]
) -> list[Any]:
    take(allowed)
    compute_for_small_networks()
    return evaluate(proposal, items)
