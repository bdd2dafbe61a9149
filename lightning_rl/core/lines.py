"""Lines on a terminal. What files and users say is shown there, but moves, colours, hides and
copies nothing.

Imports nothing heavy.
"""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from types import TracebackType

from lightning_rl.core.limits import escaped

_format_warning = warnings.formatwarning


def say(*lines: str, error: bool = False) -> None:
    """Prints each on one line, with all that is no visible character or space spelt out. error:
    on standard error.
    """
    stream = sys.stderr if error else sys.stdout
    for line in lines:
        print(escaped(line), file=stream, flush=True)


def three_digits(value: float) -> str:
    """A return with a decimal, and with three digits at least: ``264.2``, ``-1.50``, ``0.953``."""
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:#.3g}"


def guard_terminal() -> None:
    """Spells that out in warnings, logs and reports of defects, too, where other packages repeat
    what a file says.
    """
    warnings.formatwarning = _warning
    sys.excepthook = _defect
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Log())


def _spelt_out(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))


def _warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    return _spelt_out(_format_warning(message, category, filename, lineno, line))


def _defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    say(
        *"".join(traceback.format_exception(kind, error, trace)).rstrip("\n").split("\n"),
        error=True,
    )


class _Log(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _spelt_out(super().format(record))
