"""How fast agents learn with learned rewards, and without: the paper's Figures 5 and 9 (arXiv 2202.02790).

Nothing ends the training early. After every training episode one greedy episode of the real task is played; its return holds for
the steps of that training episode, and the last one on to the end of the axis.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.arguments import count
from lightning_rl.core.types import UserError
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.lab.protocols.agents import (
    Job,
    Judge,
    add_agent_arguments,
    add_model_arguments,
    asked_judges,
    asked_models,
    one_gamename,
    train_stacks,
    without_rule,
)
from lightning_rl.lab.protocols.models import REAL, Model, real_task
from lightning_rl.lab.protocols.progress import Advance, progress
from lightning_rl.lab.protocols.results import Results, open_results
from lightning_rl.lab.protocols.summary import print_summary
from lightning_rl.methods.agent_configs import TabularConfig
from lightning_rl.methods.inner_loop import Trained

KEY = ("trained_on", "proxy", "agent", "protocol", "number")
COLUMNS = ("gamename", *KEY, "every", "area", "returns")
AGENTS = {"cliff": ("QL", "SARSA"), "mountaincar-continuous": ("TD3", "PPO"), "halfcheetah": ("TD3", "PPO")}
"""The paper's: of the search first, then those that the reward is transferred to."""
DISCRETE = ("DDQN", "DuelingDDQN")
STEPS = {"cliff": 5_000, "mountaincar-continuous": 250_000, "halfcheetah": 500_000}
CURIOUS = f"{REAL}, curious agents"


def curves(trained: Trained, grid: Tensor) -> Tensor:
    """Real test returns ``[N, K]`` at the training steps ``grid`` ``[K]``."""
    r = trained.results
    ends = r.lengths.cumsum(1)
    place = torch.stack([torch.searchsorted(own, grid) for own in ends])  # the episode under way at that step
    last = (r.episodes - 1).clamp(min=0).unsqueeze(1)
    return r.scores.gather(1, torch.minimum(place, last))


def curious(judge: Judge) -> Judge:
    """The same agents with a bonus for what is new to them: counts for tables, an intrinsic curiosity module for networks."""
    kind = "count" if isinstance(judge.config, TabularConfig) else "icm"
    return dataclasses.replace(judge, config=dataclasses.replace(judge.config, curiosity=kind))


def by_curiosity(judge: Judge, jobs: Sequence[Job], run_seed: int) -> list[tuple[Judge, list[Job]]]:
    """``Judge.by_config`` of plain and of curious agents: these differ in the agent, not in the reward."""
    eager = [job for job in jobs if job.model.trained_on == CURIOUS]
    plain = judge.by_config([job for job in jobs if job.model.trained_on != CURIOUS], run_seed)
    return plain + (curious(judge).by_config(eager, run_seed) if eager else [])


def evaluate_curves(
    results: Results, judges: Sequence[Judge], jobs: Sequence[Job], grid: Tensor, run_seed: int, advance: Advance
) -> None:
    """Fills ``results`` with a curve for each agent."""
    for judge in judges:
        protocol = judge.words(f"{int(grid[-1])} steps")
        about = {"agent": judge.name, "protocol": protocol}

        def done(job: Job, about: Any = about) -> bool:
            return results.has(trained_on=job.model.trained_on, proxy=job.model.name, number=job.number, **about)

        advance(sum(map(done, jobs)), judge.name)
        for own, mine in by_curiosity(judge, jobs, run_seed):
            loop_for = functools.partial(without_rule, own, steps=int(grid[-1]), tests=1, judged=True)
            for stack, _, trained in train_stacks(mine, loop_for, "reward curves", run_seed, done):
                results.add([
                    {
                        "gamename": job.model.proxy.gamename, "trained_on": job.model.trained_on, "proxy": job.model.name,
                        **about, "number": job.number, "every": int(grid[0]), "area": sum(curve) / len(curve), "returns": curve,
                    }
                    for job, curve in zip(stack, curves(trained, grid).tolist(), strict=True)
                ])  # fmt: skip
                advance(len(stack), judge.name)


def baselines(gamename: str, wanted: bool, also_curious: bool) -> list[Model]:
    """The real reward, for plain and for curious agents."""
    real = real_task(gamename)
    return [real] * wanted + [real._replace(name=CURIOUS, trained_on=CURIOUS)] * also_curious


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``reward-curves``."""
    add_model_arguments(parser, "one row per agent")
    parser.add_argument("--agents", nargs="+", metavar="NAME",
                        help="default: QL SARSA for cliff, TD3 PPO for continuous actions, else DDQN DuelingDDQN")  # fmt: skip
    add_agent_arguments(parser, "fixed")
    parser.add_argument("--steps", type=count, metavar="N", help="training steps (default 50000; cliff 5000, as in the paper)")
    parser.add_argument("--points", type=count, default=100, metavar="N", help="values of each curve (default 100)")
    parser.add_argument("--real", type=count, default=0, metavar="N", help="also N agents with the task's own reward")
    parser.add_argument("--curious", type=count, default=0, metavar="N", help="also N agents with it and a bonus for novelty")


def run(arguments: argparse.Namespace) -> None:
    """The evaluation that the arguments ask for."""
    models = asked_models(arguments)
    gamename = one_gamename(models, arguments)
    for model in models:
        if isinstance(model.proxy, SyntheticProxy):
            raise UserError(f"'{model.name}' is a synthetic environment; learning curves on the task are for reward networks")
    names = arguments.agents or AGENTS.get(gamename, DISCRETE)
    judges = asked_judges(names, gamename, "reward-curves", arguments)
    every = max((arguments.steps or STEPS.get(gamename, 50_000)) // arguments.points, 1)
    grid = torch.arange(1, arguments.points + 1) * every
    jobs = [Job(model, number) for model in models for number in range(arguments.count)]
    for model in baselines(gamename, arguments.real > 0, arguments.curious > 0):
        jobs += [Job(model, n) for n in range(arguments.curious if model.trained_on == CURIOUS else arguments.real)]
    with open_results(Path(arguments.out), COLUMNS, KEY, arguments.force) as results:
        with progress(len(jobs) * len(judges), "agents") as advance:
            evaluate_curves(results, judges, jobs, grid, arguments.seed, advance)
        print_summary(results.rows, ("agent", "protocol", "trained_on"), ("area",))
