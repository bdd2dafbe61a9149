"""How fast agents learn with learned rewards, and without: the paper's Figures 5 and 9 (arXiv 2202.02790).

Nothing ends the training early. After every training episode one greedy episode of the real task is played; its return holds for
the steps of that training episode, and the last one on to the end of the axis.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from lightning_rl.agents.tabular import TabularConfig
from lightning_rl.core.arguments import count
from lightning_rl.core.console import counting
from lightning_rl.envs.proxies import RewardProxy
from lightning_rl.lab.protocols import agents
from lightning_rl.lab.protocols.agents import AgentKind, Job, Stacks, train_stacks
from lightning_rl.lab.protocols.models import REAL, real_task
from lightning_rl.lab.protocols.results import open_results, print_summary
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
    place = torch.stack([torch.searchsorted(end, grid) for end in ends])  # the episode under way at that step
    last = (r.episodes - 1).clamp(min=0).unsqueeze(1)
    return r.scores.gather(1, torch.minimum(place, last))


def by_curiosity(kind: AgentKind, jobs: Sequence[Job], run_seed: int) -> list[tuple[AgentKind, list[Job]]]:
    """``AgentKind.by_config`` of plain and of curious agents: these differ in the agent, not in the reward.

    Curious ones have a bonus for what is new to them: counts for tables, an intrinsic curiosity module for networks.
    """
    eager = [job for job in jobs if job.model.trained_on == CURIOUS]
    plain = kind.by_config([job for job in jobs if job.model.trained_on != CURIOUS], run_seed)
    if not eager:
        return plain
    curious = kind.with_config(curiosity="count" if isinstance(kind.config, TabularConfig) else "icm")
    return plain + curious.by_config(eager, run_seed)


def train(kind: AgentKind, grid: Tensor, run_seed: int, jobs: list[Job]) -> Stacks:
    """Trains the jobs and reads their curves."""
    every, steps = int(grid[0]), int(grid[-1])
    for variant, members in by_curiosity(kind, jobs, run_seed):
        loop_for = functools.partial(variant.loop, steps=steps, tests=1, judged=True)
        for stack, _, trained in train_stacks(members, loop_for, "reward curves", run_seed):
            found = curves(trained, grid).tolist()
            yield stack, [{"every": every, "area": sum(curve) / len(curve), "returns": curve} for curve in found]


def baselines(gamename: str, plain: int, curious: int) -> list[Job]:
    """Agents with the task's own reward, and curious ones with it."""
    real = real_task(gamename)
    eager = real._replace(name=CURIOUS, trained_on=CURIOUS)
    return [Job(real, number) for number in range(plain)] + [Job(eager, number) for number in range(curious)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``reward-curves``."""
    agents.add_model_arguments(parser, "one row per agent")
    parser.add_argument("--agents", nargs="+", metavar="NAME",
                        help="default: QL SARSA for cliff, TD3 PPO for continuous actions, else DDQN DuelingDDQN")  # fmt: skip
    agents.add_agent_arguments(parser, "fixed")
    parser.add_argument("--steps", type=count, metavar="N", help="training steps (default 50000; cliff 5000, as in the paper)")
    parser.add_argument("--points", type=count, default=100, metavar="N", help="values of each curve (default 100)")
    parser.add_argument("--real", type=count, default=0, metavar="N", help="also N agents with the task's own reward")
    parser.add_argument("--curious", type=count, default=0, metavar="N", help="also N agents with it and a bonus for novelty")


def run(arguments: argparse.Namespace) -> None:
    """Fills OUT.csv and prints a summary."""
    refusal = "a synthetic environment; learning curves on the task are for reward networks"
    models, gamename = agents.asked_models(arguments, RewardProxy, refusal)
    names = arguments.agents or AGENTS.get(gamename, DISCRETE)
    kinds = agents.asked_kinds(names, gamename, "reward-curves", arguments)
    every = max((arguments.steps or STEPS.get(gamename, 50_000)) // arguments.points, 1)
    grid = torch.arange(1, arguments.points + 1) * every
    jobs = [Job(model, number) for model in models for number in range(arguments.count)]
    jobs += baselines(gamename, arguments.real, arguments.curious)
    with open_results(Path(arguments.out), COLUMNS, KEY, arguments.force) as results:
        with counting(len(jobs) * len(kinds), "agents") as advance:
            for kind in kinds:
                train_kind = functools.partial(train, kind, grid, arguments.seed)
                agents.add_agent_rows(results, kind, kind.protocol(f"{int(grid[-1])} steps"), jobs, train_kind, advance)
        print_summary(results.rows, ("area",))
