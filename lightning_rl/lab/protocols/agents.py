"""Agents that are trained on proxies to judge them: of which kinds, how they are trained, many of them as one stack."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from lightning_rl.agents.base import NetConfig
from lightning_rl.agents.registry import AGENTS
from lightning_rl.core.arguments import add_force, count, non_negative
from lightning_rl.core.config import has_key, parse_settings
from lightning_rl.core.console import Advance, counting
from lightning_rl.core.errors import UserError
from lightning_rl.core.seeding import derive_seed, generator
from lightning_rl.envs.proxies import RewardProxy, SyntheticProxy
from lightning_rl.lab.protocols.models import Model, best_of_each, find_models
from lightning_rl.lab.protocols.results import Results
from lightning_rl.methods.inner_loop import InnerLoop, Trained
from lightning_rl.methods.proxy_search import agent_configs

STACK = 64
"""Agents that train together at most: after each stack its rows are written."""


class Job(NamedTuple):
    """An agent to be trained on a proxy. number: 0, 1, .. of the agents on this proxy."""

    model: Model
    number: int


Stacks = Iterator[tuple[list[Job], Sequence[Mapping[str, Any]]]]
"""The jobs of each stack, and what its agents' rows hold besides the job."""


@dataclass(frozen=True)
class AgentKind:
    """A kind of agent. varied: each agent draws hyper-parameters around ``config``; settings: keys set by hand."""

    name: str
    config: Any
    varied: bool
    settings: Mapping[str, Any]

    def protocol(self, *more: str) -> str:
        """How it is trained, for the column ``protocol``: rows of different protocols are never mixed."""
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        return ", ".join(["varied" if self.varied else "fixed", *more, *settings])

    def with_config(self, **changes: Any) -> AgentKind:
        """The same with other values in its config."""
        return dataclasses.replace(self, config=dataclasses.replace(self.config, **changes))

    def by_config(self, jobs: Sequence[Job], run_seed: int) -> list[tuple[AgentKind, list[Job]]]:
        """The jobs with their config: one for all, as a stack draws the hyper-parameters of its networks itself.

        Tables that vary have one for each number: learning rate and discount are uniform in [0.1, 1], as in the paper.
        """
        if not self.varied or isinstance(self.config, NetConfig):
            return [(self, list(jobs))]
        groups = []
        for number in sorted({job.number for job in jobs}):
            rate, gamma = generator(run_seed, "table", number).uniform(0.1, 1.0, 2).tolist()
            kind = self.with_config(learning_rate=rate, gamma=gamma)
            groups.append((kind, [job for job in jobs if job.number == number]))
        return groups

    def loop(self, proxy: SyntheticProxy | RewardProxy, steps: int, tests: int, judged: bool) -> InnerLoop:
        """Training for ``steps`` steps whatever comes. judged: a real test episode is played after each training episode."""
        return InnerLoop(
            proxy=proxy, agents=((self.name, self.config),), vary=self.varied, test_episodes=tests, judge_episodes=int(judged),
            max_train_steps=steps,
        )  # fmt: skip


def make_kinds(names: Sequence[str], gamename: str, preset: str, varied: bool, settings: Mapping[str, Any]) -> list[AgentKind]:
    """The agents called ``names``, with the preset of their YAMLs and ``settings`` for those that have such keys.

    UserError for an agent that does not fit the actions, and a key that none has.
    """
    kinds = []
    for name in names:
        known = {key: value for key, value in settings.items() if name in AGENTS and has_key(AGENTS[name].config, key)}
        ((_, config),) = agent_configs({name: known}, gamename, preset)
        kinds.append(AgentKind(name, config, varied, known))
    for key in settings:
        if not any(key in kind.settings for kind in kinds):
            raise UserError(f"--set {key}: none of {', '.join(names)} has such a key; see lightning-rl config {names[0]}")
    return kinds


def train_stacks(
    jobs: Sequence[Job], loop_for: Callable[[SyntheticProxy | RewardProxy], InnerLoop], purpose: str, run_seed: int
) -> Iterator[tuple[list[Job], InnerLoop, Trained]]:
    """Trains the jobs; those on proxies of one kind in stacks of up to ``STACK``.

    An agent is a function of (run_seed, purpose, name of the proxy, number).
    """
    by_proxy: dict[SyntheticProxy | RewardProxy, list[Job]] = {}
    for job in jobs:
        by_proxy.setdefault(job.model.proxy, []).append(job)
    for proxy, members in by_proxy.items():
        loop = loop_for(proxy)
        seeds = [derive_seed(run_seed, f"{purpose} {job.model.name}", job.number) for job in members]
        for rows in loop.stacks(0, list(range(len(members))), seeds):
            for first in range(0, len(rows), STACK):
                stack = rows[first : first + STACK]
                params = torch.stack([members[row].model.params for row in stack])
                yield [members[row] for row in stack], loop, loop.train(0, params, [seeds[row] for row in stack])


def add_agent_rows(
    results: Results, kind: AgentKind, protocol: str, jobs: Sequence[Job], train: Callable[[list[Job]], Stacks], advance: Advance
) -> None:
    """A row for each agent of one kind that ``results`` lacks; ``train`` trains them, stack by stack."""

    def about(job: Job) -> dict[str, Any]:
        where = {"gamename": job.model.proxy.gamename, "trained_on": job.model.trained_on, "proxy": job.model.name}
        return {**where, "agent": kind.name, "protocol": protocol, "number": job.number}

    left = [job for job in jobs if not results.has(**about(job))]
    advance(len(jobs) - len(left), kind.name)
    for stack, values in train(left):
        results.add([{**about(job), **value} for job, value in zip(stack, values, strict=True)])
        advance(len(stack), kind.name)


def add_proxy_rows(
    results: Results, models: Sequence[Model], kind: AgentKind, protocol: str, number: int,
    rows_of: Callable[[Model], Sequence[Mapping[str, Any]]],
) -> None:  # fmt: skip
    """The rows of each proxy that ``results`` lacks, made with ``number`` agents of one kind."""
    with counting(len(models), "proxies") as advance:
        for model in models:
            about = {"trained_on": model.trained_on, "proxy": model.name, "agent": kind.name, "protocol": protocol}
            if not results.has(**about):
                more = {"gamename": model.proxy.gamename, "agents": number}
                results.add([{**about, **more, **row} for row in rows_of(model)])
            advance(1, model.name)


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


def add_settings(parser: argparse.ArgumentParser, help_text: str) -> None:
    """``--set``."""
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help=help_text)


def add_agent_arguments(parser: argparse.ArgumentParser, hyperparameters: str, tests: int | None = None) -> None:
    """Which agents, how many, and with which hyper-parameters."""
    parser.add_argument("--count", type=count, default=10, metavar="N", help="agents of each kind on each proxy (default 10)")
    parser.add_argument("--hyperparameters", choices=("varied", "fixed"), default=hyperparameters,
                        help="varied: learning rate, batch size, width and depth are drawn for each agent around the preset's, "
                        f"learning rate and discount for tables (default {hyperparameters})")  # fmt: skip
    add_settings(parser, "override a key of those agents that have it; repeatable")
    if tests is not None:
        parser.add_argument("--tests", type=count, default=tests, metavar="N", help=f"real test episodes of each ({tests})")


def add_steps(parser: argparse.ArgumentParser) -> None:
    """``--steps``."""
    parser.add_argument("--steps", type=count, metavar="N", help="train N steps instead of until the paper's stop rule holds")


def asked_kinds(names: Sequence[str], gamename: str, preset: str, arguments: argparse.Namespace) -> list[AgentKind]:
    """The agents called ``names``, as ``--hyperparameters`` and ``--set`` say; see ``make_kinds``."""
    return make_kinds(names, gamename, preset, arguments.hyperparameters == "varied", parse_settings(arguments.settings))


def asked_models(arguments: argparse.Namespace, wanted: type | None = None, refusal: str = "") -> tuple[list[Model], str]:
    """The proxies that the arguments name and their task.

    UserError where neither a proxy nor ``--gamename`` says the task, and for a proxy that is not ``wanted``.
    """
    models = best_of_each(find_models(arguments.sources, arguments.gamename), arguments.best)
    if not models and arguments.gamename is None:
        raise UserError("no proxy and no --gamename: name proxies, or the task of the real baseline")
    for model in models:
        if wanted is not None and not isinstance(model.proxy, wanted):
            raise UserError(f"'{model.name}' is {refusal}")
    return models, models[0].proxy.gamename if models else str(arguments.gamename)
