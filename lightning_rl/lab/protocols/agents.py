"""Agents that are trained on proxies to judge them: of which kinds, how they are trained, many
of them as one stack.
"""

from __future__ import annotations

import dataclasses
import math
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.tabular import TabularConfig
from lightning_rl.core.config import parse_settings, refuse_ignored
from lightning_rl.core.console import counting
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.seeding import derive_seed, generator
from lightning_rl.envs.proxies import Proxy
from lightning_rl.evolution.callback import ALL_FAILED
from lightning_rl.lab.protocols.models import Model, best_of_each, find_models
from lightning_rl.lab.protocols.results import open_results, print_summary
from lightning_rl.methods.inner_loop import OWN_RUN, InnerLoop, Trained, agent_configs

STACK = 64
"""Agents that train together at most: after each stack its rows are written."""

AGENT_KEY = ("trained_on", "proxy", "proxy_hash", "agent", "protocol", "seed", "number")
"""The columns that say which agent a row is about."""


class Job(NamedTuple):
    """An agent to be trained on a proxy. number: 0, 1, .. of the agents on this proxy."""

    model: Model
    number: int

    def about(self) -> dict[str, Any]:
        """What a row says of the job."""
        return {**self.model.about(), "number": self.number}


def jobs_on(models: Sequence[Model], count: int) -> list[Job]:
    """``count`` agents on each of the proxies."""
    return [Job(model, number) for model in models for number in range(count)]


@dataclass(frozen=True)
class AgentKind:
    """A kind of agent. varied: each agent draws hyper-parameters around ``config``; settings:
    keys set by hand.
    """

    name: str
    config: Any
    varied: bool
    settings: Mapping[str, Any]

    def protocol(self, *more: str) -> str:
        """How it is trained, for the column ``protocol``: rows of different protocols are never
        mixed.
        """
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        return ", ".join(["varied" if self.varied else "fixed", *more, *settings])

    def with_config(self, **changes: Any) -> AgentKind:
        """The same with other values in its config."""
        return dataclasses.replace(self, config=dataclasses.replace(self.config, **changes))

    def for_steps(self, steps: int, proxy: Proxy, tests: int, **rule: Any) -> InnerLoop:
        """``loop`` of ``steps`` steps in as many episodes as it takes."""
        return self.with_config(train_episodes=steps).loop(proxy, steps, tests, **rule)

    def by_config(self, jobs: Sequence[Job], run_seed: int) -> Variants:
        """The jobs with their config: one for all, as a stack draws the hyper-parameters of its
        networks itself.

        Tables that vary have one for each number: learning rate and discount are uniform in [0.1,
        1], as in the paper.
        """
        if not (self.varied and isinstance(self.config, TabularConfig)):
            return [(self, list(jobs))]
        groups = []
        for number in sorted({job.number for job in jobs}):
            rate, gamma = generator(run_seed, "table", number).uniform(0.1, 1.0, 2).tolist()
            kind = self.with_config(learning_rate=rate, gamma=gamma)
            groups.append((kind, [job for job in jobs if job.number == number]))
        return groups

    def loop(self, proxy: Proxy, steps: int, tests: int, **rule: Any) -> InnerLoop:
        """Training for at most ``steps`` steps, and ``tests`` real episodes; rule: what may end
        it before, see ``InnerLoop``.
        """
        return InnerLoop(
            proxy=proxy,
            agents=((self.name, self.config),),
            test_episodes=tests,
            max_train_steps=steps,
            vary=self.varied and not isinstance(self.config, TabularConfig),
            **rule,
        )


Stacks = Iterator[tuple[list[Job], list[dict[str, Any]]]]
"""The jobs of agents, stack by stack, and a row of each."""
Variants = list[tuple[AgentKind, list[Job]]]
LoopFor = Callable[[AgentKind, Proxy], InnerLoop]
Train = Callable[[AgentKind, list[Job]], Stacks]


def make_kinds(
    names: Sequence[str], gamename: str, preset: str, varied: bool, settings: Mapping[str, Any]
) -> list[AgentKind]:
    """The agents called ``names``, with the preset of their YAMLs and ``settings`` for those that
    have such keys.

    UserError for an agent that does not fit the actions, and a key that none has, or that makes no
    difference on proxies.
    """
    refuse_ignored(
        dict.fromkeys(OWN_RUN, "how agents are trained here is the protocol's; leave it out"),
        ("--set", settings),
    )
    kinds = []
    for name in names:
        known = {
            key: value
            for key, value in settings.items()
            if name in AGENTS and key in AGENTS[name].config.__dataclass_fields__
        }
        ((_, config),) = agent_configs({name: known}, gamename, preset)
        kinds.append(AgentKind(name, config, varied, known))
    for key in settings:
        if not any(key in kind.settings for kind in kinds):
            raise UserError(
                f"--set {key}: none of {', '.join(names)} has such a key; see lightning-rl config "
                f"{names[0]}"
            )
    return kinds


def train_stacks(
    variants: Variants, loop_for: LoopFor, purpose: str, run_seed: int
) -> Iterator[tuple[list[Job], InnerLoop, Trained]]:
    """Trains the jobs; those on proxies of one kind in stacks of up to ``STACK``.

    An agent is a function of (run_seed, purpose, name of the proxy, number).
    """
    untrained: Counter[str] = Counter()
    for kind, jobs in variants:
        by_proxy: dict[Proxy, list[Job]] = {}
        for job in jobs:
            by_proxy.setdefault(job.model.proxy, []).append(job)
        for proxy, members in by_proxy.items():
            loop = loop_for(kind, proxy)
            seeds = [
                derive_seed(run_seed, f"{purpose} {job.model.name}", job.number) for job in members
            ]
            for rows in loop.stacks(0, list(range(len(members))), seeds):
                for first in range(0, len(rows), STACK):
                    stack = rows[first : first + STACK]
                    params = torch.stack([members[row].model.params for row in stack])
                    trained = loop.train(0, params, [seeds[row] for row in stack])
                    untrained[kind.name] += int((trained.agent.num_updates == 0).sum())
                    yield [members[row] for row in stack], loop, trained
    for name, count in untrained.items():
        if count:
            say(
                f"warning: {count} agents {name} had no update, as their training ended before "
                "they began to learn; give more steps, or a lower learning_starts",
                error=True,
            )


def failed_last(trained: Stacks, obtained: Sequence[str], known: float = math.inf) -> Stacks:
    """Stacks as they come, without agents whose returns are nan; these follow at the end, with the
    lowest return of the others.

    So a diverged agent's return does not depend on its stack. If all diverged it is ``ALL_FAILED``,
    as in the paper's code.
    known: the lowest return of those that an earlier call has written.
    """
    name = obtained[0]
    worst = known if known > ALL_FAILED else math.inf
    failed_jobs: list[Job] = []
    failed_rows: list[dict[str, Any]] = []
    for stack, rows in trained:
        sound_jobs, sound_rows = [], []
        for job, row in zip(stack, rows, strict=True):
            if math.isnan(row[name]):
                failed_jobs.append(job)
                failed_rows.append(row)
            else:
                worst = min(worst, row[name])
                sound_jobs.append(job)
                sound_rows.append(row)
        yield sound_jobs, sound_rows
    worst = worst if math.isfinite(worst) else ALL_FAILED
    filled = []
    for row in failed_rows:
        returns = {key: row[key] for key in obtained}
        for key, value in returns.items():
            returns[key] = [worst] * len(value) if isinstance(value, list) else worst
        filled.append(row | returns)
    yield failed_jobs, filled


def write_agents(
    given: Namespace,
    columns: Sequence[str],
    kinds: Sequence[AgentKind],
    jobs: Sequence[Job],
    words: Sequence[str],
    train: Train,
    obtained: Sequence[str],
    shown: Sequence[str],
    **more: Any,
) -> None:
    """Fills OUT.csv with a row for each agent of each kind, and prints a summary of the columns
    ``shown``.

    words: of how they are trained, for the column ``protocol``; train: of a kind those that the
    file lacks, stack by stack: the jobs, and what their rows hold besides; obtained: the columns of
    returns, the first a number, all nan where an agent failed;
    more: columns that also tell one request from another. UserError without a job.
    """
    if not jobs:
        raise UserError(
            f"no proxy is named: name some{', or give --real N' if 'real' in given else ''}"
        )
    with open_results(Path(given.out), columns, (*AGENT_KEY, *more), given.force) as results:
        with counting(len(jobs) * len(kinds), "agents") as advance:
            for kind in kinds:
                common = {
                    "agent": kind.name,
                    "protocol": kind.protocol(*words),
                    "seed": given.seed,
                    **more,
                }
                left = [job for job in jobs if not results.has(**job.about(), **common)]
                advance(len(jobs) - len(left), kind.name)
                same = [
                    row
                    for row in results.rows
                    if all(row[key] == str(value) for key, value in common.items())
                ]
                known = min((float(row[obtained[0]]) for row in same), default=math.inf)
                for stack, values in failed_last(train(kind, left), obtained, known):
                    pairs = zip(stack, values, strict=True)
                    results.add([{**job.about(), **common, **value} for job, value in pairs])
                    advance(len(stack), kind.name)
        print_summary(results.rows, shown)


def asked_kinds(
    names: Sequence[str], gamename: str, preset: str, given: Namespace, steps: int | None = None
) -> list[AgentKind]:
    """The agents called ``names``, as ``--hyperparameters`` and ``--set`` say; see ``make_kinds``.

    steps: for which they train; None: as their config says. UserError where a number of episodes is
    set besides.
    """
    settings = parse_settings(given.settings)
    if steps is not None and "train_episodes" in settings:
        raise UserError(
            f"--set train_episodes: agents train for {steps} steps here; leave it out, and say "
            "--steps N"
        )
    return make_kinds(names, gamename, preset, given.hyperparameters == "varied", settings)


def asked_models(
    given: Namespace, wanted: type | None = None, refusal: str = ""
) -> tuple[list[Model], str]:
    """The proxies that the arguments name and their task.

    UserError where neither a proxy nor ``--gamename`` says the task, and for a proxy that is not
    ``wanted``.
    """
    models = best_of_each(find_models(given.sources, given.gamename), given.best)
    if not models and given.gamename is None:
        raise UserError(
            f"no proxy after '{given.out}', which is the CSV to write, and no --gamename: name "
            "proxies, or the task of the real baseline"
        )
    for model in models:
        if wanted is not None and not isinstance(model.proxy, wanted):
            raise UserError(f"'{model.name}' is {refusal}")
    return models, models[0].proxy.gamename if models else str(given.gamename)
