"""Stacked agents on a GPU: wall time of an environment step of all seeds, with their updates.

Two minutes, alone on the machine; it writes over results/speed_gpu.md:

    OMP_NUM_THREADS=1 python benchmarks/bench.py --only gpu --out results/speed_gpu.md
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from bench_model_based import MFLOP
from harness import Measure, Table, in_turns, number

from lightning_rl.methods.registry import implementation
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config


class Case(NamedTuple):
    """An agent on one task. first: steps until it learns. settings: of its config."""

    gamename: str
    first: int
    settings: dict[str, Any]


ENDLESS = {"stop_rule": "none", "train_episodes": 10_000}
GRAPHS = " with graphs"
"""Of an agent whose updates are recorded and replayed."""
CASES = {
    **dict.fromkeys(MFLOP, Case("procmaze", 105, {"learning_starts": 100})),
    **{
        name + GRAPHS: Case("procmaze", 105, {"learning_starts": 100, "cuda_graphs": True})
        for name in MFLOP
    },
    "DDQN": Case("cartpole", 400, ENDLESS),
    "DuelingDDQN": Case("cartpole", 400, ENDLESS),
    "TD3": Case("pendulum", 280, {**ENDLESS, "learning_starts": 1, "replay_size": 100_000}),
    "PPO": Case("cartpole", 0, {**ENDLESS, "rollout_steps": 64}),
}
"""Tasks in batched torch. PPO's roll-outs are as long as what is measured, so that it holds one
update.
"""


def wall(name: str, seeds: int, device: torch.device, steps: int) -> Measure:
    """Seconds of a step of so many seeds, from a GPU that has nothing to do to one that has
    nothing left to do.
    """
    case, name = CASES[name], name.removesuffix(GRAPHS)
    cls: Any = implementation(name)
    config = run_config(RunOptions(name, case.gamename, settings=case.settings))
    method = cls(
        case.gamename, implementation=name, seed=0, num_seeds=seeds, config=vars(config)
    ).to(device)
    training = method.rollouts().training.to(device)
    training.run(case.first)

    def measure() -> float:
        torch.cuda.synchronize()
        started = time.perf_counter()
        training.run(steps)
        torch.cuda.synchronize()
        return (time.perf_counter() - started) / steps

    return measure


def tables(quick: bool) -> Iterator[Table]:
    """Of all agents for 1 and 30 seeds; none on a machine without a GPU."""
    if not torch.cuda.is_available():
        return
    gpu, rows = torch.device("cuda"), []
    for seeds in (1, 2) if quick else (1, 30):
        found = in_turns(
            {name: wall(name, seeds, gpu, 5 if quick else 64) for name in CASES}, 2 if quick else 5
        )
        for name, spread in found.items():
            flop = MFLOP.get(name.removesuffix(GRAPHS))
            rate = number(1e-6 * flop * seeds / spread.median) if flop else "–"
            rows.append(
                [
                    name,
                    CASES[name].gamename,
                    str(seeds),
                    str(spread.times(1e3)),
                    number(seeds / spread.median),
                    rate,
                ]
            )
    memory = torch.cuda.max_memory_allocated() / 2**30
    about = (
        "Wall ms of an environment step of all seeds with their updates on a "
        f"{torch.cuda.get_device_name()}, single precision. "
        "With graphs: `cuda_graphs=true`, updates are recorded once and replayed. The matrix "
        "products of the "
        "model-based agents' updates, in TFLOP/s, say how busy it is. Memory of all agents "
        f"together: {memory:.1f} GiB."
    )
    yield Table(
        "Stacked agents on a GPU",
        about,
        ["", "task", "seeds", "ms a step", "seed-steps a second", "TFLOP/s"],
        rows,
    )
