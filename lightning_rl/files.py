"""Files of plain data: read without running anything in them, written whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import IO, Any

import torch

from lightning_rl.types import UserError


def hold(file: IO[Any] | int, path: Path, remedy: str) -> None:
    """Keeps an open file from other processes until it is closed; UserError, naming ``path``, if one has it already."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(f"'{path}' is in use by another process; {remedy}") from error


def read_plain(path: Path, kind: str, remedy: str) -> Any:
    """The content of a torch file on the CPU; UserError, naming the ``kind`` of file, if it is damaged or not plain data."""
    if not path.is_file():
        raise UserError(f"{kind} '{path}' does not exist; {remedy}")
    if not zipfile.is_zipfile(path):
        raise UserError(f"{kind} '{path}' is truncated or not a {kind} ({path.stat().st_size} bytes); use another")
    try:
        with zipfile.ZipFile(path) as archive:
            if (bad := archive.testzip()) is not None:
                raise ValueError(f"checksum of {bad} is wrong")
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UserError(
            f"{kind} '{path}' holds objects other than plain data and was refused; none of it was run. "
            f"Use {kind}s written by this program only"
        ) from error
    except (RuntimeError, EOFError, ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{kind} '{path}' is damaged ({str(error).splitlines()[0]}); use another") from error


def write_whole(content: Any, target: Path) -> None:
    """Writes plain data beside the target and renames: the file under the final name is always whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    data = io.BytesIO()  # written in one go: torch hides the operating system's reason, e.g. a full disk
    torch.save(content, data)
    try:
        with temporary.open("wb") as file:
            file.write(data.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
