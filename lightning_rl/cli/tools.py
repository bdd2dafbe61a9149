"""What ``lightning-rl NAME ...`` does besides training, searching and evaluating.

Nothing is imported for a command before it is used.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from lightning_rl.cli.parser import SUMMARIES
from lightning_rl.core.arguments import Group, Tool
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import unknown
from lightning_rl.lab.figures.registry import FIGURES
from lightning_rl.lab.protocols.registry import PROTOCOLS
from lightning_rl.lab.reports.registry import REPORTS

OLD_NAMES = {"evaluate": "proxies"}

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder of this package: a checkout of the repository, or where packages are installed."""
MARKER = "results/claims.yaml"  # which only the repository has
IN_REPOSITORY = {
    "COMMANDS": ("reproduce", "baseline", "docs", "speed", "claims"),
    "FIGURES": (
        "marks",
        "table",
        "profile",
        "obedience",
        "front",
        "generalisation",
        "phase",
        "policy-gradient",
        "proxy-success",
        "proxy-transfer",
        "proxy-histograms",
        "synthetic-dataset",
        "reward-curves",
        "grid-rewards",
        "step-sizes",
        "supervised-model",
    ),
    "PROTOCOLS": ("clones", "peers", "reward-curves", "transitions", "grid-rewards", "generations"),
}
"""What ``experiments/`` declares, which proves this project's own numbers."""


class FromRepository(Tool):
    """A command that this installation lacks, whatever its words are."""

    def use(self, prog: str, words: Sequence[str]) -> None:
        refuse(prog)


def refuse(what: str) -> NoReturn:
    """UserError: it needs the repository."""
    raise UserError(
        f"{what} needs the repository, of which only the package is installed; git clone it, and "
        "try there"
    )


def find_experiments() -> bool:
    """Whether ``experiments`` stands beside this package; if so, it can be imported from now on.

    Neither the present folder nor another package of that name counts.
    """
    folder = CHECKOUT / "experiments"
    if "experiments" not in sys.modules and (CHECKOUT / MARKER).is_file() and folder.is_dir():
        spec = importlib.util.spec_from_file_location(
            "experiments", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["experiments"] = module
        spec.loader.exec_module(module)
    return getattr(sys.modules.get("experiments"), "EVIDENCE_OF", None) == "lightning_rl"


def call_experiment(function: str, *values: Any) -> Any:
    """Calls ``module:function`` of ``experiments``, in this process or one that was spawned."""
    if not find_experiments():
        refuse("this command")
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(f"experiments.{module}"), name)(*values)


def _of_repository(kind: str) -> Mapping[str, Tool]:
    if not find_experiments():
        return {
            name: FromRepository("needs the repository", "", ()) for name in IN_REPOSITORY[kind]
        }
    return getattr(importlib.import_module("experiments.commands"), kind)


@functools.cache
def tools() -> dict[str, Tool | Group]:
    """All commands by name, also those that only a checkout of the repository can run."""
    figures = {**FIGURES, **_of_repository("FIGURES")}
    protocols = {**PROTOCOLS, **_of_repository("PROTOCOLS")}
    return {
        "proxies": Group(
            "list trained proxies, or evaluate them and write the results to a CSV", protocols
        ),
        "figures": Group("draw a figure from run directories or results CSVs", figures),
        **REPORTS,
        **_of_repository("COMMANDS"),
    }


def use(words: Sequence[str], prog: str = "lightning-rl") -> None:
    """Runs ``lightning-rl NAME ...``; UserError for what cannot be done."""
    name = OLD_NAMES.get(words[0], words[0])
    if name not in tools():
        raise UserError(unknown("command", words[0], (*SUMMARIES, *tools())))
    tools()[name].use(f"{prog} {name}", words[1:])
