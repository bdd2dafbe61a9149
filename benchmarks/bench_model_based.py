"""Speed of the model-based agents: CPU time of one environment step of one seed, with the update that goes with it.

    OMP_NUM_THREADS=1 python benchmarks/bench_model_based.py [--agents ER ...] [--seeds 1 30] [--rounds 20]

The workload is ProcMaze with 4 x 4 cells and the values of the configs, one update a step, after learning has started. Times
are CPU times of the process (one thread), so that other work on the machine slows them less than it would slow the clock on
the wall; it does slow them. The least and the median of several rounds are shown. Reference: the paper's code (JAX) on one core
of an AMD EPYC. The rate of a matrix product of the agents' size says how fast this machine is at the moment.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.methods.model_based import ModelBased, StepTraining
from lightning_rl.methods.registry import implementation
from lightning_rl.run.runtime import keep_freed_memory

REFERENCE = {
    "ER": {1: "4.5", 30: "5.1"},
    "perfect-model": {1: "6.2", 30: "6.1"},
    "simple-model": {1: "16.5", 30: "12.6"},
    "gaussian-latent": {1: "15.4", 30: "14.7"},
    "categorical-latent": {1: "65", 30: "58 - 62"},
}
"""ms of CPU time per seed-step of the paper's code, by number of seeds."""

MFLOP = {"ER": 232, "perfect-model": 292, "simple-model": 535, "gaussian-latent": 560, "categorical-latent": 1850}
"""Of a dense update: forward, both gradients, roll-outs, target."""


def make_training(name: str, seeds: int, gamename: str = "procmaze") -> StepTraining:
    """Seeds that are about to learn."""
    cls: Any = implementation(name)
    changes = ("benchmark", {"learning_starts": 100})
    config = build_config(cls.Config, [*merged_values(name, gamename), changes])
    method = cls(gamename, implementation=name, seed=0, num_seeds=seeds, config=vars(config))
    assert isinstance(method, ModelBased)
    training = StepTraining(method.agent)
    training.run(105)
    return training


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time that ``work`` takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


def gflops() -> float:
    """Rate of a product of 320 x 200 by 200 x 200."""
    a, b = torch.randn(320, 200), torch.randn(200, 200)

    def products() -> None:
        for _ in range(50):
            a @ b

    return 50 * 2 * 320 * 200 * 200 / min(cpu_seconds(products) for _ in range(5)) / 1e9


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed of the model-based agents.")
    parser.add_argument("--agents", nargs="+", default=list(REFERENCE))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 30])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--gamename", default="procmaze")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as the command line does
    cases = [(a, n) for a in arguments.agents for n in arguments.seeds]
    spent: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    rates = [gflops()]
    for name, seeds in cases:
        training = make_training(name, seeds, arguments.gamename)
        steps = max(1, (10 if MFLOP[name] < 1000 else 4) // seeds)  # short, to find a quiet moment of a busy machine
        for _ in range(arguments.rounds):
            taken = cpu_seconds(lambda t=training, k=steps: t.run(k))  # type: ignore[misc]
            spent[name, seeds].append(1e3 * taken / steps / seeds)
        rates.append(gflops())
    table = Table(title=f"{arguments.gamename}: CPU ms per seed-step, one thread")
    for heading in ("agent", "seeds", "least", "median", "reference"):
        table.add_column(heading, justify="left" if heading == "agent" else "right")
    for (name, seeds), values in spent.items():
        row = (str(seeds), f"{min(values):.2f}", f"{statistics.median(values):.2f}", REFERENCE[name].get(seeds, ""))
        table.add_row(name, *row)
    console = Console()
    console.print(table)
    console.print(f"320 x 200 x 200 products: {min(rates):.0f} to {max(rates):.0f} GFLOP/s; torch {torch.__version__}")


if __name__ == "__main__":
    main()
