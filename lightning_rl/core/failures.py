"""What an error that is not ours says to the user, in one line."""

from __future__ import annotations

from lightning_rl.core.files import disk_full
from lightning_rl.core.limits import one_line, shorten
from lightning_rl.core.types import UserError

_NO_MEMORY = ("allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed")


def explained(error: Exception, resumable: bool) -> str | None:
    """One line about an error that the user can act on; None for any other, which is a defect of the program.

    resumable: whether --resume goes on with what was done.
    """
    if isinstance(error, UserError):
        return str(error)
    if disk_full(error):
        again = "then --resume" if resumable else "then run the command again"
        return one_line(f"the disk is full ({error}); files on disk are intact: free space, {again}")
    if isinstance(error, OSError) and error.filename is not None:
        return f"'{shorten(str(error.filename), 200)}' cannot be used: {error.strerror}; check the path and its permissions"
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)):
        what = one_line(str(error))
        return f"memory is short ({shorten(what, 200)}); make networks, batches, stores or the number of seeds smaller"
    return None
