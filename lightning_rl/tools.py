"""What ``lightning-rl NAME ...`` does besides training: one line per command."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from lightning_rl.core.arguments import Tool, run_tool
from lightning_rl.lab.figures.registry import FIGURES
from lightning_rl.lab.protocols.registry import EVALUATIONS
from lightning_rl.lab.reports import docs
from lightning_rl.lab.reports.compare import COMPARE
from lightning_rl.lab.reports.config_table import CONFIG
from lightning_rl.lab.reports.listing import RUNS
from lightning_rl.lab.reports.page import REPORT


def _group(name: str, summary: str, tools: Mapping[str, Tool]) -> Tool:
    """``lightning-rl name TOOL ...``."""

    def add_words(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="NAME ...", help=", ".join(tools))

    return Tool(summary, add_words, lambda arguments: run_tool(f"lightning-rl {name}", tools, arguments.words))


def _refresh(arguments: argparse.Namespace) -> None:
    docs.refresh(arguments.files, use)


def use(words: Sequence[str]) -> None:
    """Runs ``lightning-rl NAME ...``; UserError for what cannot be done."""
    run_tool("lightning-rl", TOOLS, words)


TOOLS: dict[str, Tool] = {
    "figures": _group("figures", "draw a figure from run directories or results CSVs", FIGURES),
    "evaluate": _group("evaluate", "judge trained proxies, into a results CSV", EVALUATIONS),
    "runs": RUNS,
    "compare": COMPARE,
    "report": REPORT,
    "config": CONFIG,
    "docs": Tool("refresh the tables in Markdown files that commands have made", docs.add_arguments, _refresh),
}
