"""Speed of our agents, alone and stacked, beside Stable-Baselines3's with the same network, batch and update ratio.

    pip install -e '.[baselines]'
    OMP_NUM_THREADS=1 python benchmarks/bench_baselines.py [DDQN TD3 PPO] [--members 1 48]

A member-step is all that one decision takes: acting, environment, storing, drawing, update, and for PPO its share of the
roll-out's updates. One thread; CPU time, so that other work on the machine slows the clock less; all are measured in turn,
several times over, and the median is shown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import baselines
import torch
from rich.console import Console
from rich.table import Table

from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.registry import implementation
from lightning_rl.run.options import RunOptions, run_config
from lightning_rl.run.runtime import keep_freed_memory

# implementation: gamename, settings, decisions measured at a time
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "DDQN": ("cartpole-v0", {}, 100),
    "TD3": ("pendulum", {"learning_starts": 1, "replay_size": 100_000}, 60),
    "PPO": ("cartpole", {}, 2048),
}

FIRST = {"DDQN": 400, "TD3": 280, "PPO": 0}
"""Decisions before the measurement: past the episodes without learning."""


def config(name: str) -> Any:
    """Members that never end."""
    gamename, settings, _ = CASES[name]
    endless = {**settings, "stop_rule": "none", "train_episodes": 10_000}
    return run_config(RunOptions(name, gamename, settings=endless))


def ours(name: str, members: int) -> Callable[[int], object]:
    """What trains ``members`` for some more decisions."""
    cls: Any = implementation(name)
    method = cls(CASES[name][0], implementation=name, seed=0, num_seeds=members, config=vars(config(name)))
    return method.rollouts().training.run


def theirs(name: str) -> Callable[[int], object]:
    """What trains a model of Stable-Baselines3 for some more decisions."""
    model = baselines.MODELS[name](config(name), env_spec(CASES[name][0]), 0)
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


def measure(name: str, members: list[int], rounds: int) -> list[tuple[str, float]]:
    """(what, seconds for a member-step)."""
    runs = {f"{n} stacked" if n > 1 else "alone": (ours(name, n), n) for n in members}
    runs["Stable-Baselines3"] = (theirs(name), 1)
    spent: dict[str, list[float]] = {key: [] for key in runs}
    steps = CASES[name][2]
    for run, _ in runs.values():
        run(max(steps, FIRST[name]))
    for _ in range(rounds):
        for key, (run, n) in runs.items():
            started = time.process_time()
            run(steps)
            spent[key].append((time.process_time() - started) / steps / n)
    return [(key, statistics.median(seconds)) for key, seconds in spent.items()]


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed beside Stable-Baselines3.")
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--members", type=int, nargs="+", default=[1, 48])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    for name in arguments.names:
        table = Table(title=f"{name}: one member-step, CPU time, one thread")
        for heading in ("", "ms", "member-steps / s", "times Stable-Baselines3"):
            table.add_column(heading, justify="right" if heading else "left")
        rows = measure(name, arguments.members, arguments.rounds)
        for key, seconds in rows:
            table.add_row(key, f"{1e3 * seconds:.3f}", f"{1 / seconds:,.0f}", f"{rows[-1][1] / seconds:.1f}")
        Console().print(table)


if __name__ == "__main__":
    main()
