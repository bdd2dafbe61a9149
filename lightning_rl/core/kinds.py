"""Kinds of values that flags and options take. Each reads the text of a command line, as argparse's
``type``, and checks what a Python caller gives, so that both have the same limits.
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lightning_rl.core.checks import (
    checked_gamename,
    checked_name,
    one_number,
    truth,
    user_path,
    whole_number,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import WHOLE, did_you_mean, shorten, shown
from lightning_rl.core.modules import allow
from lightning_rl.core.workers import cores

MINARI = "minari:"
MINARI_ID = re.compile(rf"({MINARI})?([-\w]+/)*[-\w]+-v\d+")
"""The id of a Minari dataset; what is called so in the present folder, too, is said with MINARI."""


class Kind:
    """A kind of values; this one is any text.

    metavar: what ``--help`` calls a value of it; None: as the argument is called.
    """

    metavar: ClassVar[str | None] = None

    def __call__(self, text: str) -> Any:
        """The value that a text means; ArgumentTypeError for what means none."""
        return text

    def check(self, name: str, value: Any) -> Any:
        """The value that a Python caller means by an option of this name; UserError for what is
        none.
        """
        raise NotImplementedError

    @property
    def options(self) -> Mapping[str, Any]:
        """Those of argparse."""
        return {"type": self, "metavar": self.metavar}


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number from ``low`` to ``high``."""

    metavar = "N"

    low: int
    high: int = WHOLE

    def __call__(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError as error:
            raise ArgumentTypeError(f"invalid whole number: '{shorten(text)}'") from error
        if fault := self.fault(value):
            raise ArgumentTypeError(f"{shown(value)} {fault}")
        return value

    def fault(self, value: int) -> str:
        """What is wrong with a number; empty for nothing."""
        if value < self.low:
            reason = "negative" if self.low == 0 else "too small"
            return f"is {reason}, it must be {self.low} or more"
        return f"is too large, it must be {self.high:,} or less" if value > self.high else ""

    def check(self, name: str, value: Any) -> int:
        return whole_number(name, value, self.low, self.high)


class Interval(Whole):
    """Every so many epochs; -1 for never."""

    def fault(self, value: int) -> str:
        if value == 0:
            return "is not an interval, it must be 1 or more, or -1 for never"
        return super().fault(value)

    def check(self, name: str, value: Any) -> int:
        interval = super().check(name, value)
        if interval == 0:
            raise UserError(f"{name} 0 {self.fault(0)}")
        return interval


class ProcessCount(Whole):
    """A number of processes, at most one a core."""

    def fault(self, value: int) -> str:
        most = cores()
        if value > most:
            return f"processes on {most} cores, it must be {most} or fewer"
        return super().fault(value)


class Number(Kind):
    """A finite number."""

    def __call__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError as error:
            raise ArgumentTypeError(f"invalid number: '{shorten(text)}'") from error
        if not math.isfinite(value):
            raise ArgumentTypeError(f"{value} is not finite; give a finite number")
        if fault := self.fault(value):
            raise ArgumentTypeError(f"{text} {fault}")
        return value

    def fault(self, value: float) -> str:
        """What is wrong with a number; empty for nothing."""
        return ""

    def check(self, name: str, value: Any) -> float:
        number = one_number(value)
        if number is None or not math.isfinite(number):
            raise UserError(f"{name} {shown(value)}: it must be a finite number, e.g. 250")
        return number


class Positive(Number):
    """A number above 0."""

    def fault(self, value: float) -> str:
        return "" if value > 0 else "must be a number above 0"


class Inches(Number):
    """The width of a picture."""

    metavar = "INCHES"

    def fault(self, value: float) -> str:
        return "" if 1 <= value <= 40 else "inches: a picture has 1 to 40, e.g. 3.25"


class AnyPath(Kind):
    """The path of a file or folder that the system can have."""

    metavar = "FILE"

    def __call__(self, text: str) -> Path:
        try:
            return user_path("path", text)
        except UserError as error:
            raise ArgumentTypeError(str(error)) from error

    def check(self, name: str, value: Any) -> Path:
        return user_path(name, value)


class WebAddress(Kind):
    """The address of a page."""

    metavar = "URL"

    def __call__(self, text: str) -> str:
        if not text.startswith("https://"):
            raise ArgumentTypeError(f"{shown(text)} is no address; e.g. https://example.org/code")
        return text


class FigurePath(AnyPath):
    """The path of a figure or report: a name without a folder means a file in ``figures/``, which
    git ignores.

    The name of a file that is there is no new name; whoever typed it has perhaps forgotten OUT.
    """

    def __call__(self, text: str) -> Path:
        path = super().__call__(text)
        return path if "/" in text or path.exists() else Path("figures") / path


class Source(Kind):
    """Where episodes are: the path of a dataset or run, or the id of a Minari dataset; from Python
    also the episodes themselves.
    """

    def __call__(self, text: str) -> str:
        if not MINARI_ID.fullmatch(text) and not checked_path(text).exists():
            raise ArgumentTypeError(
                f"'{shorten(text)}' is not there; give a folder with a Minari dataset, the id of "
                "one (NAME-v0), or a run directory"
            )
        return text

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(value)
        text = str(user_path(name, value, "give a path, the id of a dataset, or a list of Episode"))
        try:
            return self(text)
        except ArgumentTypeError as error:
            raise UserError(f"{name} {error}") from error


@dataclass(frozen=True)
class Name(Kind):
    """A name, whatever it names. example: what the error for something else says."""

    example: str

    def check(self, name: str, value: Any) -> str:
        return checked_name(name, value, self.example)


class Gamename(Kind):
    """A gamename, whose module may be imported because it is typed."""

    metavar = "NAME"

    def __call__(self, text: str) -> str:
        allow(text)
        return text

    def check(self, name: str, value: Any) -> str:
        return checked_gamename(value)


class Choice(Kind):
    """One of some words."""

    def __init__(self, *words: str):
        self.words = words

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.words:
            remedy = did_you_mean(value if isinstance(value, str) else "", self.words)
            raise UserError(f"{name} {shown(value)} is unknown; {remedy}")
        return value

    @property
    def options(self) -> Mapping[str, Any]:
        return {"choices": self.words}


class Truth(Kind):
    """True or False; its flag makes it True."""

    def check(self, name: str, value: Any) -> bool:
        return truth(name, value)

    @property
    def options(self) -> Mapping[str, Any]:
        return {"action": "store_true"}


count = Whole(1)
non_negative = Whole(0)
process_count = ProcessCount(1)
number = Number()
positive = Positive()
inches = Inches()
gamename = Gamename()
checked_path = AnyPath()
figure_path = FigurePath()
web_address = WebAddress()
source = Source()
