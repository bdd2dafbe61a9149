"""Agents that judge proxies: which they are, how they are trained, and that many of them train as one stack."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from lightning_rl.core.arguments import add_force, count, non_negative
from lightning_rl.core.config import has_key, parse_settings
from lightning_rl.core.seeding import derive_seed, generator
from lightning_rl.core.types import UserError
from lightning_rl.envs.proxies import RewardProxy, SyntheticProxy
from lightning_rl.lab.protocols.models import Model, best_of_each, find_models
from lightning_rl.methods.agent_configs import AGENTS, NetConfig
from lightning_rl.methods.inner_loop import InnerLoop, Trained
from lightning_rl.methods.proxy_search_configs import agent_configs

STACK = 64
"""Agents that train together at most: after each stack its rows are written."""


class Job(NamedTuple):
    """An agent to be trained on a proxy. number: 0, 1, .. of the agents on this proxy."""

    model: Model
    number: int


@dataclass(frozen=True)
class Judge:
    """A kind of agent. varied: each agent draws hyper-parameters around ``config``; settings: keys set by hand."""

    name: str
    config: Any
    varied: bool
    settings: Mapping[str, Any]

    def words(self, *more: str) -> str:
        """How it is trained, for the column ``protocol``: rows of different protocols are never mixed."""
        own = [f"{key}={value}" for key, value in self.settings.items()]
        return ", ".join(["varied" if self.varied else "fixed", *more, *own])

    def by_config(self, jobs: Sequence[Job], run_seed: int) -> list[tuple[Judge, list[Job]]]:
        """The jobs with their config: one for all, as a stack draws the hyper-parameters of its networks itself.

        Tables that vary have one for each number: learning rate and discount are uniform in [0.1, 1], as in the paper.
        """
        if not self.varied or isinstance(self.config, NetConfig):
            return [(self, list(jobs))]
        groups = []
        for number in sorted({job.number for job in jobs}):
            rate, gamma = generator(run_seed, "table", number).uniform(0.1, 1.0, 2).tolist()
            drawn = dataclasses.replace(self.config, learning_rate=rate, gamma=gamma)
            groups.append((dataclasses.replace(self, config=drawn), [job for job in jobs if job.number == number]))
        return groups


def make_judges(names: Sequence[str], gamename: str, preset: str, varied: bool, settings: Mapping[str, Any]) -> list[Judge]:
    """The agents called ``names``, with the preset of their YAMLs and ``settings`` for those that have such keys.

    UserError for an agent that does not fit the actions, and a key that none has.
    """
    judges = []
    for name in names:
        own = {key: value for key, value in settings.items() if name in AGENTS and has_key(AGENTS[name].config, key)}
        ((_, config),) = agent_configs({name: own}, gamename, preset)
        judges.append(Judge(name, config, varied, own))
    for key in settings:
        if not any(key in judge.settings for judge in judges):
            raise UserError(f"--set {key}: none of {', '.join(names)} has such a key; see lightning_rl config {names[0]}")
    return judges


def train_stacks(
    jobs: Sequence[Job], loop_for: Callable[[SyntheticProxy | RewardProxy], InnerLoop], purpose: str, run_seed: int,
    done: Callable[[Job], bool],
) -> Iterator[tuple[list[Job], InnerLoop, Trained]]:  # fmt: skip
    """Trains the jobs that are not ``done``; those on proxies of one kind in stacks of up to ``STACK``.

    An agent is a function of (run_seed, purpose, name of the proxy, number).
    """
    kinds: dict[SyntheticProxy | RewardProxy, list[Job]] = {}
    for job in jobs:
        kinds.setdefault(job.model.proxy, []).append(job)
    for proxy, mine in kinds.items():
        loop = loop_for(proxy)
        seeds = [derive_seed(run_seed, f"{purpose} {job.model.name}", job.number) for job in mine]
        for rows in loop.stacks(0, list(range(len(mine))), seeds):
            for first in range(0, len(rows), STACK):
                left = [row for row in rows[first : first + STACK] if not done(mine[row])]
                if left:
                    params = torch.stack([mine[row].model.params for row in left])
                    yield [mine[row] for row in left], loop, loop.train(0, params, [seeds[row] for row in left])


def without_rule(judge: Judge, proxy: SyntheticProxy | RewardProxy, steps: int, tests: int, judged: bool) -> InnerLoop:
    """Agents that train ``steps`` steps whatever comes. judged: a real test episode is played after each training episode."""
    return InnerLoop(
        proxy, ((judge.name, judge.config),), judge.varied, "none", "final_return", None, 0.0, tests, int(judged), steps
    )


def with_train_episodes(judge: Judge, episodes: int) -> Judge:
    """The same agents with another limit of episodes."""
    return dataclasses.replace(judge, config=dataclasses.replace(judge.config, train_episodes=episodes))


def add_model_arguments(parser: argparse.ArgumentParser, written: str) -> None:
    """The CSV, the proxies, and which of them."""
    add_csv(parser, written)
    parser.add_argument(
        "sources", nargs="*", metavar="PROXY", help="proxy file, name of a shipped one, run directory, or folder above some"
    )
    parser.add_argument("--gamename", metavar="NAME", help="only proxies of this task (default: that of the first)")
    parser.add_argument(
        "--best", type=count, metavar="N", help="of each kind only the N that their own search scored highest (default: all)"
    )


def add_csv(parser: argparse.ArgumentParser, written: str) -> None:
    """``OUT.csv`` and ``--seed``."""
    parser.add_argument("out", metavar="OUT.csv", help=f"{written}; rows that are there already are not made again")
    parser.add_argument("--seed", type=non_negative, default=0, metavar="N", help="of all randomness (default 0)")
    add_force(parser, "OUT.csv")


def add_agent_arguments(parser: argparse.ArgumentParser, hyperparameters: str, tests: int | None = None) -> None:
    """Which agents, how many, and with which hyper-parameters."""
    parser.add_argument("--count", type=count, default=10, metavar="N", help="agents of each kind on each proxy (default 10)")
    parser.add_argument("--hyperparameters", choices=("varied", "fixed"), default=hyperparameters,
                        help="varied: learning rate, batch size, width and depth are drawn for each agent around the preset's, "
                        f"learning rate and discount for tables (default {hyperparameters})")  # fmt: skip
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE",
                        help="override a key of those agents that have it; repeatable")  # fmt: skip
    if tests is not None:
        parser.add_argument("--tests", type=count, default=tests, metavar="N", help=f"real test episodes of each ({tests})")


def asked_judges(names: Sequence[str], gamename: str, preset: str, arguments: argparse.Namespace) -> list[Judge]:
    """The agents called ``names``, as ``--hyperparameters`` and ``--set`` say; see ``make_judges``."""
    settings = parse_settings(arguments.settings)
    return make_judges(names, gamename, preset, arguments.hyperparameters == "varied", settings)


def asked_models(arguments: argparse.Namespace) -> list[Model]:
    """The proxies that the arguments name."""
    return best_of_each(find_models(arguments.sources, arguments.gamename), arguments.best)


def one_gamename(models: Sequence[Model], arguments: argparse.Namespace) -> str:
    """The task; UserError if neither a proxy nor ``--gamename`` says."""
    if models:
        return models[0].proxy.gamename
    if arguments.gamename is None:
        raise UserError("no proxy and no --gamename: name proxies, or the task of the real baseline")
    return str(arguments.gamename)
