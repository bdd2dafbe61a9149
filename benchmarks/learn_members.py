"""How fast stacked agents learn: the tuned sets of the synthetic-environments paper, against its acceptance values.

    OMP_NUM_THREADS=1 python benchmarks/learn_members.py cliff|cartpole-v0|acrobot|pendulum [--members N]

Time limits are stored as terminations, as the reference did, but for Pendulum. Seeds are 0 .. N-1; equal seeds give equal
numbers on equal machines.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable

import torch

from lightning_rl.agents.base import Agent
from lightning_rl.agents.dqn import DDQN, DQNSettings
from lightning_rl.agents.tabular import Tabular, TabularSettings
from lightning_rl.agents.td3 import TD3, TD3Settings
from lightning_rl.agents.training import MemberTraining, evaluate_agents, mean_test_return
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.functional.stopping import solved
from lightning_rl.nets.members import MemberMLP


def cliff(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """Q-learning, judged by one greedy test after each episode."""
    agent = Tabular(48, 4, TabularSettings(0.8, 1.0, 0.01, 0.01, 0.0), seeds)
    rule = functools.partial(solved, window=10, threshold=-20.0)
    score = mean_test_return(functools.partial(FuncBatch, FUNC_ENVS["cliff"](), 50), 1)
    envs = FuncBatch(FUNC_ENVS["cliff"](), 50, seeds)
    return agent, MemberTraining(agent, envs, 100, 0.8, stop=rule, score=score, faithful_time_limits=True)


def cartpole(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """DDQN, set cartpole_syn_env."""
    settings = DQNSettings(0.988, 0.000304, 199, 100_000, 0.00848, 0.809, 0.0371, 0.961)
    agent = DDQN(MemberMLP(4, (57,), 2, "tanh"), 4, settings, seeds)
    rule = functools.partial(solved, window=10, threshold=195.0)
    envs = FuncBatch(FUNC_ENVS["cartpole-v0"](), 200, seeds)
    return agent, MemberTraining(agent, envs, 1000, 0.988, 1, rule, faithful_time_limits=True)


def acrobot(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """DDQN, set acrobot_syn_env."""
    settings = DQNSettings(0.991, 0.00222, 149, 100_000, 0.0209, 0.904, 0.0471, 0.899)
    agent = DDQN(MemberMLP(6, (112,), 3, "leakyrelu"), 6, settings, seeds)
    rule = functools.partial(solved, window=10, threshold=-100.0)
    envs = FuncBatch(FUNC_ENVS["acrobot"](), 500, seeds)
    return agent, MemberTraining(agent, envs, 1000, 0.991, 20, rule, faithful_time_limits=True)


def pendulum(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """TD3, set pendulum: 70 episodes."""
    settings = TD3Settings(0.99, 1e-3, 256, 100_000, 0.02, 2, 0.1, 0.1, 0.25, 20)
    agent = TD3(MemberMLP(3, (128, 128), 1), MemberMLP(4, (128, 128), 1), settings, seeds)
    return agent, MemberTraining(agent, FuncBatch(FUNC_ENVS["pendulum"](), 200, seeds), 70, 0.99, 20)


CASES: dict[str, tuple[Callable[[list[int]], tuple[Agent, MemberTraining]], int, int]] = {
    "cliff": (cliff, 50, 40),
    "cartpole-v0": (cartpole, 200, 8),
    "acrobot": (acrobot, 500, 4),
    "pendulum": (pendulum, 200, 2),
}
"""gamename: (what makes it, time limit, members)."""


def main() -> None:
    """Trains, tests each member in ten greedy episodes, and prints both."""
    parser = argparse.ArgumentParser(description="Learning of stacked agents.")
    parser.add_argument("gamename", choices=CASES)
    parser.add_argument("--members", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    make, horizon, count = CASES[arguments.gamename]
    count = arguments.members or count
    agent, training = make(list(range(count)))
    started = time.process_time()
    training.run()
    print(f"trained in {time.process_time() - started:.1f} s of CPU time")
    r = training.results
    print(f"stopped by the rule: {int(r.stopped.sum())} of {count}")
    print(f"episodes:  {r.episodes.tolist()}")
    print(f"env steps: {r.env_steps.tolist()}, mean {r.env_steps.double().mean():.0f}")
    started = time.process_time()
    tests = FuncBatch(FUNC_ENVS[arguments.gamename](), horizon, [1000 + n for n in range(10 * count)])
    returns, _ = evaluate_agents(agent, tests, 10)
    print(f"mean of ten tests: {[round(value, 1) for value in returns.mean(1).tolist()]}")
    print(f"tested in {time.process_time() - started:.2f} s of CPU time")


if __name__ == "__main__":
    main()
