"""How much memory a config asks for, before anything is made."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.schema import MethodConfig
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.registry import implementation

_NUMBER = 4  # bytes
_FEATURES = 4096  # of an encoder, about
_COPIES = 4  # of a weight: itself, its gradient, two moments
_INDEX = 8 * 4
"""Bytes: a whole number, for up to four times the updates where an epoch has more steps than asked
for.
"""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def footprint(config: MethodConfig, spec: EnvSpec) -> dict[str, int]:
    """About how many bytes each key makes one seed take; keys that are not there take none."""

    def of(key: str, otherwise: Any) -> Any:
        return getattr(config, key, None) or otherwise

    row = 2 * spec.obs_size + spec.action_size + 2
    if spec.frames is not None:  # frames are stored, as bytes
        row = 2 * math.ceil(spec.stored_size / _NUMBER) + spec.action_size + 2
    needed = {key: _NUMBER * row * steps for key, steps in config.stored_steps(spec).items()}
    batch, width = of("batch_size", 1), row
    for key in ("hidden", "critic_hidden"):
        inputs = spec.obs_size + spec.action_size
        if spec.frames is not None:
            inputs = _FEATURES
        layers = [inputs, *of(key, []), spec.action_size]
        needed[key] = _NUMBER * _COPIES * sum(a * b for a, b in itertools.pairwise(layers))
        width += 2 * sum(layers)
    needed["batch_size"] = _NUMBER * batch * width
    needed["steps_per_iter"] = _NUMBER * row * of("steps_per_iter", 0)
    updates = {key: of(key, 0) for key in ("num_updates_per_iter", "num_critic_updates_per_iter")}
    needed[max(updates, key=updates.__getitem__)] = _INDEX * batch * sum(updates.values())
    inner = sum(sum(footprint(each, spec).values()) for each in inner_configs(config))
    many = max(("population", "center_agents", "eval_agents"), key=lambda key: of(key, 0))
    needed[many] = of(many, 0) * (inner + needed["hidden"])
    return needed


def inner_configs(config: MethodConfig) -> list[MethodConfig]:
    """The configs of the agents that a search trains on its proxies; none for other methods."""
    return [
        implementation(name).Config(**keys)
        for name, keys in (getattr(config, "agent", None) or {}).items()
    ]


def memory() -> int:
    """Bytes of this machine, or of the share of it that this process may take."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        share = int(_CGROUP.read_text())
    except (OSError, ValueError):  # no such limit
        return machine
    return min(machine, share)


def require_memory(config: MethodConfig, spec: EnvSpec, seeds: int) -> None:
    """UserError, naming the keys that ask for most, where the run takes more memory than there
    is.
    """
    needed = footprint(config, spec)
    total, there = seeds * sum(needed.values()), memory()
    if total > there:
        most = sorted(needed, key=lambda key: needed[key], reverse=True)[:2]
        asked = " and ".join(f"{key} {shown(getattr(config, key, None))}" for key in most)
        raise UserError(
            f"{asked}: with {seeds} seed(s) the run would take about {total / 1e9:,.1f} GB of "
            f"memory, of {there / 1e9:,.1f} GB "
            "here; make them smaller"
        )
