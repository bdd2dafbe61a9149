"""Speed of the whole policy-gradient loop in early training, against the bare simulator on the same cores.

    python benchmarks/bench_policy_gradient.py [--epochs 40] [--set KEY=VALUE ...]

The loop is the one that ``trainer.py`` runs on Beresheet with the assignment's values: batches of 32 episodes, a network of
512 and 256 units, staleness 0. The learning rate is so small that the policy stays as it begins, with episodes of about 90
steps. The simulator alone, under random actions and with resets, is timed before and after; each figure is for the number
of cores beside it. Run it by itself: other work on the cores makes every number wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.core import workers
from lightning_rl.core.config import parse_settings
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.run.options import RunOptions
from lightning_rl.run.train import train_and_report

SETTINGS = {"learning_rate": 1e-9, "eval_interval": 10**6, "checkpoint_interval": 10**6}
SKIP = 3  # first epochs: start of the workers


def simulate(seconds: float) -> tuple[float, float]:
    """(episodes, steps) per second of the bare simulator under random actions."""
    env = make_env(env_spec("beresheet"))
    actions = iter(np.random.default_rng(0).integers(0, 4, 10_000_000).tolist())
    env.reset(seed=os.getpid())
    episodes, steps, started = 0, 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        _, _, terminated, truncated, _ = env.step(next(actions))
        steps += 1
        if terminated or truncated:
            env.reset()
            episodes += 1
    elapsed = time.perf_counter() - started
    return episodes / elapsed, steps / elapsed


def simulator_speed(cores: int, seconds: float = 4.0) -> tuple[float, float]:
    """(episodes, steps) per second of one bare simulator per core, together."""
    with multiprocessing.Pool(cores) as pool:
        each = pool.map(simulate, [seconds] * cores, chunksize=1)
    return sum(e for e, _ in each), sum(s for _, s in each)


def loop_speed(implementation: str, num_workers: int, settings: dict[str, Any]) -> tuple[float, float]:
    """(episodes, environment steps) per second from the time stamps of a run's log."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(implementation, "beresheet", num_workers=num_workers, logdir=Path(folder), settings=settings)
        train_and_report(options)
        events = EventAccumulator(str(options.run_dir / "logger" / "version_0"))
        events.Reload()
        points = events.Scalars("time/episodes")[SKIP:]
    elapsed = points[-1].wall_time - points[0].wall_time
    return (points[-1].value - points[0].value) / elapsed, (points[-1].step - points[0].step) / elapsed


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed of the policy-gradient loop against the bare simulator.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    settings = {**SETTINGS, "max_epochs": arguments.epochs, **parse_settings(arguments.settings)}
    cores = workers.cores()
    rows = [(f"bare simulator on {n} of the cores", *simulator_speed(n)) for n in range(1, min(cores, 2) + 1)]
    for implementation in ("REINFORCE-combined", "AAC"):
        for num_workers in range(min(cores, 2) + 1):
            rows.append((f"{implementation}, num_workers {num_workers}", *loop_speed(implementation, num_workers, settings)))
    rows.append(("bare simulator on 1, again", *simulator_speed(1)))
    table = Table(title="Policy gradients on Beresheet, untrained policy")
    for heading in ("", "episodes / s", "env steps / s"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, episodes, steps in rows:
        table.add_row(name, f"{episodes:,.0f}", f"{steps:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
