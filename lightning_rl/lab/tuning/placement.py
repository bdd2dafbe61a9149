"""What a trial takes of the cluster, and whether there is room for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.evolution.cluster import EXECUTORS
from lightning_rl.run.options import RunOptions


def trial_bundles(options: RunOptions) -> list[dict[str, float]]:
    """Of the trial's own process, then of each worker of its population: Ray gives a trial all
    of them, or lets it wait.
    """
    trial, *workers = EXECUTORS[options.executor].bundles(options.num_workers)
    return [{**trial, "GPU": 1.0} if options.accelerator == "gpu" else trial, *workers]


def check_room(bundles: Sequence[Mapping[str, float]], nodes: Sequence[Mapping[str, Any]]) -> None:
    """UserError where not even one trial fits the nodes, as ``ray.nodes()`` gives them: Ray
    itself would wait for ever.
    """
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    for resource, flag in (("GPU", "--accelerator gpu"), ("CPU", "--num_workers")):
        sizes = [bundle[resource] for bundle in bundles if resource in bundle]
        shared = len(sizes) > 1  # bundles of one size each, on any machine
        present = [machine.get(resource, 0) for machine in machines]
        room = sum(each // max(sizes) for each in present) if sizes else 0
        if room < len(sizes):
            where, most = (
                ("in all", sum(present)) if shared else ("on one machine", max(present, default=0))
            )
            raise UserError(
                f"{flag}: a trial takes {sum(sizes):g} {resource}s {where}, the cluster has "
                f"{most:g}; "
                f"lower or leave out {flag.split()[0]}, or give the --ray_address of a larger "
                "cluster"
            )
