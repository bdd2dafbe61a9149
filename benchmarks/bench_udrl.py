"""Speed of the whole UDRL training loop against the bare simulator, in one run on the same cores.

    python benchmarks/bench_udrl.py [--epochs 30] [--set KEY=VALUE ...]

The loop is the one that ``trainer.py`` runs, with logging and checkpoints, on the published workload: 20 episodes
and 100 updates of 768 an epoch. Every episode has exactly 500 steps, as in the long middle of training: a flight that
ends sooner is followed by another. The simulator alone, with resets, is timed before and after on all cores.
Run it by itself: other work on the cores makes every number wrong.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.core import workers
from lightning_rl.core.config import parse_settings
from lightning_rl.core.gamenames import register_env
from lightning_rl.run.options import RunOptions
from lightning_rl.run.train import train_and_report

GAMENAME = "lunarlander-chained"
PUBLISHED = {"num_episodes_per_iter": 20, "num_updates_per_iter": 100, "batch_size": 768, "replay_size": 500,
             "eval_interval": 10**6}  # fmt: skip
SKIP = 3  # first epochs: warm-up, start of the workers


class ChainedFlights(gymnasium.Wrapper[Any, Any, Any, Any]):
    """LunarLander where a new flight follows the last until the time limit."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(gymnasium.make("LunarLander-v3", disable_env_checker=True, **kwargs).unwrapped)

    def step(self, action: Any) -> Any:
        obs, reward, terminated, _, info = self.env.step(action)
        if terminated:
            obs, _ = self.env.reset()
        return obs, reward, False, False, info


register_env(GAMENAME, ChainedFlights, horizon=500, max_return=320.0)


def simulate(seconds: float) -> float:
    """Steps per second of the bare simulator under random actions, resets included."""
    env = ChainedFlights()
    actions = np.random.default_rng(0).integers(0, 4, 10_000).tolist()
    env.reset(seed=os.getpid())
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for action in actions:
            env.step(action)
        steps += len(actions)
    return steps / (time.perf_counter() - started)


def simulator_speed(cores: int, seconds: float = 5.0) -> float:
    """Steps per second of one bare simulator per core, together."""
    with multiprocessing.Pool(cores) as pool:
        return sum(pool.map(simulate, [seconds] * cores, chunksize=1))


def loop_speed(num_workers: int, epochs: int, settings: dict[str, Any]) -> tuple[float, float]:
    """(median seconds per epoch, environment steps per second) from the time stamps of a run's log."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions("UDRL", GAMENAME, num_workers=num_workers, logdir=Path(folder), settings=settings)
        train_and_report(options)
        events = EventAccumulator(str(options.run_dir / "logger" / "version_0"))
        events.Reload()
        points = events.Scalars("train/policy_loss")[SKIP:]
    seconds = [after.wall_time - before.wall_time for before, after in itertools.pairwise(points)]
    total = points[-1].wall_time - points[0].wall_time
    return statistics.median(seconds), (points[-1].step - points[0].step) / total


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed of the UDRL loop against the bare simulator.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    cores = workers.cores()
    settings = {**PUBLISHED, "max_epochs": arguments.epochs, **parse_settings(arguments.settings)}
    before = simulator_speed(cores)
    rows = []
    for num_workers in range(min(cores, 2) + 1):
        for overlap in (True, False):
            rows.append((num_workers, overlap, *loop_speed(num_workers, arguments.epochs, {**settings, "overlap": overlap})))
    after = simulator_speed(cores)
    bare = (before + after) / 2
    table = Table(title=f"UDRL, {settings['num_episodes_per_iter']} episodes of 500 steps, {cores} cores")
    for heading in ("num_workers", "overlap", "s / epoch", "env steps / s", "ratio to bare"):
        table.add_column(heading, justify="right")
    for num_workers, overlap, seconds, rate in rows:
        table.add_row(str(num_workers), str(overlap), f"{seconds:.3f}", f"{rate:,.0f}", f"{rate / bare:.2f}")
    console = Console()
    console.print(table)
    console.print(f"bare simulator on {cores} cores: {before:,.0f} steps/s before, {after:,.0f} after")


if __name__ == "__main__":
    main()
