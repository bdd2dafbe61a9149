"""Checkpoints of several seeds that are written together: all of a point in time, or none.

Each seed's file is first written whole under the name ``next_to`` it, then all are renamed. So there is always a newest epoch
that all seeds have, under the one name or the other, and each file under its own name is an ordinary checkpoint of one seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import move, read_plain, remove, write_plain

_PENDING = ".next"


def next_to(path: Path) -> Path:
    """Where a checkpoint waits until those of all seeds are written."""
    return path.with_name(f".{path.name}{_PENDING}")


def write_together(paths: Sequence[Path], contents: Iterable[Any]) -> None:
    """Writes plain data for each seed."""
    try:
        for path, content in zip(paths, contents, strict=True):
            write_plain(next_to(path), content)
    except BaseException:
        with contextlib.suppress(UserError):
            for path in paths:
                remove(next_to(path))
        raise
    for path in paths:
        move(next_to(path), path)


def committed(paths: Sequence[Path]) -> list[Path]:
    """The files that hold the newest epoch that all seeds have; ``paths`` themselves where nothing waits or nothing is common."""
    if not any(next_to(path).exists() for path in paths):
        return list(paths)
    found = [{_epoch(file): file for file in (path, next_to(path)) if file.exists()} for path in paths]
    common = set.intersection(*(set(files) for files in found))
    return [files[max(common)] for files in found] if common else list(paths)


def settle(folders: Sequence[Path]) -> None:
    """Ends what a kill has interrupted: gives the committed files their names, and removes those that were not committed.

    The folders of the seeds are those of this process.
    """
    waiting = {path.name for folder in folders for path in folder.glob(f".*.ckpt{_PENDING}")}
    for name in sorted(waiting):
        paths = [folder / name.removeprefix(".").removesuffix(_PENDING) for folder in folders]
        for path, file in zip(paths, committed(paths), strict=True):
            if file != path:
                move(file, path)
            elif next_to(path).exists():
                remove(next_to(path))


def _epoch(path: Path) -> int:
    content = read_plain(path, "checkpoint", "remove it")
    if not isinstance(content, dict) or not isinstance(epoch := content.get("epoch"), int):
        raise UserError(f"checkpoint '{path}' tells no epoch; remove it")
    return epoch
