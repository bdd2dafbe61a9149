"""Agents of Stable-Baselines3 with its defaults on trained proxies, tested on the real task: do
proxies train agents that no search has seen?
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
import stable_baselines3
from stable_baselines3.common.base_class import BaseAlgorithm

from experiments.baselines import greedy_episode
from lightning_rl.core.catalogue import BASELINE
from lightning_rl.core.config import parse_settings
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import unknown
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.proxy_env import proxy_env
from lightning_rl.lab.protocols.agents import (
    AgentKind,
    Job,
    Stacks,
    asked_models,
    jobs_on,
    write_agents,
)
from lightning_rl.lab.protocols.models import Model, real_task
from lightning_rl.lab.protocols.transfer import COLUMNS, OBTAINED

PEERS = ("DQN", "PPO", "A2C", "TD3", "SAC")


def kinds_of(names: list[str], given: Namespace) -> list[AgentKind]:
    """Stable-Baselines3's agents, each with its defaults and what ``--set`` says."""
    for name in names:
        if name not in PEERS:
            raise UserError(unknown("agent of Stable-Baselines3", name, PEERS))
    settings = parse_settings(given.settings)
    return [AgentKind(f"{BASELINE}{name}", None, False, settings) for name in names]


def fitting(model: Model) -> list[str]:
    """The agents that can take the actions of a task."""
    return ["PPO", "A2C", "TD3", "SAC"] if model.proxy.spec.continuous else ["DQN", "PPO", "A2C"]


def train(kind: AgentKind, model: Model, steps: int, seed: int) -> BaseAlgorithm:
    """A fresh agent after ``steps`` steps on the proxy; PPO plays whole roll-outs of 2,048."""
    peer = getattr(stable_baselines3, kind.name.removeprefix(BASELINE))
    env = proxy_env(model.proxy, model.params)
    try:
        agent: BaseAlgorithm = peer("MlpPolicy", env, seed=seed, device="cpu", **kind.settings)
    except (TypeError, AssertionError) as error:
        raise UserError(f"{kind.name} refuses this: {' '.join(str(error).split())}") from error
    return agent.learn(steps)


def judge(kind: AgentKind, job: Job, given: Namespace, steps: int) -> dict[str, Any]:
    """The columns of an agent, see ``transfer.COLUMNS``."""
    seed = derive_seed(given.seed, f"peers {kind.name} {job.model.name}", job.number)
    agent = train(kind, job.model, steps, seed % 2**31)
    env = make_env(job.model.proxy.spec)
    seeds = [derive_seed(seed, "peers' tests", k) for k in range(given.tests)]
    returns, lengths = zip(*(greedy_episode(agent, env, each) for each in seeds), strict=True)
    return {
        "return_mean": float(np.mean(returns)),
        "train_steps": agent.num_timesteps,
        "episodes": agent._episode_num,
        "num_updates": agent._n_updates,
        "test_steps": sum(lengths),
        "stopped": False,
        "failed": False,
        "test_returns": returns,
    }


def run(given: Namespace) -> None:
    """Fills OUT.csv and prints a summary."""
    models, gamename = asked_models(given)
    real = real_task(gamename)
    kinds = kinds_of(given.agents or fitting(real), given)
    jobs = jobs_on(models, given.count) + jobs_on([real], given.real)
    for steps in given.steps:

        def judged(kind: AgentKind, left: list[Job], steps: int = steps) -> Stacks:
            for job in left:
                yield [job], [judge(kind, job, given, steps)]

        words = (f"{steps} steps", f"{given.tests} tests")
        summary = ("return_mean", "train_steps")
        write_agents(given, COLUMNS, kinds, jobs, words, judged, OBTAINED, summary)
