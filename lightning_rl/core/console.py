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
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from lightning_rl.core.limits import escaped
from lightning_rl.core.lines import say

_PIPED_WIDTH = 10_000  # for files and pipes, which would otherwise be cut to 80 columns
_LINE_EVERY_S = 30.0
_PART_EVERY_S = 0.25
_BAR = 12
_AROUND = _BAR + len("   99:59:59 left ")


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
        console.print(part, soft_wrap=isinstance(part, str), highlight=False)


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None: it is none."""
    return Console().width if sys.stdout.isatty() else None


class _TimeLeft(ProgressColumn):
    """The clock of a bar, which goes on between its news."""

    def __init__(self, words: Callable[[], str]):
        super().__init__()
        self.words = words

    def render(self, task: Task) -> Text:
        return Text(self.words())


class ProgressBar:
    """A bar, how much is done, the time left and what else fits into the line; lines begin with
    the name.

    share: of the work that is done already, 0 .. 1; done: the same in words, e.g. ``3 of 8
    agents``; epoch: the share that an epoch adds (0 where that is not known yet), of which
    ``under_way`` shows parts; None where there are no epochs; called: what an epoch is.
    """

    def __init__(
        self,
        name: str,
        share: float = 0.0,
        done: str = "",
        epoch: float | None = None,
        called: str = "epoch",
    ):
        self.name, self._first, self.epoch, self.called = escaped(name), share, epoch, called
        self.share, self._done, self._facts = share, done, list[str]()
        self._part, self._pid = 0.0, os.getpid()
        self._started, self._next = time.monotonic(), 0.0
        self._end: float | None = None  # when all will be done, as far as that is known
        self._printed = -math.inf  # so that the first line comes with the first news
        console = Console(file=sys.stderr)
        self._room = console.width - _AROUND
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (
                BarColumn(_BAR),
                TextColumn("{task.fields[done]}", markup=False),
                _TimeLeft(self._time_left),
                TextColumn("{task.description}", markup=False),
            )
            self._bar = Progress(*columns, console=console, refresh_per_second=4)
            self._task = self._bar.add_task("", total=1.0, done=done)
            self.show(share, done, [])
            self._bar.start()
        global _open
        _open = self

    def show(self, share: float, done: str, facts: Sequence[str]) -> None:
        """Moves the bar. facts: what there is to say, the most important first; of these as many
        are shown as fit.
        """
        self.share, self._done, self._part = share, escaped(done), 0.0
        self._facts = [escaped(fact) for fact in facts]
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
        if self.epoch is None or part <= self._part or now <= self._next:
            return
        if os.getpid() == self._pid:
            self._part, self._next = part, now + _PART_EVERY_S
            share = min(1.0, self.share + part * self.epoch)
            self._draw(share, [f"{part:.0%} of this {self.called}", *self._facts], now)

    def _draw(self, share: float, facts: Sequence[str], now: float) -> None:
        if self._bar is not None:
            text = _fitting(facts, self._room - len(self._done))
            self._bar.update(self._task, completed=share, description=text, done=self._done)
        elif now - self._printed >= _LINE_EVERY_S:
            self._printed = now
            say(" · ".join([self.name, self._done, self._time_left(now), *facts]), error=True)

    def _time_left(self, now: float | None = None) -> str:
        """The time until all is done, as far as that is known; then the time that it took."""
        now = time.monotonic() if now is None else now
        if self.share >= 1:
            return f"{_clock(now - self._started)} in all"
        if self._end is None:
            return f"{_clock(now - self._started)} so far"
        return f"{_clock(self._end - now)} left"

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


def silent(count: int, now: str) -> None:
    """An ``Advance`` that shows nothing."""


@contextmanager
def counting(total: int, what: str) -> Iterator[Advance]:
    """Shows how many of ``total`` are done; what: they are, e.g. ``agents``."""
    bar, done = ProgressBar(what, done=f"0 of {total:,} {what}"), 0

    def advance(count: int, now: str) -> None:
        nonlocal done
        done += count
        bar.show(done / total, f"{done:,} of {total:,} {what}", [now])

    try:
        yield advance
    finally:
        bar.close()
