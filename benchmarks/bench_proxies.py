"""A generation of the CartPole synthetic environment: DDQN agents that train on proxies and are
tested on the task.

The settings are those of ``configs/proxy_search.yaml``, the paper's set cartpole_syn_env: 16
mirrored candidates and 16 agents on the unperturbed proxy. Agents train a fixed number of steps,
the paper's typical 6,819 for a good environment, as the number of steps on random ones says nothing
about speed.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator

import torch
from harness import ANOTHER, NOTHING, Measure, Table, in_turns, number
from peer_cases import DDQN, limits, rates

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.methods.proxy_search import SE, SEConfig

STEPS = 6819


def agent_step(population: int, steps: int) -> Measure:
    """CPU seconds of an agent's step, by whole generations: proxy, acting, replay, update, its
    share of the test episodes.
    """
    changes = {
        "population": population,
        "center_agents": population,
        "stop_rule": "none",
        "max_train_steps": steps,
    }
    config = build_config(SEConfig, [*merged_values("SE", "cartpole-v0"), ("benchmark", changes)])
    method, generations = (
        SE("cartpole-v0", seed=0, config=dataclasses.asdict(config)),
        itertools.count(),
    )

    def measure() -> float:
        generation = next(generations)
        proposal, items = method.strategy.ask(generation)
        started = time.process_time()
        outcomes = method.inner_loop(proposal, items)
        seconds = time.process_time() - started
        method.strategy.tell(generation, torch.tensor([outcome.fitness for outcome in outcomes]))
        return seconds / sum(outcome.train_steps for outcome in outcomes)

    return measure


def tables(smoke: bool) -> Iterator[Table]:
    """Of a step and of the generation."""
    population, steps = (2, 400) if smoke else (16, STEPS)
    found = in_turns({"step": agent_step(population, steps), **limits()}, 1 if smoke else 3)
    agents, step, limit = 3 * population, found["step"], DDQN.limit(found)
    whole, over = agents * steps, number(step.median / limit)
    rows = [
        [
            "a step of one agent, ms",
            str(step.times(1e3)),
            NOTHING,
            number(1e3 * limit),
            over,
            f"1.2 to 1.5 {ANOTHER}",
        ],
        [
            f"a generation of {agents} agents, {steps:,} steps each, s",
            str(step.times(whole)),
            "18",
            number(whole * limit),
            over,
            f"about 440 for 48 of 6,819 {ANOTHER}",
        ],
    ]
    about = (
        "CPU time, one thread; a step with all that belongs to it: proxy, acting, replay, update, "
        "test episodes. Limit: the "
        f"matrix products and the tanh of the DDQN updates alone ({rates(found)}). The paper's "
        "code was timed on a core that "
        "had other work."
    )
    header = ["", "here", "goal", "limit", "times the limit", "the paper's code"]
    yield Table("A generation of the CartPole synthetic environment", about, header, rows)
