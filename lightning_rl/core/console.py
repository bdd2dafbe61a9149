"""What people read on a terminal: tables and lines on standard output, how far a command is on
standard error.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from lightning_rl.core.limits import escaped
from lightning_rl.core.lines import say

_PIPED_WIDTH = 200  # for files and pipes, which would otherwise be cut to 80 columns
_LINE_EVERY_S = 30.0
_PART_EVERY_S = 0.25
_BAR = 12
_AROUND = _BAR + len(" 100.0%  99:59:59 left ")


class _Console(Console):
    """Text, also that of cells and titles, is shown as it is: control characters spelt out, and
    what looks like markup kept.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escaped(text), **{**options, "markup": False, "emoji": False})


def put(*parts: RenderableType) -> None:
    """Prints tables and lines to standard output; lines are never broken."""
    console = _Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))


class ProgressBar:
    """A bar, the percentage, the time left and what else fits into the line; lines begin with the
    name.

    share: of the work that is done already, 0 .. 1; epoch: the share that an epoch adds (0 where
    that is not known yet), of which ``under_way`` shows parts; None where there are no epochs.
    """

    def __init__(self, name: str, share: float = 0.0, epoch: float | None = None):
        self.name, self._first, self.epoch = escaped(name), share, epoch
        self.share, self._facts, self._part, self._pid = share, list[str](), 0.0, os.getpid()
        self._started, self._next = time.monotonic(), 0.0
        self._end: float | None = None  # when all will be done, as far as that is known
        self._printed = -math.inf  # so that the first line comes with the first news
        console = Console(file=sys.stderr)
        self._room = console.width - _AROUND
        self._bar: Progress | None = None
        if console.is_terminal:
            texts = ("{task.fields[percent]}", "{task.fields[left]}", "{task.description}")
            columns = [TextColumn(text, markup=False) for text in texts]
            self._bar = Progress(BarColumn(_BAR), *columns, console=console, refresh_per_second=4)
            self._task = self._bar.add_task("", total=1.0, percent="", left="")
            self.show(share, [])
            self._bar.start()
        global _open
        _open = self

    def show(self, share: float, facts: Sequence[str]) -> None:
        """Moves the bar. facts: what there is to say, the most important first; of these as many
        are shown as fit.
        """
        self.share, self._facts, self._part = share, [escaped(fact) for fact in facts], 0.0
        now, new = time.monotonic(), share - self._first
        if new > 0:
            self._end = now + (now - self._started) * (1 - share) / new
        self._draw(share, self._facts, now)

    def show_part(self, part: float) -> None:
        """Moves the bar within an epoch, never back; a process that was forked from this one draws
        nothing.

        How long an epoch takes is not known from a part of it: agents end sooner than their budget
        allows.
        """
        now = time.monotonic()
        if (
            self.epoch is not None
            and part > self._part
            and now > self._next
            and os.getpid() == self._pid
        ):
            self._part, self._next = part, now + _PART_EVERY_S
            self._draw(
                min(1.0, self.share + part * self.epoch),
                [f"{part:.0%} of this epoch", *self._facts],
                now,
            )

    def _draw(self, share: float, facts: Sequence[str], now: float) -> None:
        left = (
            f"{_clock(now - self._started)} so far"
            if self._end is None
            else f"{_clock(self._end - now)} left"
        )
        if self._bar is not None:
            text = _fitting(facts, self._room)
            self._bar.update(
                self._task, completed=share, description=text, percent=f"{share:>6.1%}", left=left
            )
        elif now - self._printed >= _LINE_EVERY_S:
            self._printed = now
            say(" · ".join([self.name, f"{share:.1%}", left, *facts]), error=True)

    def close(self) -> None:
        """Stops the bar where it is."""
        global _open
        _open = None if _open is self else _open
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


_open: ProgressBar | None = None


def under_way(*parts: float) -> None:
    """Says that this share of the epoch is done, by whichever measure is furthest: where a run
    shows a bar, the bar moves.
    """
    if _open is not None:
        _open.show_part(max(parts))


def _fitting(facts: Sequence[str], room: int) -> str:
    text = ""
    for fact in facts:
        longer = f"{text} · {fact}" if text else fact
        if len(longer) > room:
            break
        text = longer
    return text


Advance = Callable[[int, str], None]
"""(how many more are done, what comes next)."""


@contextmanager
def counting(total: int, what: str) -> Iterator[Advance]:
    """Shows how many of ``total`` are done; what: they are, e.g. ``agents``."""
    bar, done = ProgressBar(what), 0

    def advance(count: int, now: str) -> None:
        nonlocal done
        done += count
        bar.show(done / total, [f"{done} of {total} {what}", now])

    try:
        yield advance
    finally:
        bar.close()
