"""What ``lightning-rl NAME ...`` does besides training: one line per command."""

from __future__ import annotations

import argparse

from lightning_rl.arguments import Tool, run_tool
from lightning_rl.figures.registry import FIGURES
from lightning_rl.reports.compare import COMPARE
from lightning_rl.reports.listing import RUNS
from lightning_rl.reports.page import REPORT


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="NAME ...", help=", ".join(FIGURES))


def _draw(arguments: argparse.Namespace) -> None:
    run_tool("lightning-rl figures", FIGURES, arguments.words)


TOOLS: dict[str, Tool] = {
    "figures": Tool("draw a figure from run directories or results CSVs", _add_words, _draw),
    "runs": RUNS,
    "compare": COMPARE,
    "report": REPORT,
}
