"""What ``lightning-rl NAME ...`` does besides training, searching and evaluating.

Nothing is imported for a command before it is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lightning_rl.core.arguments import Group, Tool, argument, checked_path, gamename, whole
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import SEED, unknown
from lightning_rl.flags import SUMMARIES
from lightning_rl.lab.figures.registry import FIGURES
from lightning_rl.lab.protocols.registry import PROTOCOLS
from lightning_rl.lab.reports.registry import REPORTS


def _refresh(given: argparse.Namespace) -> None:
    from lightning_rl.lab.reports.docs import refresh

    refresh(given.files, use)


TOOLS: dict[str, Tool | Group] = {
    "proxies": Group(
        "list trained proxies, or evaluate them and write the results to a CSV", PROTOCOLS
    ),
    "figures": Group("draw a figure from run directories or results CSVs", FIGURES),
    **REPORTS,
    "baseline": Tool(
        "train an agent of Stable-Baselines3 with our hyper-parameters, to compare ours with",
        "lightning_rl.lab.baselines:run",
        (
            argument(
                "--implementation",
                "our method whose settings are used: DDQN (for its DQN), PPO, TD3",
                required=True,
                metavar="NAME",
            ),
            argument("--gamename", "environment", type=gamename, required=True, metavar="NAME"),
            argument("--preset", "as for lightning-rl train", metavar="NAME"),
            argument(
                "--exp_name",
                "folder of the experiment (default: default)",
                default="default",
                metavar="NAME",
            ),
            argument(
                "--seed",
                "seed of the run (default 25)",
                type=whole(0, SEED),
                default=25,
                metavar="N",
            ),
            argument(
                "--logdir",
                "folder of all results (default: exp_dir)",
                type=checked_path,
                default="exp_dir",
                metavar="DIR",
            ),
            argument(
                "--set",
                "override a key of our config; repeatable",
                dest="settings",
                action="append",
                default=[],
                metavar="KEY=VALUE",
            ),
            argument(
                "--resume",
                "leave a finished run as it is; start one that was stopped from the beginning",
                action="store_true",
            ),
        ),
    ),
    "docs": Tool(
        "make the tables and numbers in Markdown files anew by the commands that made them",
        _refresh,
        (argument("files", "Markdown file", type=checked_path, nargs="+", metavar="FILE"),),
    ),
    "claims": Tool(
        "published and measured results of some claims, as a Markdown table",
        "lightning_rl.lab.reproduce.ledger:show",
        (
            argument(
                "ids",
                "names of claims, see lightning-rl reproduce --list",
                nargs="+",
                metavar="CLAIM",
            ),
        ),
    ),
}
OLD_NAMES = {"evaluate": "proxies"}


def use(words: Sequence[str], prog: str = "lightning-rl") -> None:
    """Runs ``lightning-rl NAME ...``; UserError for what cannot be done."""
    name = OLD_NAMES.get(words[0], words[0])
    if name not in TOOLS:
        raise UserError(unknown("command", words[0], (*SUMMARIES, *TOOLS)))
    TOOLS[name].use(f"{prog} {name}", words[1:])
