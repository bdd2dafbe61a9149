"""What all command lines share: one-line errors, checked numbers, and tools with flags of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from lightning_rl.types import UserError


class Parser(argparse.ArgumentParser):
    """Usage errors in one line; no abbreviations, so that a new flag cannot change an old command."""

    def __init__(self, **kwargs: Any):
        super().__init__(**{**kwargs, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def count(text: str) -> int:
    """A whole number of 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is too small, it must be 1 or more")
    return value


def non_negative(text: str) -> int:
    """A whole number of 0 or more."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative, it must be 0 or more")
    return value


def add_force(parser: argparse._ActionsContainer, out: str = "OUT") -> None:
    """``--force``."""
    parser.add_argument("--force", action="store_true", help=f"overwrite {out} even if another program wrote it")


@dataclass(frozen=True)
class Tool:
    """A command of its own: one line about it, its flags, and what it does."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


def run_tool(prog: str, tools: Mapping[str, Tool], argv: Sequence[str]) -> None:
    """Runs the tool that the first word names, with the flags after it; UserError for what cannot be done."""
    parser = Parser(prog=prog)
    names = parser.add_subparsers(required=True, metavar="NAME", parser_class=Parser)
    for name, tool in tools.items():
        own = names.add_parser(name, help=tool.summary, description=tool.summary)
        tool.add_arguments(own)
        own.set_defaults(run=tool.run)
    arguments = parser.parse_args(argv)
    arguments.run(arguments)
