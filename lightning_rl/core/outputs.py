"""Files whose names a user gives: written whole, and never over something that this program did not
write.

What an output is known by, when it is to be written again:

* in the folder of a run, by the record that is kept there;
* a picture by its metadata (``Software`` of a PNG, the creator of an SVG), a page by its
  ``generator``;
* the CSV of a figure by its checksum, which is kept in the figure's PNG: edited by hand, it is the
  user's;
* any other table by its header.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import RECORD, is_recorded, record_of, write_bytes

PROGRAM = "lightning_rl"
NUMBERS = "Numbers"
"""Key of a PNG's metadata: the checksum of the CSV that it shows."""

_OF_RUNS = (".ckpt", ".pt", ".yaml")
_HEAD = 20_000  # bytes; the marks are near the beginning
Owned = Callable[[Path], bool]


@dataclass(frozen=True)
class File:
    """One file to be written. owned: whether what lies there may be replaced."""

    path: Path
    content: bytes
    owned: Owned


@dataclass(frozen=True)
class Out:
    """OUT of a command.

    inputs: what it reads, and never overwrites; force: the user insists on overwriting other files;
    remedy: where else to go.
    """

    path: Path
    inputs: Sequence[Path] = ()
    force: bool = False
    remedy: str = "choose another OUT"

    def at(self, path: Path) -> Out:
        """The same for another name."""
        return dataclasses.replace(self, path=path)

    def check(self, path: Path, owned: Owned) -> None:
        """UserError where ``path`` cannot be written, is an input, or is something else that is
        not ``owned``.
        """
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not folder.is_dir():
            raise UserError(f"cannot write '{path}': '{folder}' is not a folder; {self.remedy}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UserError(
                f"cannot write '{path}': '{folder}' is not writable for this user; {self.remedy}"
            )
        if not path.exists() and not path.is_symlink():
            return
        if any(given.exists() and given.samefile(path) for given in self.inputs):
            raise UserError(
                f"'{path}' is read by this command and would be overwritten; {self.remedy}"
            )
        if not path.is_file():
            raise UserError(f"'{path}' is no plain file; {self.remedy}")
        refuse_run_file(path, self.remedy)
        ours = owned(path) if record_of(path) is None else is_recorded(path)
        if not self.force and not ours:
            raise UserError(
                f"'{path}' was not written by this command; {self.remedy}, or --force to overwrite "
                "it"
            )

    def write(self, *files: File) -> None:
        """Writes all files, or none where one of them is not to be overwritten."""
        for file in files:
            self.check(file.path, file.owned)
        for file in files:
            write_bytes(file.path, file.content, self.remedy, self.force)


def refuse_run_file(path: Path, remedy: str) -> None:
    """UserError for what may be a run's own file, however much the user insists."""
    for each in (path, path.resolve()):  # itself, and what a link points to
        known = each.suffix in _OF_RUNS or each.name == RECORD
        if each.exists() and (known or each.name.startswith("events.out.")):
            kinds = ", ".join((*_OF_RUNS, RECORD))
            raise UserError(
                f"'{path}' may be part of a run ({kinds}), which nothing overwrites; {remedy}"
            )


def checksum(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def owned_picture(path: Path) -> bool:
    """Whether a PNG, SVG, PDF or HTML file was written by this program."""
    begin = head(path)
    marks = (
        b"\x89PNG" in begin[:8] and f"Software\0{PROGRAM}".encode() in begin,
        b"<svg" in begin and f"<dc:title>{PROGRAM}</dc:title>".encode() in begin,
        b"%PDF" in begin[:4] and f"/Creator ({PROGRAM})".encode() in path.read_bytes(),
        b"<html" in begin and f'<meta name="generator" content="{PROGRAM}">'.encode() in begin,
    )
    return any(marks)


def owned_numbers(*pictures: Path) -> Owned:
    """Whether a CSV is the very one that one of the pictures beside it shows."""

    def owned(path: Path) -> bool:
        mark = checksum(path.read_bytes()).encode()
        return any(each.is_file() and mark in each.read_bytes() for each in pictures)

    return owned


def owned_table(columns: Sequence[str]) -> Owned:
    """Whether a CSV has these columns."""
    header = ",".join(columns).encode()
    return lambda path: head(path).partition(b"\n")[0].rstrip(b"\r") == header


def picture_metadata(numbers: bytes) -> dict[str, dict[str, str | None]]:
    """What matplotlib shall write into a picture beside a CSV of ``numbers``, by its format."""
    mark = checksum(numbers)
    return {
        "png": {"Software": PROGRAM, NUMBERS: mark},
        "svg": {"Creator": PROGRAM, "Date": None, "Identifier": mark},
        "pdf": {"Creator": PROGRAM, "CreationDate": None, "Keywords": mark},
    }


def head(path: Path) -> bytes:
    """The beginning of a file, where the marks are."""
    with path.open("rb") as file:
        return file.read(_HEAD)
