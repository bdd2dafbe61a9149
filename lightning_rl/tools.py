"""What ``lightning-rl NAME ...`` does besides training: one line per command."""

from __future__ import annotations

import argparse

from lightning_rl.arguments import Tool, run_tool
from lightning_rl.figures.registry import FIGURES


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="NAME ...", help=", ".join(FIGURES))


def _draw(arguments: argparse.Namespace) -> None:
    run_tool("lightning-rl figures", FIGURES, arguments.words)


TOOLS: dict[str, Tool] = {
    "figures": Tool("draw a figure from run directories or results CSVs", _add_words, _draw),
}
