"""What all command lines share: errors of one line, and tools with flags of their own."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from lightning_rl.core.errors import UserError
from lightning_rl.core.kinds import Kind
from lightning_rl.core.limits import is_text, nearest, shorten, shown, unknown


class Parser(argparse.ArgumentParser):
    """Usage errors in one line; no abbreviations, so that a new flag cannot change an old
    command.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**{**kwargs, "allow_abbrev": False})
        # Values, not flags, are -13.3:optimum and -1e3, too.
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self.flags_of_other_commands: dict[str, str] = {}
        """What the error for a flag says that this parser does not have, but another one does."""
        self.suggest_replacement: Callable[[str], str | None] = lambda flag: None
        """How else to write a flag that this parser does not know."""

    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{message} See --help" if message.endswith("?") else f"{message}; see --help"
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = nearest(str(value), map(str, action.choices))
            if near is not None:
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
            message = f"unrecognized arguments: {' '.join(left)}"
            hint = self._hint(left[0].partition("=")[0])
            self.error(f"{message}; {hint}" if hint else message)
        return found

    def _hint(self, flag: str) -> str:
        """What was probably meant by a flag that this parser does not know; empty for no idea."""
        if flag in self.flags_of_other_commands:
            return self.flags_of_other_commands[flag]
        replacement = self.suggest_replacement(flag)
        near = None
        if flag.startswith("-"):
            names = {name.lstrip("-"): name for name in self._option_string_actions}
            near = names.get(nearest(flag.lstrip("-"), names, 0.75 if replacement else 0.6) or "")
        meant = dict.fromkeys(word for word in (replacement, near) if word)
        return f"did you mean {', or '.join(meant)}?" if meant else ""


@dataclass(frozen=True)
class Argument:
    """A flag, or without dashes a word, of a command, and its options for argparse."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


def argument(names: str, help: str, kind: Kind | None = None, **options: Any) -> Argument:
    """An ``Argument`` with one line about it. names: one, or several with spaces between."""
    of_kind = {} if kind is None else kind.options
    return Argument(tuple(names.split()), {**of_kind, **options, "help": help})


def switch(name: str, help: str) -> Argument:
    """A flag without a value."""
    return Argument((name,), {"action": "store_true", "help": help})


def repeated(name: str, help: str, metavar: str, **options: Any) -> Argument:
    """A flag that may be given several times; no value of it is an empty list."""
    return argument(name, help, action="append", default=[], metavar=metavar, **options)


def settings_of(of: str, key: str = "key") -> Argument:
    """``--set`` for a config."""
    help = f"override a {key} of {of}; repeatable"
    return repeated("--set", help, "KEY=VALUE", dest="settings")


def force(out: str = "OUT") -> Argument:
    """``--force``."""
    return switch("--force", f"overwrite {out} even if another program wrote it")


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
            with _loading():
                found = importlib.import_module(module)
            getattr(found, name)(given)
        else:
            self.run(given)


@contextmanager
def _loading() -> Iterator[None]:
    """Says on a terminal that packages are loaded, until they are."""
    shown = sys.stderr.isatty()
    if shown:
        print("loading ..", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\x1b[K", end="", file=sys.stderr, flush=True)


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
