"""How fast agents learn with learned rewards, and without (arXiv 2202.02790, Figures 5 and 9).

Agents train for as many steps as are asked for, in as many episodes as it takes. After every
training episode one greedy episode of the real task is played; its return holds for the steps of
that training episode, and the last one on to the end of the axis.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence

import torch
from torch import Tensor

from lightning_rl.agents.tabular import TabularConfig
from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import Proxy
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.lab.protocols import agents
from lightning_rl.lab.protocols.agents import AGENT_KEY, AgentKind, Job, jobs_on, train_stacks
from lightning_rl.lab.protocols.models import REAL, real_task
from lightning_rl.methods.inner_loop import InnerLoop, Trained

COLUMNS = ("gamename", *AGENT_KEY, "every", "area", "returns")
STEPS = {"cliff": 5_000, "mountaincar-continuous": 250_000, "halfcheetah": 500_000}
"""The paper's, by the family of the task."""
CURIOUS = f"{REAL}, curious agents"


def curves(trained: Trained, grid: Tensor, worst: float | None) -> Tensor:
    """Real test returns ``[N, K]`` at the training steps ``grid`` ``[K]``.

    Agents that finished no episode have the return of the test at the end throughout, those that
    failed ``worst``; None: nan.
    """
    r = trained.results
    ends = r.lengths.cumsum(1)
    # the episode under way at each step
    place = torch.stack([torch.searchsorted(end, grid) for end in ends])
    last = (r.episodes - 1).clamp(min=0).unsqueeze(1)
    found = torch.where(
        r.episodes.unsqueeze(1) > 0,
        r.scores.gather(1, torch.minimum(place, last)),
        trained.test_returns[:, :1],
    )
    failed = trained.test_returns.isnan().any(1, keepdim=True)
    return found.masked_fill(failed, math.nan if worst is None else worst)


def default_agents(spec: EnvSpec) -> tuple[str, str]:
    """The paper's: of the search first, then those that the reward is transferred to."""
    if spec.family == "cliff":
        return "QL", "SARSA"
    return ("TD3", "PPO") if spec.continuous else ("DDQN", "DuelingDDQN")


def by_curiosity(kind: AgentKind, jobs: Sequence[Job], run_seed: int) -> agents.Variants:
    """``AgentKind.by_config`` of plain and of curious agents, which have the same reward.

    Curious ones have a bonus for what is new to them: counts for tables, an intrinsic curiosity
    module for networks.
    """
    eager = [job for job in jobs if job.model.trained_on == CURIOUS]
    plain = kind.by_config([job for job in jobs if job.model.trained_on != CURIOUS], run_seed)
    if not eager:
        return plain
    curious = kind.with_config(
        curiosity="count" if isinstance(kind.config, TabularConfig) else "icm"
    )
    return plain + curious.by_config(eager, run_seed)


def _points(steps: int, most: int) -> int:
    """The largest number of points, up to ``most``, that divides the steps."""
    return next(points for points in range(min(most, steps), 0, -1) if steps % points == 0)


def run(given: Namespace) -> None:
    """Fills OUT.csv and prints a summary.

    UserError for points that do not divide the steps.
    """
    refusal = "no reward network; learning curves on the task are for reward networks"
    models, gamename = agents.asked_models(given, RewardProxy, refusal)
    spec = env_spec(gamename)
    steps = given.steps or STEPS.get(spec.family, 50_000)
    kinds = agents.asked_kinds(
        given.agents or default_agents(spec), gamename, "reward-curves", given, steps
    )
    every, over = divmod(steps, given.points)
    if over:
        fitting = _points(steps, given.points)
        raise UserError(
            f"--points {given.points}: {steps} steps cannot be divided so; use --points {fitting}"
        )
    grid = torch.arange(1, given.points + 1) * every
    real = real_task(gamename)
    jobs = jobs_on(models, given.count) + jobs_on([real], given.real)
    jobs += jobs_on([real._replace(name=CURIOUS, trained_on=CURIOUS)], given.curious)

    def loop_for(kind: AgentKind, proxy: Proxy) -> InnerLoop:
        return kind.for_steps(steps, proxy, tests=1, judge_episodes=1)

    def train(kind: AgentKind, left: list[Job]) -> agents.Stacks:
        for stack, loop, trained in train_stacks(
            by_curiosity(kind, left, given.seed), loop_for, "reward curves", given.seed
        ):
            found = curves(trained, grid, loop.proxy.spec.min_return).tolist()
            yield stack, [{"area": sum(curve) / len(curve), "returns": curve} for curve in found]

    obtained = ("area", "returns")
    agents.write_agents(
        given, COLUMNS, kinds, jobs, (f"{steps} steps",), train, obtained, ("area",), every=every
    )
