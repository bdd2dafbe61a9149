"""Fresh agents on trained proxies, tested on the real task: the paper's Figures 3 and 7 (arXiv 2202.02790).

On synthetic environments training ends when the agent's return there no longer changes; on reward networks when one real test
episode after each training episode reaches the solved return on average; on the real task when training returns do.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning_rl.core.arguments import count
from lightning_rl.core.console import counting
from lightning_rl.envs.proxies import RewardProxy, SyntheticProxy
from lightning_rl.lab.protocols import agents
from lightning_rl.lab.protocols.agents import AgentKind, Job, Stacks, train_stacks
from lightning_rl.lab.protocols.models import real_task
from lightning_rl.lab.protocols.results import open_results, print_summary
from lightning_rl.methods.inner_loop import InnerLoop, Trained

KEY = ("trained_on", "proxy", "agent", "protocol", "number")
COLUMNS = (
    "gamename", *KEY, "return_mean", "train_steps", "episodes", "num_updates", "test_steps", "stopped", "failed", "test_returns",
)  # fmt: skip
AGENTS = ("DDQN", "DuelingDDQN", "TD3-discrete")


def published_rule(kind: AgentKind, tests: int, proxy: SyntheticProxy | RewardProxy) -> InnerLoop:
    """The stop rules of the paper's evaluation, see above."""
    learned_reward = isinstance(proxy, RewardProxy) and proxy.form != "native"
    rule, longest = "plateau" if isinstance(proxy, SyntheticProxy) else "solved", kind.config.train_episodes * proxy.spec.horizon
    return InnerLoop(
        proxy=proxy, agents=((kind.name, kind.config),), vary=kind.varied, stop_rule=rule,
        solved_return=proxy.spec.solved_return, test_episodes=tests, judge_episodes=int(learned_reward), max_train_steps=longest,
    )  # fmt: skip


def loops(kind: AgentKind, tests: int, steps: int | None) -> Callable[[SyntheticProxy | RewardProxy], InnerLoop]:
    """How agents train on a proxy: by the published rules, or ``steps`` steps, in as many episodes as it takes."""
    if steps is None:
        return functools.partial(published_rule, kind, tests)
    return functools.partial(kind.with_config(train_episodes=steps).loop, steps=steps, tests=tests, judged=False)


def rule_text(tests: int, steps: int | None) -> tuple[str, str]:
    """How long agents train and how they are tested, for the column ``protocol``."""
    return "stop rule" if steps is None else f"{steps} steps", f"{tests} tests"


def outcome_values(loop: InnerLoop, trained: Trained) -> list[dict[str, Any]]:
    """The columns of each agent of a stack."""
    rows = []
    for outcome, returns in zip(loop.outcomes(trained), trained.test_returns.tolist(), strict=True):
        rows.append({
            "return_mean": outcome.test_return, "train_steps": outcome.train_steps, "episodes": outcome.episodes,
            "num_updates": outcome.num_updates, "test_steps": outcome.test_steps, "stopped": outcome.solved,
            "failed": outcome.failed, "test_returns": returns,
        })  # fmt: skip
    return rows


def train(kind: AgentKind, tests: int, steps: int | None, run_seed: int, jobs: list[Job]) -> Stacks:
    """Trains and tests the jobs."""
    for variant, members in kind.by_config(jobs, run_seed):
        for stack, loop, trained in train_stacks(members, loops(variant, tests, steps), "transfer", run_seed):
            yield stack, outcome_values(loop, trained)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``transfer``."""
    agents.add_model_arguments(parser, "one row per agent")
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), metavar="NAME", help=f"default: {' '.join(AGENTS)}")
    agents.add_agent_arguments(parser, "varied", tests=10)
    agents.add_steps(parser)
    parser.add_argument("--real", type=count, default=0, metavar="N", help="also N agents of each kind on the real task itself")


def run(arguments: argparse.Namespace) -> None:
    """Fills OUT.csv and prints a summary."""
    models, gamename = agents.asked_models(arguments)
    kinds = agents.asked_kinds(arguments.agents, gamename, "transfer", arguments)
    jobs = [Job(model, number) for model in models for number in range(arguments.count)]
    jobs += [Job(real_task(gamename), number) for number in range(arguments.real)]
    how = (arguments.tests, arguments.steps)
    with open_results(Path(arguments.out), COLUMNS, KEY, arguments.force) as results:
        with counting(len(jobs) * len(kinds), "agents") as advance:
            for kind in kinds:
                train_kind = functools.partial(train, kind, *how, arguments.seed)
                agents.add_agent_rows(results, kind, kind.protocol(*rule_text(*how)), jobs, train_kind, advance)
        print_summary(results.rows, ("return_mean", "train_steps"))
