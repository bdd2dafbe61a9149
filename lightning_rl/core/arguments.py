"""What all command lines share: one-line errors, checked numbers, and tools with flags of their
own.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from lightning_rl.core.checks import user_path
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import WHOLE, is_text, nearest, shorten, shown, unknown
from lightning_rl.core.modules import allow


class Parser(argparse.ArgumentParser):
    """Usage errors in one line; no abbreviations, so that a new flag cannot change an old
    command.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**{**kwargs, "allow_abbrev": False})
        self._negative_number_matcher = re.compile(
            r"-\.?\d"
        )  # values, not flags: -13.3:optimum and -1e3, too
        self.elsewhere: dict[str, str] = {}
        """Flags that this parser does not have, but another one does: what the error says about
        each.
        """
        self.instead: Callable[[str], str | None] = lambda flag: None
        """How else to write a flag that this parser does not know."""

    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{message} See --help" if message.endswith("?") else f"{message}; see --help"
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and (
            near := nearest(str(value), map(str, action.choices))
        ) not in (None, value):
            raise argparse.ArgumentError(
                action, f"invalid choice: {shown(value)}; did you mean '{near}'?"
            )
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        for word in args or ():
            if "\0" in word or not is_text(word):
                self.error(f"'{shorten(word)}' holds bytes that are no text; leave them out")
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, left = self.parse_known_args(args, namespace)
        if left:
            flag = left[0].partition("=")[0]
            other = self.instead(flag)
            near = (
                nearest(flag, self._option_string_actions, 0.75 if other else 0.6)
                if flag.startswith("-")
                else None
            )
            meant = ", or ".join(dict.fromkeys(way for way in (other, near) if way))
            hint = self.elsewhere.get(flag) or (f"did you mean {meant}?" if meant else "")
            self.error(f"unrecognized arguments: {' '.join(left)}{'; ' if hint else ''}{hint}")
        return found


def whole(low: int, high: int) -> Callable[[str], int]:
    """The type of a whole number from ``low`` to ``high``."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"invalid whole number: '{shorten(text)}'") from error
        if value < low:
            reason = "negative" if low == 0 else "too small"
            raise argparse.ArgumentTypeError(
                f"{shown(value)} is {reason}, it must be {low} or more"
            )
        if value > high:
            raise argparse.ArgumentTypeError(
                f"{shown(value)} is too large, it must be {high:,} or less"
            )
        return value

    return convert


def number(text: str) -> float:
    """The type of a finite number."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"invalid number: '{shorten(text)}'") from error
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{value} is not finite; give a finite number")
    return value


def positive(text: str) -> float:
    """The type of a number above 0."""
    if not (value := number(text)) > 0:
        raise argparse.ArgumentTypeError(f"{text} must be a number above 0")
    return value


def gamename(text: str) -> str:
    """The type of a gamename, whose module may be imported because it is typed."""
    allow(text)
    return text


count = whole(1, WHOLE)
non_negative = whole(0, WHOLE)


def checked_path(text: str) -> Path:
    """The path of a file or folder that the system can have."""
    try:
        return user_path("path", text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def figure_path(text: str) -> Path:
    """The path of a figure or report: a name without a folder means a file in ``figures/``, which
    git ignores.

    The name of a file that is there is no new name; whoever typed it has perhaps forgotten OUT.
    """
    path = checked_path(text)
    return path if "/" in text or path.exists() else Path("figures") / path


@dataclass(frozen=True)
class Argument:
    """A flag, or without dashes a word, of a command, and its options for argparse."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


def argument(names: str, help: str, **options: Any) -> Argument:
    """An ``Argument`` with one line about it. names: one, or several with spaces between."""
    return Argument(tuple(names.split()), {**options, "help": help})


def force(out: str = "OUT") -> Argument:
    """``--force``."""
    return argument(
        "--force", f"overwrite {out} even if another program wrote it", action="store_true"
    )


@dataclass(frozen=True)
class Tool:
    """A command of its own.

    summary: one line about it; run: a function that takes the arguments, as ``module:name``
    imported when it is used.
    """

    summary: str
    run: str | Callable[[argparse.Namespace], None]
    arguments: Sequence[Argument]

    def parser(self, prog: str) -> Parser:
        """Of the words after the command, which is called ``prog``."""
        parser = Parser(prog=prog, description=self.summary)
        for each in self.arguments:
            parser.add_argument(*each.names, **each.options)
        return parser

    def use(self, prog: str, words: Sequence[str]) -> None:
        """Runs the command, which is called ``prog``, with the words after it; UserError for
        what cannot be done.
        """
        self.call(self.parser(prog).parse_args(words))

    def call(self, given: argparse.Namespace) -> None:
        """Does what the arguments ask for."""
        if isinstance(self.run, str):
            module, _, name = self.run.partition(":")
            getattr(importlib.import_module(module), name)(given)
        else:
            self.run(given)


@dataclass(frozen=True)
class Group:
    """Commands that the next word names."""

    summary: str
    tools: Mapping[str, Tool]

    def parser(self, prog: str) -> Parser:
        """Of the next word, after ``prog``."""
        parser = Parser(
            prog=prog,
            description=self.summary,
            epilog=f"{prog} NAME --help describes a command and its flags.",
        )
        list_commands(parser, {name: tool.summary for name, tool in self.tools.items()})
        return parser

    def use(self, prog: str, words: Sequence[str]) -> None:
        """Runs the command that the first word names; UserError for what cannot be done."""
        if not words or words[0].startswith("-"):
            self.parser(prog).parse_args(words)
        if words[0] not in self.tools:
            raise UserError(unknown(prog.rpartition(" ")[2], words[0], self.tools))
        self.tools[words[0]].use(f"{prog} {words[0]}", words[1:])


def list_commands(parser: argparse.ArgumentParser, summaries: Mapping[str, str]) -> None:
    """Adds commands, one of which is to be given, to what ``--help`` lists, each with one line."""
    names = parser.add_subparsers(title="commands", metavar="NAME", required=True)
    for name, summary in summaries.items():
        names.add_parser(name, help=summary, add_help=False)
