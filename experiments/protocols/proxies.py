"""CSVs of what proxies are like: rows of each, made with several agents."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.console import counting
from lightning_rl.lab.protocols.agents import AgentKind
from lightning_rl.lab.protocols.models import Model
from lightning_rl.lab.protocols.results import open_results

PROXY_KEY = ("trained_on", "proxy", "proxy_hash", "agent", "protocol", "agents", "seed")
"""The columns that say what was done with which proxy: its name alone may stand for another one
later.
"""


def write_proxies(
    given: Namespace,
    columns: Sequence[str],
    models: Sequence[Model],
    kind: AgentKind,
    words: Sequence[str],
    rows_of: Callable[[Model], Sequence[Mapping[str, Any]]],
) -> list[dict[str, str]]:
    """Fills OUT.csv with the rows of each proxy, made with ``--count`` agents of one kind; all
    rows.
    """
    with (
        open_results(Path(given.out), columns, PROXY_KEY, given.force) as results,
        counting(len(models), "proxies") as advance,
    ):
        for model in models:
            about = {
                **model.about(),
                "agent": kind.name,
                "protocol": kind.protocol(*words),
                "seed": given.seed,
                "agents": given.count,
            }
            if not results.has(**about):
                results.add([{**about, **row} for row in rows_of(model)])
            advance(1, model.name)
        return results.rows
