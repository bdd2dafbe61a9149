"""Beside a claim's error of obedience: how much of it chance alone would leave, and the command
that was missed by most.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from experiments.reproduce.claims import Claim
from experiments.reproduce.store import number, read_curves
from lightning_rl.functional.statistics import sampling_floor


@dataclass(frozen=True)
class Sweeps:
    """floor: in the unit of the claim, as its value; the others are of the worst command: its
    seed and returns.
    """

    floor: float
    seed: float
    asked: float
    obtained: float

    @property
    def error(self) -> float:
        """How far the worst is off."""
        return abs(self.obtained - self.asked)

    @property
    def text(self) -> str:
        """For a cell of a table."""
        return (
            f"chance alone: {self.floor:,.{1 if self.floor >= 10 else 2}f}; worst: seed "
            f"{self.seed:.0f} asked for "
            f"{self.asked:,.1f} obtains {self.obtained:,.1f}"
        )


def read_sweeps(root: Path, claim: Claim) -> Sweeps | None:
    """What the rows of the sweeps of all seeds say, of claims that keep them."""
    if "obtained_sd" not in claim.read.rows:
        return None
    path = root / claim.curves_file
    names = ("seed", "commanded", "obtained_mean", "obtained_sd", "episodes")
    by_seed: dict[float, list[list[float]]] = {}
    for row in read_curves(root, claim):
        seed, *numbers = (number(row, name, path) for name in names)
        by_seed.setdefault(seed, []).append(numbers)
    if not by_seed:
        return None
    floors = []
    for rows in by_seed.values():
        asked, _, sd, episodes = zip(*rows, strict=True)
        unit = max(asked) - min(asked) if claim.read.key == "error_share" else 1.0
        floors.append(sampling_floor(sd, episodes) / unit)
    every = [
        (abs(obtained - asked), seed, asked, obtained)
        for seed, rows in by_seed.items()
        for asked, obtained, *_ in rows
    ]
    return Sweeps(statistics.fmean(floors), *max(every)[1:])
