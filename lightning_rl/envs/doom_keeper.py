"""Runs ViZDoom for a process, its owner, and ends it with the owner, however that ends.

Without it a game plays on for ever once its owner is killed, and its shared memory stays. It is run
as a program, ``doom_keeper.py OWNER FOLDER PROGRAM ARGUMENT ...``, by a Python that finds nothing
but its standard library, which starts in a hundredth of a second.
"""

from __future__ import annotations

import os
import signal
import sys

_POLL_S = 0.25
SHARED_MEMORY = "/dev/shm"
"""Where Linux shows it; other systems have no names of it that could be removed."""


def keep(owner: int, folder: str, words: list[str]) -> int:
    """Runs a game in its folder until it or its owner ends, and removes what is left of it.

    The owner is polled: Linux's parent-death signal comes when the *thread* that started the
    process ends, and other systems have none. In a session of its own the game gets no Ctrl-C: the
    owner may want to finish its epoch.

    Args:
        owner: The process that has started this one.
        folder: The game's own, which is removed.
        words: The program and its arguments, with ``+viz_instance_id``.

    Returns:
        The game's exit status.
    """
    os.setsid()
    os.chdir(folder)
    game = os.posix_spawn(words[0], words, {**os.environ, "HOME": folder})

    def look(*_: object) -> None:
        if os.getppid() != owner:
            os.kill(game, signal.SIGKILL)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _POLL_S, _POLL_S)
    _, status = os.waitpid(game, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _clean(folder, words[words.index("+viz_instance_id") + 1])
    return os.waitstatus_to_exitcode(status)


def _clean(folder: str, instance: str) -> None:
    import shutil
    from pathlib import Path

    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    for path in Path(SHARED_MEMORY).glob(f"ViZDoom*{instance}"):
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(abs(keep(int(sys.argv[1]), sys.argv[2], sys.argv[3:])))
