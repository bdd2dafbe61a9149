"""PCN of MORL-Baselines beside ours, at equal steps; writes results/pcn_peers.csv row by row.

    pip install morl-baselines mo-gymnasium
    OMP_NUM_THREADS=1 WANDB_MODE=disabled python benchmarks/pcn.py

CPU seconds of the training alone: neither side evaluates or writes. Hypervolumes are of greedy
episodes, one at each command that a side holds for best, from the same reference.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import lightning_rl
from lightning_rl.functional.pareto import hypervolume, non_dominated
from lightning_rl.lab.front import play_front

OUT = Path(__file__).resolve().parents[1] / "results" / "pcn_peers.csv"


class Case(NamedTuple):
    """A task of MO-Gymnasium; gamename: of ours, reference: of hypervolumes. The rest is theirs:
    factors of commands, the highest returns, and how many episodes are kept.
    """

    name: str
    gamename: str
    steps: int
    reference: list[float]
    scaling: list[float]
    max_return: list[float]
    buffer: int


CASES = (
    # factors: of the authors' code
    Case(
        "deep-sea-treasure-v0",
        "deep-sea-treasure",
        40_000,
        [0.0, -50.0],
        [0.1, 0.1, 0.01],
        [23.7, -1.0],
        100,
    ),
    Case(
        "deep-sea-treasure-concave-v0",
        "deep-sea-treasure-concave",
        40_000,
        [0.0, -50.0],
        [0.1, 0.1, 0.01],
        [124.0, -1.0],
        100,
    ),
    # the example in MORL-Baselines
    Case(
        "minecart-deterministic-v0",
        "mo_gymnasium:minecart-deterministic-v0",
        200_000,
        [0.0, 0.0, -200.0],
        [1.0, 1.0, 0.1, 0.1],
        [1.5, 1.5, 0.0],
        50,
    ),
)


def theirs(case: Case, seed: int) -> tuple[float, float, int]:
    """CPU seconds, hypervolume, and how many returns of its front differ."""
    from morl_baselines.multi_policy.pcn.pcn import PCN

    class Undisturbed(PCN):
        """Does not evaluate in training."""

        def save(self, filename: str = "", save_dir: str = "") -> None:
            pass

        def evaluate(self, env: Any, max_return: Any, n: int = 10) -> Any:
            return [], [], []

    env = gymnasium.make(f"mo_gymnasium:{case.name}", disable_env_checker=True)
    env.reset(seed=seed)
    env.action_space.seed(seed)
    agent = Undisturbed(env, np.array(case.scaling), log=False, seed=seed, device="cpu")
    most, reference = np.array(case.max_return, np.float32), np.array(case.reference)
    begin = time.process_time()
    agent.train(case.steps, env, reference, max_return=most, max_buffer_size=case.buffer)
    seconds = time.process_time() - begin
    obtained = np.array(PCN.evaluate(agent, env, most, n=case.buffer)[0], np.float64)
    return seconds, hypervolume(obtained, reference), _different(obtained)


def ours(case: Case, seed: int) -> tuple[float, float, int]:
    """The same with the settings that ship."""
    given: Any = {"max_env_steps": case.steps, "eval_interval": 10**6, "reference": case.reference}
    given |= {"num_workers": 0, "logger": False, "checkpoint": False}
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        run = lightning_rl.train("PCN", case.gamename, seed=seed, logdir=folder, **given)
        seconds = time.process_time() - begin
    method: Any = run.method
    report = play_front(method, 1, 0)
    rows = [[row[name] for name in report["objectives"]] for row in report["rows"]]
    return seconds, report["hypervolume"], _different(np.array(rows))


def _different(obtained: np.ndarray[Any, Any]) -> int:
    return len(np.unique(obtained[non_dominated(obtained)].round(4), axis=0))


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102])
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ("side", "env", "env_steps", "seed", "cpu_seconds", "hypervolume", "front_size")
        writer.writerow(names)
        for seed in given.seeds:
            for case in CASES:
                for side in (ours, theirs):
                    seconds, volume, count = side(case, seed)
                    about = (side.__name__, case.name, case.steps, seed)
                    writer.writerow((*about, f"{seconds:.1f}", f"{volume:.6g}", count))
                    file.flush()


if __name__ == "__main__":
    main()
