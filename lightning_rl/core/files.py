"""The one place that writes files: whole or not at all, also under ``kill -9``, a crash of the
machine or a full disk.

A file is written under another name, synced and renamed, and its folder is synced: under the final
name there is always all of the old content or all of the new. Everything that changes a file goes
through ``system``, so that tests can make each call fail. The folder of a run keeps a record of
what was written there (``keep_record``): nothing else in it is ever replaced or removed. Reading
runs nothing that is in a file, and does not wait for pipes or devices. torch is imported where a
torch file is read or
written: the command line reads and refuses files without it.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import io
import os
import pickle
import re
import stat
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from filelock import lock_descriptor

from lightning_rl.core.errors import DiskFullError, UserError, disk_full
from lightning_rl.core.limits import (
    ARCHIVE_PARTS,
    CHECKPOINT_BYTES,
    STRUCTURE_BYTES,
    TABLE_BYTES,
    TEXT_BYTES,
    shorten,
)

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)\.tmp")
_REMEDY = "files that are there are intact: mend it or choose another folder"
_ABANDONED_AFTER_S = 3600.0
_HOLD_ATTEMPTS, _HOLD_PAUSE_S = 5, 0.04


class System:
    """The calls of the operating system that change files."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def write(self, descriptor: int, content: memoryview) -> int:
        return os.write(descriptor, content)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)


system = System()


RECORD = "written.txt"
"""In the folder of a run: a line with checksum and name for every file that is to be written
there, and one when it was.
"""

_RECORD_HEAD = (
    "# What lightning_rl has written in this folder; it replaces and removes nothing else."
)
_WRITTEN = "written"  # instead of a checksum: a file of this name has been there

_RECORD_ABOVE = 3  # a film of a run lies in recordings/epoch_<k>/
_at_work: dict[Path, int] = {}  # folders that this process holds, with their descriptors


def make_folder(path: Path, remedy: str = _REMEDY) -> None:
    """Makes the folder and those above it, if need be, and syncs them to disk."""
    require_place(path)
    with explained(path, remedy=remedy):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        system.make_folder(path)
        for folder in missing:
            _sync_folder(folder.parent)


def write_bytes(
    target: Path, content: bytes | memoryview, remedy: str = _REMEDY, force: bool = False
) -> None:
    """The file with this content, in place of an older one; its folder is made if need be.

    A link stays, and what it points to is written.

    Args:
        target: The file.
        content: All of it.
        remedy: What to do where it cannot be written.
        force: Replace what is not in the record of its folder, too.

    Raises:
        UserError: It cannot be written, or a record is kept of its folder, and what is there is not
            in it.
    """
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    make_folder(place.parent, remedy)
    with explained(target, remedy=remedy):
        record = record_of(target)
        if record is not None:
            if not force:
                refuse_foreign(target)
            digest = hashlib.sha256(content).hexdigest()
            new = place == target and not record.names(temporary)
            record.add([target, temporary] if new else [target], digest)
        try:
            with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
                _write_all(descriptor, content)
                system.fsync(descriptor)
            system.rename(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                system.unlink(temporary)
            raise
        _sync_folder(place.parent)
        if record is not None:
            _digest_of[target.absolute()] = _state(target), digest
            if not record.had(target):
                record.add([target], _WRITTEN)


def keep_record(folder: Path) -> None:
    """From now on only files in the record of ``folder`` are replaced or removed there."""
    record = folder / RECORD
    if not record.exists():
        _sweep_half(record, _RECORD_HEAD)
        write_text(record, f"{_RECORD_HEAD}\n")
    elif record_of(record) is None:
        raise not_ours(record)


class Record:
    """The checksums of all that was written in a folder, by name; the part of a line that a killed
    process left is no line.

    Other processes add lines, too: what is new is read each time.
    """

    def __init__(self, path: Path):
        self.path, self._read, self._known = path, 0, dict[str, set[str]]()

    def has(self, path: Path) -> bool:
        """Whether a file is just as it was written here once; False for one that this user
        cannot read.
        """
        try:
            return path.is_file() and _digest(path) in self._digests(path)
        except PermissionError:
            return False

    def names(self, path: Path) -> bool:
        """Whether a file of this name was to be written here."""
        return bool(self._digests(path))

    def had(self, path: Path) -> bool:
        """Whether a file of this name has been here."""
        return _WRITTEN in self._digests(path)

    def add(self, paths: Sequence[Path], digest: str) -> None:
        """Adds a line for each, before the files get their names: so what is found there later
        is known in any case.
        """
        lines = "".join(f"{digest}  {self._name(path)}\n" for path in paths)
        if not self._ends_with_a_line():
            lines = f"\n{lines}"
        with _opened(self.path, os.O_WRONLY | os.O_APPEND) as descriptor:
            _write_all(descriptor, lines.encode())
            system.fsync(descriptor)

    def _ends_with_a_line(self) -> bool:
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _digests(self, path: Path) -> set[str]:
        if self.path.stat().st_size < self._read:  # another file has taken its place
            self._read, self._known = 0, {}
        with self.path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            digest, _, name = line.partition("  ")
            self._known.setdefault(name, set()).add(digest)
        return self._known.get(self._name(path), set())

    def _name(self, path: Path) -> str:
        return path.absolute().relative_to(self.path.parent).as_posix()


_records: dict[Path, Record] = {}
# With what the file system said of the file at that time.
_digest_of: dict[Path, tuple[tuple[int, int, int], str]] = {}


def record_of(path: Path) -> Record | None:
    """The record of the folder that a file is in, or of one not far above it; None where none is
    kept.
    """
    for folder in path.absolute().parents[:_RECORD_ABOVE]:
        record = folder / RECORD
        if not record.is_file():
            continue
        if folder not in _records:
            with record.open("rb") as file:
                if file.readline(len(_RECORD_HEAD) + 1) != f"{_RECORD_HEAD}\n".encode():
                    continue
            _records[folder] = Record(record)
        return _records[folder]
    return None


def is_recorded(path: Path) -> bool:
    """Whether a file is in the record of its folder just as it is; False where none is kept."""
    record = record_of(path)
    return record is not None and record.has(path)


def was_there(path: Path) -> bool:
    """Whether a file of this name has been written, whatever is there now; False where no record
    is kept.
    """
    record = record_of(path)
    return record is not None and record.had(path)


def is_foreign(path: Path) -> bool:
    """Whether a file is there that is not in the record of its folder; False where none is kept."""
    record = record_of(path)
    return record is not None and path.exists() and not record.has(path)


def refuse_foreign(path: Path) -> None:
    """UserError for such a file, before the work that would replace it."""
    if is_foreign(path):
        raise not_ours(path)


def adopt(path: Path) -> None:
    """Takes a file into the record of its folder, if one is kept: from now on it may be
    replaced.
    """
    record = record_of(path)
    if record is None:
        return
    with explained(record.path):
        if not record.has(path):
            record.add([path], _digest(path))
        if not record.had(path):
            record.add([path], _WRITTEN)


def not_ours(path: Path) -> UserError:
    """What is said of a file that stays, though another was to be written in its place."""
    return UserError(
        f"'{path}' is not as this program wrote it, or not written by it, so it stays; move it "
        "away, then start again"
    )


def _state(path: Path) -> tuple[int, int, int]:
    """What differs once a file is another, or has other content: nobody can set the last number."""
    about = path.stat()
    return about.st_ino, about.st_size, about.st_ctime_ns


def _digest(path: Path) -> str:
    state = _state(path)
    known = _digest_of.get(path.absolute())
    if known is not None and known[0] == state:
        return known[1]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    _digest_of[path.absolute()] = state, digest
    return digest


@contextlib.contextmanager
def at_work(folder: Path, descriptor: int) -> Iterator[None]:
    """Meanwhile nothing is written below ``folder`` if it is no longer the folder that is open
    as ``descriptor``.
    """
    place = folder.absolute()
    _at_work[place] = descriptor
    try:
        yield
    finally:
        del _at_work[place]


def require_place(path: Path) -> None:
    """UserError where a run's folder, in which ``path`` is or is to be, was moved or removed
    under the run's feet.
    """
    path = path.absolute()
    for folder, descriptor in _at_work.items():
        if folder != path and folder not in path.parents:
            continue
        if not folder.exists() or not os.path.samestat(folder.stat(), os.fstat(descriptor)):
            raise UserError(
                f"'{folder}' was moved or removed while a run was at work there, which this has "
                "ended; put it back, then --resume"
            )


def write_text(target: Path, text: str) -> None:
    """``write_bytes`` of a text."""
    write_bytes(target, text.encode())


def write_plain(target: Path, content: Any) -> None:
    """``write_bytes`` of plain data, as a torch file."""
    import torch

    data = io.BytesIO()
    torch.save(content, data)
    write_bytes(target, data.getbuffer())


def remove(path: Path) -> None:
    """Removes a file, if it is there, and syncs its folder to disk; UserError where a record is
    kept, and it is not in it.
    """
    with explained(path, "remove"):
        refuse_foreign(path)
        system.unlink(path)
        _sync_folder(path.parent)


def move(source: Path, target: Path) -> None:
    """Renames a complete file within its folder; a file that has the new name is replaced, if it
    is in the record.
    """
    with explained(target):
        refuse_foreign(target)
        if (record := record_of(target)) is not None:
            record.add([target], _digest(source))
        system.rename(source, target)
        _sync_folder(target.parent)
    adopt(target)


def sweep(folder: Path) -> None:
    """Removes what writers that were killed have left at or below a folder that this process
    holds.
    """
    with explained(folder, "sweep"):
        for path in sorted(folder.rglob(".*.tmp")):
            match = _TEMPORARY.fullmatch(path.name)
            record = record_of(path)
            if match is None or record is None or not path.is_file() or not record.names(path):
                continue
            if _abandoned(path, int(match["pid"])):
                system.unlink(path)
                _sync_folder(path.parent)


def _abandoned(path: Path, pid: int) -> bool:
    """Whether no process writes the temporary file any more; this process has not begun to write
    in the folder.
    """
    if pid == os.getpid() or time.time() - path.stat().st_mtime > _ABANDONED_AFTER_S:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


@contextlib.contextmanager
def explained(path: Path, verb: str = "write to", remedy: str = _REMEDY) -> Iterator[None]:
    """Turns what the operating system refuses into one line about the file."""
    try:
        yield
    except OSError as error:
        require_place(path)
        if disk_full(error):
            intact = "files that are there are intact: free space, then start again"
            raise DiskFullError(f"the disk is full: cannot {verb} '{path}'; {intact}") from error
        raise UserError(f"cannot {verb} '{path}': {error.strerror}; {remedy}") from error


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = system.open(path, flags)
    try:
        yield descriptor
    finally:
        system.close(descriptor)


def _write_all(descriptor: int, content: bytes | memoryview) -> None:
    left = memoryview(content)
    while left:
        left = left[system.write(descriptor, left) :]


def _sync_folder(folder: Path) -> None:
    """Syncs the folder to disk, so that what was renamed or removed in it survives a crash of
    the machine.
    """
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        try:
            system.fsync(descriptor)
        except OSError as error:
            # Of file systems that cannot sync a folder.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise


class Appended:
    """A file of whole lines below a header that grows; the part of a line that a killed process
    left is no part of it.

    lines: those that are there; begun: whether part of one is below them. Nothing in the file is
    changed before something is appended. force: a file that does not begin with the header is
    overwritten, otherwise it is a UserError with the remedy.
    """

    def __init__(self, path: Path, descriptor: int, header: str, remedy: str, force: bool):
        self.path, self._descriptor, self._header = path, descriptor, f"{header}\n".encode()
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read()
        if not content.startswith(self._header):
            if not force:
                begin = content.partition(b"\n")[0][:200].decode(errors="replace")
                raise UserError(f"'{path}' begins with {begin!r}, not with {header!r}; {remedy}")
            content = b""
        self._end = content.rfind(b"\n") + 1
        self.lines = _decoded(content[len(self._header) : self._end], path, "table")
        self.begun = self._end < len(content)

    def append(self, lines: str, instead_of: str = "") -> None:
        """Adds whole lines, or none of them; instead_of: the last of those that are there, which
        go first.
        """
        self._end -= len(instead_of.encode())
        content = lines.encode() if self._end else self._header + lines.encode()
        with explained(self.path):
            _require_same(self.path, self._descriptor)
            self._cut()
            try:
                _write_all(self._descriptor, content)
                system.fsync(self._descriptor)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._cut()
                raise
        self._end += len(content)
        self.lines = self.lines.removesuffix(instead_of) + lines

    def _cut(self) -> None:
        if os.fstat(self._descriptor).st_size > self._end:
            system.truncate(self._descriptor, self._end)


@contextlib.contextmanager
def appending(path: Path, header: str, remedy: str, force: bool = False) -> Iterator[Appended]:
    """The file, made if need be, held against other processes; UserError with the remedy where that
    cannot be.

    It is made with its header, so that an empty file is nobody's of ours; where the work ends
    before a first line, it goes again.
    """
    made = not path.exists() and not path.is_symlink()
    if made:
        _sweep_half(path, header)
        write_text(path, f"{header}\n")
    with contextlib.ExitStack() as stack:
        with explained(path):
            descriptor = stack.enter_context(_opened(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK))
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > TABLE_BYTES:
            raise UserError(
                f"'{path}' is no plain file, or has more than {TABLE_BYTES:,} bytes; {remedy}"
            )
        hold(descriptor, path, f"wait until it has ended, or {remedy.partition(', or --force')[0]}")
        with explained(path):
            _require_same(path, descriptor)
        table = Appended(path, descriptor, header, remedy, force)
        try:
            yield table
        except Exception:
            if made and not table.lines:
                with contextlib.suppress(OSError):
                    system.unlink(path)
            raise


def _sweep_half(path: Path, head: str) -> None:
    """Removes what a process has left that was killed while it made this file: a part of its
    first line, and nothing else.
    """
    line = f"{head}\n".encode()
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        match = _TEMPORARY.fullmatch(left.name)
        if match is None or not left.is_file() or not _abandoned(left, int(match["pid"])):
            continue
        with explained(left, "sweep"):
            if left.stat().st_size <= len(line) and line.startswith(left.read_bytes()):
                system.unlink(left)


def _require_same(path: Path, descriptor: int) -> None:
    """UserError where another process has made the file at the same time: this one is no longer
    there.
    """
    if not os.path.samestat(os.fstat(descriptor), path.stat()):
        raise UserError(
            f"'{path}' was replaced by another process; wait until it has ended, then start again"
        )


def hold(file: IO[Any] | int, path: Path, remedy: str) -> None:
    """Keeps an open file from other processes until it is closed; UserError, naming ``path``, if
    one has it already.
    """
    descriptor = file if isinstance(file, int) else file.fileno()
    for _ in range(_HOLD_ATTEMPTS):  # a process that only checks the lock holds it for an instant
        if lock_descriptor(descriptor, blocking=False):
            return
        time.sleep(_HOLD_PAUSE_S)
    raise UserError(f"'{path}' is in use by another process; {remedy}")


def _size(path: Path, kind: str, limit: int, remedy: str) -> int:
    """The size of a file; UserError where none is there, or one with more than ``limit`` bytes."""
    if not path.exists():
        raise UserError(f"{kind} '{path}' does not exist; {remedy}")
    if not path.is_file():  # a pipe or device might never end
        raise UserError(f"{kind} '{path}' is not a file; {remedy}")
    size = path.stat().st_size
    if size > limit:
        raise UserError(f"{kind} '{path}' has {size:,} bytes, the limit is {limit:,}; give another")
    return size


def read_bytes(path: Path, kind: str, limit: int) -> bytes:
    """The content of a file of at most ``limit`` bytes; UserError, naming the ``kind`` of file,
    if it cannot be had.
    """
    try:
        _size(path, kind, limit, "give another")
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{kind} '{path}' cannot be read: {error.strerror}; give another"
        ) from error


def read_text(path: Path, kind: str, limit: int = TEXT_BYTES) -> str:
    """``read_bytes`` as text."""
    return _decoded(read_bytes(path, kind, limit), path, kind)


def read_lines(path: Path, kind: str) -> str:
    """The whole lines of a file that ``appending`` writes, with its header."""
    text = read_text(path, kind, TABLE_BYTES)
    return text[: text.rfind("\n") + 1]


def _decoded(content: bytes, path: Path, kind: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{kind} '{path}' is not text (byte {error.start} is not UTF-8); give another"
        ) from error


def read_plain(path: Path, kind: str, remedy: str, limit: int = CHECKPOINT_BYTES) -> Any:
    """The content of a torch file on the CPU; UserError, naming the ``kind`` of file, if it is
    damaged or not plain data.
    """
    size = _size(path, kind, limit, remedy)
    import torch

    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise UserError(
                    f"{kind} '{path}' is truncated or not a {kind} ({size} bytes); use another"
                )
            with zipfile.ZipFile(file) as archive:
                _check_archive(archive, size)
        return torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except pickle.UnpicklingError as error:
        raise UserError(
            f"{kind} '{path}' holds objects other than plain data and was refused; none of it was "
            f"run. Use {kind}s written by this program only"
        ) from error
    except PermissionError as error:
        raise UserError(
            f"{kind} '{path}' cannot be read: {error.strerror}; ask its owner, or use another"
        ) from error
    except Exception as error:  # whatever zipfile and torch make of foreign bytes
        reason = shorten(" ".join(str(error).split()) or type(error).__name__, 200)
        raise UserError(f"{kind} '{path}' is damaged ({reason}); use another") from error


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """ValueError for an archive that is damaged, or that becomes larger when it is read: torch
    stores its parts as they are.
    """
    parts = archive.infolist()
    if len(parts) > ARCHIVE_PARTS:
        raise ValueError(f"{len(parts):,} parts, the limit is {ARCHIVE_PARTS:,}")
    unpacked = sum(part.file_size for part in parts)
    if unpacked > size:
        raise ValueError(f"its parts have {unpacked:,} bytes, the file {size:,}")
    for part in parts:
        if part.filename.endswith(".pkl") and part.file_size > STRUCTURE_BYTES:
            raise ValueError(
                f"its structure has {part.file_size:,} bytes, the limit is {STRUCTURE_BYTES:,}"
            )
    bad = archive.testzip()
    if bad is not None:
        raise ValueError(f"checksum of {bad} is wrong")
