"""Protocols that judge proxies, by name: ``lightning-rl proxies NAME ...``. A new one is an
entry here and its module.
"""

from __future__ import annotations

from argparse import Namespace

from lightning_rl.core.arguments import Argument, Tool, argument, force, settings_of
from lightning_rl.core.kinds import count, gamename, non_negative
from lightning_rl.run.imports import import_lightning
from lightning_rl.run.runtime import prepare_process

TRANSFER_AGENTS = ("DDQN", "DuelingDDQN", "TD3-discrete")


def count_of(name: str, help: str, default: int | None = None) -> Argument:
    """A flag that takes a whole number from 1 on."""
    return argument(name, help, count, default=default)


def csv_arguments(written: str) -> tuple[Argument, ...]:
    """The CSV that a protocol writes, and its seed."""
    return (
        argument(
            "out",
            f"CSV to write, {written}; rows that it already has are not made again",
            metavar="OUT.csv",
        ),
        argument("--seed", "seed of all randomness (default 0)", non_negative, default=0),
        force("OUT.csv"),
    )


def proxies(nargs: str) -> tuple[Argument, ...]:
    """Which proxies are meant, and their task."""
    return (
        argument(
            "sources",
            "proxy file, name of a shipped proxy, run directory, or folder of such",
            nargs=nargs,
            metavar="PROXY",
        ),
        argument(
            "--gamename", "use only proxies of this task (default: the task of the first)", gamename
        ),
    )


def csv_and_proxies(written: str) -> tuple[Argument, ...]:
    """The CSV that a protocol writes, its seed, and the proxies that it judges."""
    return (
        *csv_arguments(written),
        *proxies("*"),
        count_of(
            "--best",
            "of each kind, use only the N with the highest scores in their own search (default: "
            "all)",
        ),
    )


def agent_arguments(hyperparameters: str) -> tuple[Argument, ...]:
    """How many agents, and with which hyper-parameters."""
    return (
        count_of("--count", "agents of each kind on each proxy (default 10)", 10),
        argument(
            "--hyperparameters",
            "varied: each agent draws learning rate, batch size (not PPO), width and depth around "
            "the "
            f"preset's, tables learning rate and discount in [0.1, 1] (default {hyperparameters})",
            choices=("varied", "fixed"),
            default=hyperparameters,
        ),
        settings_of("the agents, where they have it", "config key"),
    )


TESTS = count_of("--tests", "episodes of the real task that test each of them (default 10)", 10)
TESTS_AND_STEPS = (
    TESTS,
    count_of(
        "--steps", "train for N environment steps (default: until the paper's stop rule holds)"
    ),
)


class Protocol(Tool):
    """A command that trains: with a second thread each of its small networks would wait for it
    all the time.
    """

    def call(self, given: Namespace) -> None:
        import_lightning()
        prepare_process()
        super().call(given)


def _protocol(module: str, summary: str, *arguments: Argument) -> Tool:
    return Protocol(summary, f"lightning_rl.lab.protocols.{module}:run", arguments)


PROTOCOLS: dict[str, Tool] = {
    "list": _protocol(
        "listing",
        "list proxies: task, kind, seed and generations of their search, and a hash of their "
        "content",
        argument(
            "sources",
            "as for transfer (default: all proxies of the package)",
            nargs="*",
            metavar="PROXY",
        ),
    ),
    "transfer": _protocol(
        "transfer",
        "train fresh agents on proxies and test them on the real task (for the figure "
        "proxy-transfer)",
        *csv_and_proxies("one row per agent"),
        argument(
            "--agents",
            f"kinds of agents (default: {' '.join(TRANSFER_AGENTS)})",
            nargs="+",
            default=list(TRANSFER_AGENTS),
            metavar="NAME",
        ),
        *agent_arguments("varied"),
        *TESTS_AND_STEPS,
        count_of("--real", "also train N agents of each kind on the real task (default 0)", 0),
    ),
}
