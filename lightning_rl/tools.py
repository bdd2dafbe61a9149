"""What ``lightning-rl NAME ...`` does besides training, searching and evaluating: one line per command.

Nothing is imported for a command before it is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lightning_rl.core.arguments import Group, Tool
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import unknown
from lightning_rl.flags import SUMMARIES
from lightning_rl.lab.figures.registry import FIGURES
from lightning_rl.lab.protocols.registry import PROTOCOLS

_REPORTS = "lightning_rl.lab.reports"


def _refresh(arguments: argparse.Namespace) -> None:
    from lightning_rl.lab.reports.docs import refresh

    refresh(arguments.files, use)


TOOLS: dict[str, Tool | Group] = {
    "proxies": Group("judge trained proxies, into a results CSV", PROTOCOLS),
    "figures": Group("draw a figure from run directories or results CSVs", FIGURES),
    "report": Tool("one self-contained HTML page about runs", f"{_REPORTS}.page", "show"),
    "runs": Tool(
        "a table of all runs: method, environment, seed, steps, last and best return, state", f"{_REPORTS}.listing", "show"
    ),
    "compare": Tool(
        "difference of two methods with its interval, and probability of improvement", f"{_REPORTS}.compare", "show"
    ),
    "config": Tool(
        "the keys of a method's config with their values and sources, as Markdown", f"{_REPORTS}.config_table", "show"
    ),
    "docs": Tool("refresh the tables in Markdown files that commands have made", f"{_REPORTS}.docs", _refresh),
}
OLD_NAMES = {"evaluate": "proxies"}


def use(words: Sequence[str], prog: str = "lightning-rl") -> None:
    """Runs ``lightning-rl NAME ...``; UserError for what cannot be done."""
    name = OLD_NAMES.get(words[0], words[0])
    if name not in TOOLS:
        raise UserError(unknown("command", words[0], (*SUMMARIES, *TOOLS)))
    TOOLS[name].use(f"{prog} {name}", words[1:])
