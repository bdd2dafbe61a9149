"""How a process is stopped by SIGINT or SIGTERM: within ten seconds, whatever it is at. Imports
nothing heavy.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# after the signal: until an epoch is left as it is, and until the process ends wherever it is
EPOCH_S, LEAVE_S = 7.0, 9.5
REPEATED_S = 0.3  # a terminal or a cluster, and a parent, may send the same signal


class Stopped(KeyboardInterrupt):
    """A signal has stopped the work. number: of the signal; resumes: what resuming does then."""

    def __init__(self, number: int, resumes: str = "goes on"):
        super().__init__(signal.Signals(number).name)
        self.number, self.resumes = number, resumes


def exit_code(stop: KeyboardInterrupt) -> int:
    """Of a process that was stopped."""
    return 128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)


def after(seconds: float, action: Callable[..., object], *arguments: Any) -> threading.Timer:
    """Calls the action in a thread, unless it is cancelled before."""
    timer = threading.Timer(seconds, action, arguments)
    timer.daemon = True
    timer.start()
    return timer


@contextmanager
def stoppable() -> Iterator[None]:
    """Inside, a signal raises ``Stopped``; what has not ended by itself after that is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timers: list[threading.Timer] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if not timers:
            timers.append(after(LEAVE_S, os._exit, 128 + number))
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        give_back(before, timers)


def give_back(handlers: Mapping[Any, Any], timers: Iterable[threading.Timer]) -> None:
    """Gives the signals their handlers back, and ends what waits for a process that has not
    left.
    """
    for timer in timers:
        timer.cancel()
    for number, handler in handlers.items():
        signal.signal(number, handler)
