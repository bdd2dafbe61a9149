"""Seconds per generation of the CartPole synthetic environment, and inner updates per second and core.

    OMP_NUM_THREADS=1 python benchmarks/bench_bilevel.py [--generations 1] [--population 16]

The settings are those of ``configs/proxy_search.yaml``, set cartpole_syn_env of the paper: 16 mirrored candidates
and 16 agents on the unperturbed proxy, 48 DDQN agents with batches of 199 and 57 tanh units. The paper's code needs about 440 CPU
seconds for a generation and 1.2 to 1.5 ms for an inner step (measured beside it on one loaded core). Agents here train a fixed
``--steps`` steps, the paper's typical 6,819 for a good environment, as the number of steps of random ones says nothing
about speed. One thread; CPU time of the process, so that other work on the machine slows it less than the clock on the wall.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import torch

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.methods.proxy_search import SE, SEConfig

REFERENCE_SECONDS = 440.0


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Speed of a generation of the CartPole SE.")
    parser.add_argument("--generations", type=int, default=1)
    parser.add_argument("--population", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6819)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    changes = {
        "population": arguments.population, "center_agents": arguments.population, "stop_rule": "none",
        "max_train_steps": arguments.steps,
    }  # fmt: skip
    config = build_config(SEConfig, [*merged_values("SE", "cartpole-v0"), ("benchmark", changes)])
    method = SE("cartpole-v0", seed=0, config=dataclasses.asdict(config))
    for number in range(arguments.generations):
        proposal, items = method.strategy.ask(number)
        started, wall = time.process_time(), time.perf_counter()
        outcomes = method.inner_loop(proposal, items)
        cpu, wall = time.process_time() - started, time.perf_counter() - wall
        steps, updates = (sum(getattr(o, key) for o in outcomes) for key in ("train_steps", "num_updates"))
        method.strategy.tell(number, torch.tensor([o.fitness for o in outcomes]))
        print(
            f"generation {number}: {len(items)} agents, {steps:,} steps, {updates:,} updates: "
            f"{cpu:.1f} s CPU ({wall:.1f} s wall); "
            f"{updates / cpu:,.0f} updates per second and core, {1e3 * cpu / steps:.3f} ms per step with all that belongs to it; "
            f"{REFERENCE_SECONDS / cpu:.1f} times less CPU than {REFERENCE_SECONDS:.0f} s"
        )


if __name__ == "__main__":
    main()
