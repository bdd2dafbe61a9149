"""Errors that a user can act on, and the one line that each is reported in. Imports nothing
heavy.
"""

from __future__ import annotations

import errno
import os

from lightning_rl.core.limits import one_line, shorten

_NO_MEMORY = (
    "allocate memory",
    "not enough memory",
    "out of memory",
    "Storage size calculation overflowed",
)


class UserError(Exception):
    """A mistake or limit that the user can act on: shown as one line, without a traceback, exit
    code 2.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class UnknownNameError(UserError):
    """Nothing of this name is registered; a module of the user's may do so."""


class DiskFullError(UserError):
    """There was no room for a file; all others are as they were."""


class RolloutError(UserError):
    """An environment raised, or a roll-out worker died; the message names the request."""


def disk_full(error: object) -> bool:
    """Whether an error says that there is no room on a disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def user_message(error: Exception, resumable: bool) -> str | None:
    """One line about an error that the user can act on; None for any other, which is a defect of
    the program.

    resumable: whether --resume would continue the work.
    """
    if isinstance(error, DiskFullError) and resumable:
        return f"{error} with --resume"
    if isinstance(error, UserError):
        return str(error)
    if disk_full(error):
        again = "then --resume" if resumable else "then run the command again"
        return one_line(
            f"the disk is full ({error}); files on disk are intact: free space, {again}"
        )
    if isinstance(error, OSError) and error.filename is not None:
        name = error.filename
        if isinstance(name, bytes):
            name = os.fsdecode(name)
        return (
            f"'{shorten(str(name), 200)}' cannot be used: {error.strerror}; check the path and its "
            "permissions"
        )
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    ):
        what = one_line(str(error))
        return (
            f"memory is short ({shorten(what, 200)}); make networks, batches, stores or the "
            "number of seeds smaller"
        )
    return None
