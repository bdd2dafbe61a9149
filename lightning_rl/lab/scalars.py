"""The scalars that a run has logged, from its TensorBoard files."""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import EVENT_BYTES, WHOLE, did_you_mean

Floats = npt.NDArray[np.float64]
Skip = Callable[[Path, str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Curve:
    """Values ``[n]`` of one run at env_steps ``[n]``; seconds ``[n]``: since the run began, without breaks."""

    name: str
    env_steps: Floats
    value: Floats
    seconds: Floats


class UnknownScalarError(UserError):
    """A run does not log what is asked of it."""


def print_skipped(path: Path, reason: str) -> None:
    """The line about something that is left out, which it names once."""
    reason = reason.removeprefix(f"'{path}' ").removeprefix(f"'{path}': ")
    print(f"skipped '{path}': {reason}", file=sys.stderr)


def attempt(path: Path, read: Callable[..., T], *given: Any, skip: Skip = print_skipped) -> list[T]:
    """What ``read(*given)`` gives, or nothing and a line about ``path`` where it cannot."""
    try:
        return [read(*given)]
    except UserError as error:
        skip(path, str(error))
        return []


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts ``seed_9`` before ``seed_10``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def read_scalar(run_dir: Path, tag: str) -> Curve:
    """A scalar over env_steps from all TensorBoard files of a run; what is later than the begin of the next file is void.

    UnknownScalarError where the run has no such scalar, UserError where it has no finite value of it.
    """
    points: dict[int, tuple[float, float]] = {}
    before = 0.0
    for path in event_files(run_dir):
        events = read_events(path)
        new = {step: (value, before + seconds) for step, seconds, value in events.scalars.get(tag, ())}
        begin = min([*new, events.begin])
        points = {step: point for step, point in points.items() if step < begin} | new
        before += events.seconds
    if not points:
        known = scalar_names(run_dir)
        remedy = did_you_mean(tag, sorted(known), "it has") if known else "give a run directory with a logger/ folder in it"
        raise UnknownScalarError(f"'{run_dir}' has no scalar '{tag}'; {remedy}")
    steps = sorted(points)
    value, seconds = np.array([points[step] for step in steps]).T
    if not np.isfinite(value).any():
        raise UserError(f"'{run_dir}': no value of its scalar '{tag}' is a finite number; the run diverged, leave it out")
    return Curve(run_dir.name, np.array(steps, dtype=np.float64), value, seconds)


def scalar_names(run_dir: Path) -> set[str]:
    """The scalars that a run has."""
    return {name for path in event_files(run_dir) for name in read_events(path).scalars}


def event_files(run_dir: Path) -> list[Path]:
    """The TensorBoard files of a run, one for each time that it was started, oldest first."""
    found = (path for path in run_dir.glob("logger/version_*/*tfevents*") if path.is_file())
    return sorted(found, key=lambda path: (natural_order(path.parent.name), natural_order(path.name)))


@dataclass(frozen=True)
class Events:
    """scalars: (env_steps, seconds since the start, value) by tag; seconds: how long it was written."""

    scalars: Mapping[str, list[tuple[int, float, float]]]
    seconds: float

    @property
    def begin(self) -> float:
        """The first step of the run's own scalars that each epoch has; others may be over another axis, as Lightning's are."""
        return min((points[0][0] for tag, points in self.scalars.items() if tag.startswith("time/")), default=math.inf)


def read_events(path: Path) -> Events:
    """All scalars of an event file. One that is cut short counts up to the cut; what is no event file is named and left out."""
    return _parsed(path, path.stat().st_size)


@functools.lru_cache(maxsize=512)
def _parsed(path: Path, size: int) -> Events:
    if size > EVENT_BYTES:
        print_skipped(path, f"it has {size:,} bytes, the limit is {EVENT_BYTES:,}")
        return Events({}, 0.0)
    events, started = EventAccumulator(str(path), size_guidance={"scalars": 0}), 0.0
    try:
        events.Reload()
        started = events.FirstEventTimestamp()
    except Exception as error:  # whatever the parser makes of foreign bytes; what comes before them is still good
        if size:
            print_skipped(path, f"it is not a whole event file ({type(error).__name__})")
    scalars = {}
    for tag in events.Tags()["scalars"]:
        found = ((e.step, e.wall_time, e.value) for e in events.Scalars(tag) if 0 <= e.step <= WHOLE)
        if points := [(step, time - started, value) for step, time, value in found if abs(time) <= WHOLE]:
            scalars[tag] = points
    ended = max((time for points in scalars.values() for _, time, _ in points), default=0.0)
    return Events(scalars, max(ended, 0.0))
