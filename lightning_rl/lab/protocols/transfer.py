"""Fresh agents on trained proxies, tested on the real task: the paper's Figures 3 and 7 (arXiv 2202.02790).

On synthetic environments training ends when the agent's return there no longer changes; on reward networks when one real test
episode after each training episode reaches the solved return on average; on the real task when training returns do.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lightning_rl.core.arguments import count
from lightning_rl.envs.proxies import RewardProxy, SyntheticProxy
from lightning_rl.lab.protocols.agents import (
    Job,
    Judge,
    add_agent_arguments,
    add_model_arguments,
    asked_judges,
    asked_models,
    one_gamename,
    train_stacks,
    with_train_episodes,
    without_rule,
)
from lightning_rl.lab.protocols.models import real_task
from lightning_rl.lab.protocols.progress import Advance, progress
from lightning_rl.lab.protocols.results import Results, open_results
from lightning_rl.lab.protocols.summary import print_summary
from lightning_rl.methods.inner_loop import InnerLoop, Trained

KEY = ("trained_on", "proxy", "agent", "protocol", "number")
COLUMNS = (
    "gamename", *KEY, "return_mean", "train_steps", "episodes", "num_updates", "test_steps", "stopped", "failed", "test_returns",
)  # fmt: skip
AGENTS = ("DDQN", "DuelingDDQN", "TD3-discrete")


def published_rule(judge: Judge, tests: int, proxy: SyntheticProxy | RewardProxy) -> InnerLoop:
    """The stop rules of the paper's evaluation, see above."""
    learned_reward = isinstance(proxy, RewardProxy) and proxy.form != "native"
    rule, longest = "plateau" if isinstance(proxy, SyntheticProxy) else "solved", judge.config.train_episodes * proxy.spec.horizon
    agents = ((judge.name, judge.config),)
    return InnerLoop(
        proxy, agents, judge.varied, rule, "final_return", proxy.spec.solved_return, 0.0, tests, int(learned_reward), longest
    )


def loops(judge: Judge, tests: int, steps: int | None) -> Callable[[SyntheticProxy | RewardProxy], InnerLoop]:
    """How agents train on a proxy: by the published rules, or ``steps`` steps, in as many episodes as it takes."""
    if steps is None:
        return functools.partial(published_rule, judge, tests)
    return functools.partial(without_rule, with_train_episodes(judge, steps), steps=steps, tests=tests, judged=False)


def transfer_rows(protocol: str, judge: Judge, jobs: Sequence[Job], loop: InnerLoop, trained: Trained) -> list[dict[str, Any]]:
    """One row for each agent of a stack."""
    rows = []
    for job, outcome, returns in zip(jobs, loop.outcomes(trained), trained.test_returns.tolist(), strict=True):
        rows.append({
            "gamename": job.model.proxy.gamename, "trained_on": job.model.trained_on, "proxy": job.model.name,
            "agent": judge.name, "protocol": protocol, "number": job.number, "return_mean": outcome.test_return,
            "train_steps": outcome.train_steps, "episodes": outcome.episodes, "num_updates": outcome.num_updates,
            "test_steps": outcome.test_steps, "stopped": outcome.solved, "failed": outcome.failed, "test_returns": returns,
        })  # fmt: skip
    return rows


def evaluate_transfer(
    results: Results, judges: Sequence[Judge], jobs: Sequence[Job], tests: int, steps: int | None, run_seed: int, advance: Advance
) -> None:
    """Fills ``results``. steps: train so many instead of by the stop rule."""
    for judge in judges:
        protocol = judge.words("stop rule" if steps is None else f"{steps} steps", f"{tests} tests")
        about = {"agent": judge.name, "protocol": protocol}

        def done(job: Job, about: Any = about) -> bool:
            return results.has(trained_on=job.model.trained_on, proxy=job.model.name, number=job.number, **about)

        advance(sum(map(done, jobs)), judge.name)
        for own, mine in judge.by_config(jobs, run_seed):
            for stack, loop, trained in train_stacks(mine, loops(own, tests, steps), "transfer", run_seed, done):
                results.add(transfer_rows(protocol, judge, stack, loop, trained))
                advance(len(stack), judge.name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``transfer``."""
    add_model_arguments(parser, "one row per agent")
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), metavar="NAME", help=f"default: {' '.join(AGENTS)}")
    add_agent_arguments(parser, "varied", tests=10)
    parser.add_argument("--steps", type=count, metavar="N", help="train N steps instead of until the paper's stop rule holds")
    parser.add_argument("--real", type=count, default=0, metavar="N", help="also N agents of each kind on the real task itself")


def run(arguments: argparse.Namespace) -> None:
    """The evaluation that the arguments ask for."""
    models = asked_models(arguments)
    gamename = one_gamename(models, arguments)
    judges = asked_judges(arguments.agents, gamename, "transfer", arguments)
    jobs = [Job(model, number) for model in models for number in range(arguments.count)]
    jobs += [Job(real_task(gamename), number) for number in range(arguments.real)]
    with open_results(Path(arguments.out), COLUMNS, KEY, arguments.force) as results:
        with progress(len(jobs) * len(judges), "agents") as advance:
            evaluate_transfer(results, judges, jobs, arguments.tests, arguments.steps, arguments.seed, advance)
        print_summary(results.rows, ("agent", "protocol", "trained_on"), ("return_mean", "train_steps"))
