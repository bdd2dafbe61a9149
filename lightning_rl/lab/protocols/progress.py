"""How far an evaluation is: a bar with the time left, or a line now and then where there is no terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_EVERY_S = 30.0

Advance = Callable[[int, str], None]
"""(how many more are done, what comes next)."""


@contextlib.contextmanager
def progress(total: int, what: str) -> Iterator[Advance]:
    """Shows how many of ``total`` are done; what: they are, e.g. ``agents``."""
    console = Console(file=sys.stderr)
    if console.is_terminal:
        columns = (
            TextColumn(what), BarColumn(24), MofNCompleteColumn(), TextColumn("{task.description}"),
            TimeElapsedColumn(), TextColumn("ETA"), TimeRemainingColumn(elapsed_when_finished=False),
        )  # fmt: skip
        with Progress(*columns, console=console, refresh_per_second=4) as bar:
            task = bar.add_task("", total=total)
            yield lambda count, now: bar.update(task, advance=count, description=now)
        return
    started = printed = time.monotonic()
    done = 0

    def advance(count: int, now: str) -> None:
        nonlocal printed, done
        done, moment = done + count, time.monotonic()
        if count and moment - printed >= _LINE_EVERY_S:
            printed = moment
            left = (moment - started) * (total - done) / done
            print(f"{done} of {total} {what} · {now} · ETA {left / 60:.0f} min", file=sys.stderr, flush=True)

    yield advance
