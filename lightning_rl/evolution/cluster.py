"""Joining a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.workers import cores

_KEEP_IDLE_MS = "60000"  # a worker takes seconds to import torch; Ray ends one that has waited for a second for its next task


def join_cluster(address: str | None) -> bool:
    """Joins the Ray cluster at ``address`` (``auto``: the one on this machine) and brings this package along; without an
    address, one is started here, on the cores that this process may use. Whether it was, and is to be shut down.

    UserError where no cluster answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # where several tasks fail of one mistake, one is reported
    os.environ.setdefault("RAY_idle_worker_killing_time_threshold_ms", _KEEP_IDLE_MS)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    _check_address(address)
    if ray.is_initialized():
        return False
    place: dict[str, Any] = {"num_cpus": cores()}
    if address is not None:
        package = str(Path(__file__).resolve().parent.parent)
        place = {"address": address, "runtime_env": {"py_modules": [package]}}
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **place)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_answer(str(address), str(error).splitlines()[0]) from error
    return True


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
        f"--ray_address '{address}': no Ray cluster answers there ({reason}); give host:port of one started with "
        "'ray start --head', or leave the flag out for a local one"
    )
