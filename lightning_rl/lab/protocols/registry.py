"""Protocols that judge proxies, by name: ``lightning-rl proxies NAME ...``. A new one is an
entry here and its module.
"""

from __future__ import annotations

import argparse

from lightning_rl.core.arguments import (
    Argument,
    Tool,
    argument,
    count,
    force,
    gamename,
    non_negative,
    positive,
)
from lightning_rl.run.runtime import prepare_process

TRANSFER_AGENTS = ("DDQN", "DuelingDDQN", "TD3-discrete")
BIN = 0.02


def _count(name: str, help: str, default: int | None = None) -> Argument:
    return argument(name, help, type=count, default=default, metavar="N")


def _csv(written: str) -> tuple[Argument, ...]:
    return (
        argument(
            "out",
            f"CSV to write, {written}; rows that it already has are not made again",
            metavar="OUT.csv",
        ),
        argument(
            "--seed",
            "seed of all randomness (default 0)",
            type=non_negative,
            default=0,
            metavar="N",
        ),
        force("OUT.csv"),
    )


def _csv_and_proxies(written: str) -> tuple[Argument, ...]:
    return (
        *_csv(written),
        argument(
            "sources",
            "proxy file, name of a shipped proxy, run directory, or folder of such",
            nargs="*",
            metavar="PROXY",
        ),
        argument(
            "--gamename",
            "use only proxies of this task (default: the task of the first)",
            type=gamename,
            metavar="NAME",
        ),
        _count(
            "--best",
            "of each kind, use only the N with the highest scores in their own search (default: "
            "all)",
        ),
    )


def _settings(of: str) -> Argument:
    return argument(
        "--set",
        f"override a config key of {of}; repeatable",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
    )


def _agents(hyperparameters: str) -> tuple[Argument, ...]:
    """How many agents, and with which hyper-parameters."""
    return (
        _count("--count", "agents of each kind on each proxy (default 10)", 10),
        argument(
            "--hyperparameters",
            "varied: each agent draws learning rate, batch size (not PPO), width and depth around "
            "the "
            f"preset's, tables learning rate and discount in [0.1, 1] (default {hyperparameters})",
            choices=("varied", "fixed"),
            default=hyperparameters,
        ),
        _settings("the agents, where they have it"),
    )


_TESTS = _count("--tests", "episodes of the real task that test each of them (default 10)", 10)
_TESTS_AND_STEPS = (
    _TESTS,
    _count("--steps", "train for N environment steps (default: until the paper's stop rule holds)"),
)


class Protocol(Tool):
    """A command that trains: with a second thread each of its small networks would wait for it
    all the time.
    """

    def call(self, given: argparse.Namespace) -> None:
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
        *_csv_and_proxies("one row per agent"),
        argument(
            "--agents",
            f"kinds of agents (default: {' '.join(TRANSFER_AGENTS)})",
            nargs="+",
            default=list(TRANSFER_AGENTS),
            metavar="NAME",
        ),
        *_agents("varied"),
        *_TESTS_AND_STEPS,
        _count("--real", "also train N agents of each kind on the real task (default 0)", 0),
    ),
    "clones": _protocol(
        "clones",
        "clone fresh policies from synthetic datasets and test them on the real task (for the "
        "figure proxy-transfer)",
        *_csv_and_proxies("one row per clone"),
        *_agents("fixed"),
        _TESTS,
    ),
    "reward-curves": _protocol(
        "reward_curves",
        "record learning curves of agents with learned rewards (for the figure reward-curves)",
        *_csv_and_proxies("one row per agent"),
        argument(
            "--agents",
            "kinds of agents (default: QL SARSA for cliff, TD3 PPO for continuous actions, else "
            "DDQN DuelingDDQN)",
            nargs="+",
            metavar="NAME",
        ),
        *_agents("fixed"),
        _count(
            "--steps",
            "environment steps of training (default 50000; the paper's for cliff: 5000, "
            "mountaincar-continuous: 250000, "
            "halfcheetah: 500000)",
        ),
        _count("--points", "points of each curve; divides --steps (default 100)", 100),
        _count(
            "--real", "also train N agents of each kind with the task's own reward (default 0)", 0
        ),
        _count(
            "--curious",
            "also train N agents of each kind with it and an exploration bonus (curiosity) "
            "(default 0)",
            0,
        ),
    ),
    "transitions": _protocol(
        "transitions",
        "compare synthetic and real transitions as histograms (for the figure proxy-histograms)",
        *_csv_and_proxies("one row per histogram"),
        argument("--agent", "kind of agents (default DDQN)", default="DDQN", metavar="NAME"),
        *_agents("varied"),
        *_TESTS_AND_STEPS,
        argument(
            "--bin",
            f"width of the histograms' bins, in the unit of each quantity (default {BIN})",
            type=positive,
            default=BIN,
            metavar="WIDTH",
        ),
    ),
    "grid-rewards": _protocol(
        "grid_rewards",
        "record the rewards of reward networks in a grid world, and visits of agents (for "
        "grid-rewards)",
        *_csv_and_proxies("one row per cell, and per action in it, of each proxy"),
        argument(
            "--agent",
            "kind of agents whose visits are counted (default SARSA)",
            default="SARSA",
            metavar="NAME",
        ),
        *_agents("fixed"),
        argument("--real", "also record the task's own reward", action="store_true"),
    ),
    "generations": _protocol(
        "generations",
        "run many short searches for proxies (for the figures proxy-success and step-sizes)",
        *_csv("one row per generation of each run"),
        argument(
            "--implementation",
            "method of the searches (default SE)",
            choices=("SE", "RN", "SD"),
            default="SE",
        ),
        argument(
            "--gamename",
            "task (default emptyroom22)",
            type=gamename,
            default="emptyroom22",
            metavar="NAME",
        ),
        _count("--runs", "number of searches, with seeds SEED .. SEED+N-1 (default 20)", 20),
        argument(
            "--preset", "name of a block under presets: in the method's config", metavar="NAME"
        ),
        _settings("the method's config"),
        argument(
            "--draw",
            "draw a key's value for each search from a space as in a tune: block, e.g. "
            "'step_size={log: [0.01, 10]}'; repeatable",
            dest="drawn",
            action="append",
            default=[],
            metavar="KEY=SPACE",
        ),
    ),
}
