"""In how many generations synthetic environments of a grid world are solved, with the values of ``configs/SE.yaml``.

    OMP_NUM_THREADS=1 python benchmarks/evolve_rooms.py OUT.csv [--gamename emptyroom22] [--runs 20]

A run is solved in the first generation whose 16 agents on the unperturbed proxy reach the solved return on average. A run that is
not solved in max_epochs generations counts as that many.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import statistics
import time
from pathlib import Path

import torch

from lightning_rl.config import build_config, merged_values
from lightning_rl.methods.bilevel import SE
from lightning_rl.methods.bilevel_configs import SEConfig


def evolve(gamename: str, seed: int) -> tuple[int, bool, float]:
    """(generations, solved, CPU seconds) of one run."""
    config = build_config(SEConfig, merged_values("SE", gamename))
    method = SE({"implementation": "SE", "gamename": gamename, "seed": seed, "config": dataclasses.asdict(config)})
    optimiser, started = method.strategy.optimiser(), time.process_time()
    for number in range(config.max_epochs):
        proposal, items = method.strategy.ask(number)
        outcomes = method.inner_loop(proposal, items)
        method.strategy.tell(number, torch.tensor([outcome.score for outcome in outcomes]))
        if method.solved([outcome for item, outcome in zip(items, outcomes, strict=True) if item.sign == 0]):
            return number + 1, True, time.process_time() - started
        optimiser.step()
    return config.max_epochs, False, time.process_time() - started


def main() -> None:
    """Writes one row per run and prints a summary."""
    parser = argparse.ArgumentParser(description="Synthetic environments of grid worlds.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--gamename", default="emptyroom22")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with arguments.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("gamename", "seed", "generations", "solved", "cpu_seconds"))
        for seed in range(arguments.runs):
            generations, solved, seconds = evolve(arguments.gamename, seed)
            rows.append((generations, solved, seconds))
            writer.writerow((arguments.gamename, seed, generations, solved, round(seconds, 1)))
            file.flush()
    share = sum(solved for _, solved, _ in rows) / len(rows)
    median, seconds = (statistics.median(row[i] for row in rows) for i in (0, 2))
    print(f"{arguments.gamename}: {share:.0%} of {len(rows)} runs solved, median {median} generations, {seconds:.1f} s of CPU")


if __name__ == "__main__":
    main()
