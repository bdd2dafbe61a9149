"""Checks that the command line and Python share, of what is asked of a run. Imports nothing heavy."""

from __future__ import annotations

import operator
from collections.abc import Container, Sequence
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import SEED, SEEDS, WHOLE, did_you_mean, shown
from lightning_rl.core.workers import cores

ACCELERATORS = ("cpu", "gpu", "auto")
EXECUTORS = ("serial", "ray")

_APART = {
    ("--resume", "--reload"): "a resumed run goes on with its own weights",
    ("--resume", "--no_checkpoint"): "without checkpoints there is nothing to go on from",
}


def whole_number(name: str, value: Any, low: int, high: int = WHOLE) -> int:
    """A whole number, also one of numpy's, as Python's own, which checkpoints hold; UserError for anything else."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or not low <= found <= high:
        raise UserError(f"{name} {shown(value)}: it must be a whole number from {low} to {high:,}")
    return found


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    """A word that is known; UserError for another."""
    if value not in known:
        raise UserError(f"{name} {shown(value)} is unknown; {did_you_mean(str(value), known)}")
    return value


def seeds_from(seed: Any, num_seeds: Any = 1) -> range:
    """The seeds ``seed``, ``seed + 1``, ..; UserError where these cannot be."""
    first, count = whole_number("--seed", seed, 0, SEED), whole_number("--num_seeds", num_seeds, 1, SEEDS)
    if first + count - 1 > SEED:
        raise UserError(f"--seed {first} --num_seeds {count}: the last seed is beyond {SEED:,}; lower it")
    return range(first, first + count)


def check_workers(value: Any) -> int:
    """How many processes play; UserError for more than there are cores."""
    count, most = whole_number("--num_workers", value, 0), cores()
    if count > most:
        raise UserError(f"--num_workers: {count} workers on {most} cores, it must be {most} or fewer")
    return count


def check_precision(precision: str) -> None:
    """UserError for a Trainer's precision that episodes, or optimizers that know no scaled gradients, are not made for."""
    if precision not in ("32-true", "bf16-mixed"):
        raise UserError(f"Trainer(precision={precision!r}): methods train in '32-true' or 'bf16-mixed'; take one of these")


def check_apart(given: Container[str]) -> None:
    """UserError for flags that exclude each other."""
    for flags, reason in _APART.items():
        if all(flag in given for flag in flags):
            raise UserError(f"{' and '.join(flags)} exclude each other: {reason}; leave one out")
    if "--stop_evaluations" in given and "--stop_return" not in given:
        raise UserError("--stop_evaluations goes with --stop_return R; leave it out")
