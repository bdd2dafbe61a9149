"""The model-based agents: one environment step of one seed, with the update that goes with it.

The workload is ProcMaze with 4 x 4 cells and the values of the configs, one update a step, after
learning has started.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness import ANOTHER, Measure, Table, cpu, in_turns, number, products

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.methods.model_based import StepTraining
from lightning_rl.methods.registry import implementation

PUBLISHED = {
    "ER": {1: "4.5", 30: "5.1"},
    "perfect-model": {1: "6.2", 30: "6.1"},
    "simple-model": {1: "16.5", 30: "12.6"},
    "gaussian-latent": {1: "15.4", 30: "14.7"},
    "categorical-latent": {1: "65", 30: "58 to 62"},
}
"""CPU ms of a seed-step of the paper's code (JAX), by number of seeds, on one core of an AMD
EPYC.
"""

MFLOP = {
    "ER": 232,
    "perfect-model": 292,
    "simple-model": 535,
    "gaussian-latent": 560,
    "categorical-latent": 800,
}
"""Of the matrix products of an update: forward, both gradients, roll-outs, target. The first layers
of a categorical latent sum rows of their weights, which is not counted; as dense products they
would be another 1,050.
"""


def seed_step(name: str, seeds: int) -> Measure:
    """CPU seconds of a step of one of so many seeds."""
    cls: Any = implementation(name)
    config = build_config(
        cls.Config, [*merged_values(name, "procmaze"), ("benchmark", {"learning_starts": 100})]
    )
    method = cls("procmaze", implementation=name, seed=0, num_seeds=seeds, config=vars(config))
    training = StepTraining(method.agent)
    training.run(105)
    steps = max(1, (10 if MFLOP[name] < 800 else 4) // seeds)
    return cpu(lambda: training.run(steps), steps * seeds)


def tables(smoke: bool) -> Iterator[Table]:
    """Of all agents, for one seed and for many."""
    rows = []
    for seeds in (1, 2 if smoke else 30):
        measures = {name: seed_step(name, seeds) for name in PUBLISHED}
        found = in_turns({**measures, "product": products(320, 200, 200)}, 2 if smoke else 15)
        for name in measures:
            limit = 1e6 * MFLOP[name] * found["product"].median
            paper = f"{PUBLISHED[name][seeds]} {ANOTHER}" if seeds in PUBLISHED[name] else ""
            ms, over = found[name].times(1e3), found[name].median / limit
            rows.append([name, str(seeds), str(ms), number(1e3 * limit), number(over), paper])
    gflops = 1e-9 / found["product"].median
    about = (
        "CPU ms of a step of one seed with its update, ProcMaze of 4 x 4 cells, one thread. Limit: "
        "the matrix products of "
        f"the update at the rate of products of 320 x 200 by 200 x 200, {gflops:.0f} GFLOP/s here. "
        "The paper's code (JAX) ran on "
        "one core of an AMD EPYC."
    )
    yield Table(
        "Model-based agents",
        about,
        ["", "seeds", "ms", "limit, ms", "times the limit", "the paper's code, ms"],
        rows,
    )
