"""Protocols that judge proxies, by name: ``lightning-rl proxies NAME ...``. A new one is an entry here and its module."""

from __future__ import annotations

import argparse

from lightning_rl.core.arguments import Argument, Tool, argument, count, force, non_negative, positive
from lightning_rl.run.runtime import prepare_process

TRANSFER_AGENTS = ("DDQN", "DuelingDDQN", "TD3-discrete")
BIN = 0.02


def _count(name: str, help: str, default: int | None = None) -> Argument:
    return argument(name, help, type=count, default=default, metavar="N")


def _csv(written: str) -> tuple[Argument, ...]:
    return (
        argument("out", f"{written}; rows that are there already are not made again", metavar="OUT.csv"),
        argument("--seed", "of all randomness (default 0)", type=non_negative, default=0, metavar="N"),
        force("OUT.csv"),
    )


def _csv_and_proxies(written: str) -> tuple[Argument, ...]:
    return (
        *_csv(written),
        argument("sources", "proxy file, name of a shipped one, run directory, or folder above some", nargs="*", metavar="PROXY"),
        argument("--gamename", "only proxies of this task (default: that of the first)", metavar="NAME"),
        _count("--best", "of each kind only the N that their own search scored highest (default: all)"),
    )


def _settings(of: str) -> Argument:
    return argument("--set", f"override a key of {of}; repeatable", dest="settings", action="append", default=[],
                    metavar="KEY=VALUE")  # fmt: skip


def _agents(hyperparameters: str) -> tuple[Argument, ...]:
    """How many agents, and with which hyper-parameters."""
    return (
        _count("--count", "agents of each kind on each proxy (default 10)", 10),
        argument(
            "--hyperparameters", "varied: learning rate, batch size (not PPO), width and depth are drawn for each agent around "
            f"the preset's, learning rate and discount for tables (default {hyperparameters})",
            choices=("varied", "fixed"), default=hyperparameters,
        ),
        _settings("those agents that have it"),
    )  # fmt: skip


_TESTS = _count("--tests", "real test episodes of each (10)", 10)
_TESTS_AND_STEPS = (
    _TESTS,
    _count("--steps", "train N steps instead of until the paper's stop rule holds"),
)


class Protocol(Tool):
    """A command that trains: with a second thread each of its small networks would wait for it all the time."""

    def call(self, given: argparse.Namespace) -> None:
        prepare_process()
        super().call(given)


def _protocol(module: str, summary: str, *arguments: Argument) -> Tool:
    return Protocol(summary, f"lightning_rl.lab.protocols.{module}:run", arguments)


PROTOCOLS: dict[str, Tool] = {
    "list": _protocol(
        "listing", "which proxies there are, of which seed of which search, with the hash of their content",
        argument("sources", "as of transfer (default: all that are shipped)", nargs="*", metavar="PROXY"),
    ),
    "transfer": _protocol(
        "transfer", "fresh agents on trained proxies, tested on the real task (for the figure proxy-transfer)",
        *_csv_and_proxies("one row per agent"),
        argument(
            "--agents", f"default: {' '.join(TRANSFER_AGENTS)}", nargs="+", default=list(TRANSFER_AGENTS), metavar="NAME"
        ),
        *_agents("varied"), *_TESTS_AND_STEPS, _count("--real", "also N agents of each kind on the real task itself", 0),
    ),
    "clones": _protocol(
        "clones", "fresh policies cloned from synthetic datasets, tested on the real task (for the figure proxy-transfer)",
        *_csv_and_proxies("one row per clone"), *_agents("fixed"), _TESTS,
    ),
    "reward-curves": _protocol(
        "reward_curves", "learning curves of agents with learned rewards (for the figure reward-curves)",
        *_csv_and_proxies("one row per agent"),
        argument(
            "--agents", "default: QL SARSA for cliff, TD3 PPO for continuous actions, else DDQN DuelingDDQN",
            nargs="+", metavar="NAME",
        ),
        *_agents("fixed"),
        _count(
            "--steps",
            "training steps (default 50000; as in the paper cliff 5000, mountaincar-continuous 250000, halfcheetah 500000)",
        ),
        _count("--points", "values of each curve (default 100)", 100),
        _count("--real", "also N agents with the task's own reward", 0),
        _count("--curious", "also N agents with it and a bonus for novelty", 0),
    ),
    "transitions": _protocol(
        "transitions", "synthetic beside real transitions, as histograms (for the figure proxy-histograms)",
        *_csv_and_proxies("one row per histogram"),
        argument("--agent", "default DDQN", default="DDQN", metavar="NAME"),
        *_agents("varied"), *_TESTS_AND_STEPS,
        argument("--bin", f"of the histograms (default {BIN})", type=positive, default=BIN, metavar="WIDTH"),
    ),
    "grid-rewards": _protocol(
        "grid_rewards", "what reward networks pay in a grid world, where agents go (for grid-rewards)",
        *_csv_and_proxies("one row per cell, and per action in it, of each proxy"),
        argument("--agent", "whose visits are counted (default SARSA)", default="SARSA", metavar="NAME"),
        *_agents("fixed"), argument("--real", "also the task's own reward", action="store_true"),
    ),
    "generations": _protocol(
        "generations", "evolves many small proxies (for the figures proxy-success and step-sizes)",
        *_csv("one row per generation of each run"),
        argument("--implementation", "default SE", choices=("SE", "RN", "SD"), default="SE"),
        argument("--gamename", "task (default emptyroom22)", default="emptyroom22", metavar="NAME"),
        _count("--runs", "seeds SEED .. SEED+N-1 (default 20)", 20),
        argument("--preset", "a block under presets: in the method's config", metavar="NAME"),
        _settings("the method's config"),
        argument(
            "--draw", "draw a key for each run, as in a tune: block, e.g. 'step_size={log: [0.01, 10]}'; repeatable",
            dest="drawn", action="append", default=[], metavar="KEY=SPACE",
        ),
    ),
}  # fmt: skip
