"""How fast stacked agents learn: the tuned sets of the synthetic-environments paper, against its
acceptance values.

    OMP_NUM_THREADS=1 python benchmarks/learn_members.py cliff|cartpole-v0|acrobot|pendulum
    [--members N]

Time limits are stored as terminations, as the reference did, but for Pendulum. Seeds are 0 .. N-1;
equal seeds give equal numbers on equal machines.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import torch

from lightning_rl.agents.base import Agent
from lightning_rl.agents.judged_training import JudgedTraining, mean_test_return
from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.agents.training import MemberTraining, solved
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.spec import env_spec


def make(name: str, gamename: str, seeds: list[int]) -> tuple[Agent, Any]:
    """Members with the values of the config, which are the tuned ones, and that config."""
    kind = AGENTS[name]
    cfg = build_config(kind.config, merged_values(name, gamename))
    return kind.agent(cfg, env_spec(gamename), seeds), cfg


def cliff(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """Q-learning, judged by one greedy test after each episode."""
    agent, cfg = make("QL", "cliff", seeds)
    rule = functools.partial(solved, window=10, threshold=-20.0)
    score = mean_test_return(functools.partial(FuncBatch, FUNC_ENVS["cliff"](), 50), 1)
    envs = FuncBatch(FUNC_ENVS["cliff"](), 50, seeds)
    envs.cap_ends = True
    return agent, JudgedTraining(agent, envs, 100, cfg.gamma, stop=rule, score=score)


def cartpole(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """DDQN, set cartpole_syn_env."""
    agent, cfg = make("DDQN", "cartpole-v0", seeds)
    rule = functools.partial(solved, window=10, threshold=195.0)
    envs = FuncBatch(FUNC_ENVS["cartpole-v0"](), 200, seeds)
    envs.cap_ends = True
    return agent, MemberTraining(agent, envs, 1000, cfg.gamma, 1, rule)


def acrobot(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """DDQN, set acrobot_syn_env."""
    agent, cfg = make("DDQN", "acrobot", seeds)
    rule = functools.partial(solved, window=10, threshold=-100.0)
    envs = FuncBatch(FUNC_ENVS["acrobot"](), 500, seeds)
    envs.cap_ends = True
    return agent, MemberTraining(agent, envs, 1000, cfg.gamma, 20, rule)


def pendulum(seeds: list[int]) -> tuple[Agent, MemberTraining]:
    """TD3, set pendulum: 70 episodes."""
    agent, cfg = make("TD3", "pendulum", seeds)
    return agent, MemberTraining(
        agent, FuncBatch(FUNC_ENVS["pendulum"](), 200, seeds), 70, cfg.gamma, 20
    )


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
    train, horizon, count = CASES[arguments.gamename]
    count = arguments.members or count
    agent, training = train(list(range(count)))
    started = time.process_time()
    training.run()
    print(f"trained in {time.process_time() - started:.1f} s of CPU time")
    r = training.results
    print(f"stopped by the rule: {int(r.stopped.sum())} of {count}")
    print(f"episodes:  {r.episodes.tolist()}")
    print(f"env steps: {r.env_steps.tolist()}, mean {r.env_steps.double().mean():.0f}")
    started = time.process_time()
    tests = FuncBatch(
        FUNC_ENVS[arguments.gamename](), horizon, [1000 + n for n in range(10 * count)]
    )
    returns, _ = evaluate_agents(agent, tests, 10)
    print(f"mean of ten tests: {[round(value, 1) for value in returns.mean(1).tolist()]}")
    print(f"tested in {time.process_time() - started:.2f} s of CPU time")


if __name__ == "__main__":
    main()
