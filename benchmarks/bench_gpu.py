"""The model-based agents on a GPU: wall time of an environment step of all seeds, with their updates.

Nobody has run it yet, as no GPU was at hand. On a machine with one it writes over results/speed_gpu.md, which shows what is
expected:

    OMP_NUM_THREADS=1 python benchmarks/bench.py --only gpu --out results/speed_gpu.md
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from bench_model_based import MFLOP
from harness import Measure, Table, in_turns, number

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.methods.model_based import StepTraining
from lightning_rl.methods.registry import implementation


def wall(name: str, seeds: int, device: torch.device, steps: int) -> Measure:
    """Seconds of a step of so many seeds, from a GPU that has nothing to do to one that has nothing left to do."""
    cls: Any = implementation(name)
    config = build_config(cls.Config, [*merged_values(name, "procmaze"), ("benchmark", {"learning_starts": 100})])
    method = cls("procmaze", implementation=name, seed=0, num_seeds=seeds, config=vars(config)).to(device)
    training = StepTraining(method.agent).to(device)
    training.run(105)

    def measure() -> float:
        torch.cuda.synchronize()
        started = time.perf_counter()
        training.run(steps)
        torch.cuda.synchronize()
        return (time.perf_counter() - started) / steps

    return measure


def tables(quick: bool) -> Iterator[Table]:
    """Of all agents for 1, 30 and 300 seeds; none on a machine without a GPU."""
    if not torch.cuda.is_available():
        return
    gpu, rows = torch.device("cuda"), []
    for seeds in (1, 2) if quick else (1, 30, 300):
        found = in_turns({name: wall(name, seeds, gpu, 5 if quick else 50) for name in MFLOP}, 2 if quick else 10)
        for name, spread in found.items():
            rate = 1e-6 * MFLOP[name] * seeds / spread.median
            rows.append([name, str(seeds), str(spread.times(1e3)), number(seeds / spread.median), number(rate)])
    memory = torch.cuda.max_memory_allocated() / 2**30
    about = (
        "Wall ms of an environment step of all seeds with their updates, ProcMaze of 4 x 4 cells, on a "
        f"{torch.cuda.get_device_name()}; eager mode, single precision. The matrix products of the updates, in TFLOP/s, say how "
        f"busy it is. Memory: {memory:.1f} GiB."
    )
    yield Table("Model-based agents on a GPU", about, ["", "seeds", "ms a step", "seed-steps a second", "TFLOP/s"], rows)
