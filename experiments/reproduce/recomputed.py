"""Values of a claim once more, from what is kept of its runs: curves and means are thinned, so
not all of them can be.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.reproduce.claims import Claim
from experiments.reproduce.reading import statistic
from experiments.reproduce.store import (
    Row,
    kept_path,
    number,
    read_curves,
    read_kept_rows,
    read_runs,
)

_DIGITS = 1e-3  # numbers are kept in four digits and more


def lost_seeds(root: Path, claim: Claim) -> list[str]:
    """The seeds whose curves or means are kept, and give another value than that which was read
    from the run.
    """
    if claim.read.tag is None and claim.read.keep is None:
        return []
    kept = read_curves(root, claim) if claim.read.tag else read_kept_rows(root, claim)
    where, path = claim.read.where, kept_path(root, claim) or root / claim.curves_file
    rows = [
        row
        for row in kept
        if all(row.get(name, wanted) == wanted for name, wanted in where.items())
    ]
    lost = []
    for run in read_runs(root, claim):
        value = _value(claim, [row for row in rows if row["seed"] == run["seed"]], path)
        if not math.isclose(value, number(run, "value", path), rel_tol=_DIGITS):
            lost.append(run["seed"])
    return lost


def _value(claim: Claim, rows: Sequence[Row], path: Path) -> float:
    """What is read, of the rows of one seed."""
    read = claim.read
    if read.keep == "agents":
        return statistics.fmean(number(row, "return_mean", path) for row in rows)
    if read.keep == "means":
        (row,) = rows
        curve = np.array([float(cell) for cell in row["returns"].split()])
        every = number(row, "every", path)
    else:
        curve = np.array([number(row, str(read.tag), path) for row in rows])
        every = 1.0
    return statistic(read, every * np.arange(1, len(curve) + 1), curve)
