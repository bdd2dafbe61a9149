"""The scalars that a run has logged, from its TensorBoard files."""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import EVENT_BYTES, WHOLE, did_you_mean
from lightning_rl.core.lines import say

Floats = npt.NDArray[np.float64]
Skip = Callable[[Path, str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Curve:
    """Values ``[n]`` of one run at env_steps ``[n]``; seconds ``[n]``: since the run began,
    without breaks.
    """

    name: str
    env_steps: Floats
    value: Floats
    seconds: Floats


class UnknownScalarError(UserError):
    """A run does not log what is asked of it."""


def print_skipped(path: Path, reason: str) -> None:
    """The line about something that is left out, which it names once."""
    say(f"skipped '{path}': {reason_alone(path, reason)}", error=True)


def reason_alone(path: Path, reason: str) -> str:
    """A reason without the path that it begins with."""
    return reason.removeprefix(f"'{path}' ").removeprefix(f"'{path}': ")


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
    """A scalar over env_steps from all TensorBoard files of a run; what is later than the begin of
    the next file is void.

    UnknownScalarError where the run has no such scalar, UserError where it has no finite value of
    it.
    """
    points: dict[int, tuple[float, float]] = {}
    before = 0.0
    for path in event_files(run_dir):
        events = read_events(path)
        new = {}
        for step, seconds, value in events.scalars.get(tag, ()):
            new[step] = (value, before + seconds)
        begin = min([*new, events.begin])
        points = {step: point for step, point in points.items() if step < begin} | new
        before += events.seconds
    if not points:
        remedy = "give a run directory with a logger/ folder in it"
        if known := scalar_names(run_dir):
            remedy = did_you_mean(tag, sorted(known), "it has")
        raise UnknownScalarError(f"'{run_dir}' has no scalar '{tag}'; {remedy}")
    steps = sorted(points)
    value, seconds = np.array([points[step] for step in steps]).T
    if not np.isfinite(value).any():
        raise UserError(
            f"'{run_dir}': no value of its scalar '{tag}' is a finite number; the run diverged, "
            "leave it out"
        )
    return Curve(run_dir.name, np.array(steps, dtype=np.float64), value, seconds)


def scalar_names(run_dir: Path) -> set[str]:
    """The scalars that a run has."""
    return {name for path in event_files(run_dir) for name in read_events(path).scalars}


def event_files(run_dir: Path) -> list[Path]:
    """The TensorBoard files of a run, one for each time that it was started, oldest first."""
    found = (path for path in run_dir.glob("logger/version_*/*tfevents*") if path.is_file())
    return sorted(found, key=lambda path: [*map(natural_order, path.parts[-2:])])


@dataclass(frozen=True)
class Events:
    """The scalars of an event file.

    Attributes:
        scalars: (env_steps, seconds since the start, value) by tag.
        seconds: how long the file was written.
    """

    scalars: Mapping[str, list[tuple[int, float, float]]]
    seconds: float

    @property
    def begin(self) -> float:
        """The first step of the scalars that each epoch of a run has; others may be over another
        axis, as Lightning's are.
        """
        starts = [points[0][0] for tag, points in self.scalars.items() if tag.startswith("time/")]
        return min(starts, default=math.inf)


def read_events(path: Path) -> Events:
    """All scalars of an event file. One that is cut short counts up to the cut; what is no event
    file is named and left out.
    """
    return _parsed(path, path.stat().st_size)


@functools.lru_cache(maxsize=512)
def _parsed(path: Path, size: int) -> Events:
    if size > EVENT_BYTES:
        print_skipped(path, f"it has {size:,} bytes, the limit is {EVENT_BYTES:,}")
        return Events({}, 0.0)
    # Of TensorBoard, which is asked for first: this name alone would not say what to install.
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    scalars: dict[str, list[tuple[int, float, float]]] = {}
    started: float | None = None
    try:
        for record, checksum, written_checksum in _records(path.read_bytes()):
            event = Event.FromString(record)
            if started is None:
                started = event.wall_time
            seconds = event.wall_time - started
            points = []
            for value in event.summary.value:
                number = _number(value)
                if number is not None:
                    points.append((value.tag, (event.step, seconds, number)))
            if not points:
                continue
            if checksum is None:
                checksum = masked_crc32c(record)
            if checksum != written_checksum:
                raise ValueError("a checksum is wrong")
            if 0 <= event.step <= WHOLE and abs(seconds) <= WHOLE:
                for tag, point in points:
                    scalars.setdefault(tag, []).append(point)
    except (ValueError, DecodeError) as error:  # what comes before is still good
        print_skipped(path, f"it is not a whole event file ({error})")
    ended = max((point[1] for points in scalars.values() for point in points), default=0.0)
    return Events(scalars, max(ended, 0.0))


def _number(value: Any) -> float | None:
    """The scalar in a value of a summary, in the old form or the new one, if it is one."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    is_scalar = value.HasField("tensor") and value.metadata.plugin_data.plugin_name == "scalars"
    if is_scalar and len(value.tensor.float_val) == 1:
        return float(value.tensor.float_val[0])
    return None


# TensorBoard's own reader computes each checksum in Python, byte by byte, which takes most of its
# time; here numpy does it for all records at once.
_HEAD = struct.Struct("<QI")  # before a record: its length, and a checksum of that
_CRC = struct.Struct("<I")  # after it: its checksum
_SHORT = 100  # bytes; almost all records are shorter, but not the table of hyper-parameters


def _records(content: bytes) -> Iterator[tuple[bytes, int | None, int]]:
    """The records of an event file; of each that is short the checksum, and what the file says it
    is.

    ValueError where the file is cut short.
    """
    position = 0
    starts = []
    ends = []
    while position + _HEAD.size <= len(content):
        length, _ = _HEAD.unpack_from(content, position)
        start = position + _HEAD.size
        if start + length + _CRC.size > len(content):
            break
        starts.append(start)
        ends.append(start + length)
        position = start + length + _CRC.size
    checksums = _checksums(content, np.array(starts, dtype=int), np.array(ends, dtype=int))
    for start, end, checksum in zip(starts, ends, checksums, strict=True):
        (written_checksum,) = _CRC.unpack_from(content, end)
        yield content[start:end], checksum if end - start <= _SHORT else None, written_checksum
    if position < len(content):
        raise ValueError("it is cut short")


def _checksums(
    content: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> list[int]:
    """The CRC-32C of each short part, masked as TFRecord files have it, byte by byte for all parts
    at once; that of a part which is not short means nothing.
    """
    numbers = np.frombuffer(content, dtype=np.uint8)
    lengths = ends - starts
    crc = np.full(len(starts), 0xFFFFFFFF, dtype=np.uint32)
    for offset in range(min(int(lengths.max(initial=0)), _SHORT)):
        byte = numbers.take(starts + offset, mode="clip")
        following = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> np.uint32(8))
        crc = np.where(offset < lengths, following, crc)
    crc = ~crc
    masked = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    return masked.tolist()


def _crc_table() -> npt.NDArray[np.uint32]:
    """What each byte does to a CRC-32C."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0x82F63B78), np.uint32(0)) ^ (table >> np.uint32(1))
    return table


_TABLE = _crc_table()
