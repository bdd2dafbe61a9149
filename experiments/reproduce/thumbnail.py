"""A curve so small that it stands in a cell of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.reproduce.claims import Claim
from experiments.reproduce.store import number, read_curves

BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 12
_LEAST = 3  # fewer points are no curve


def thumbnail(root: Path, claim: Claim) -> str:
    """The mean over seeds of the claim's first curve, in bars; empty where it keeps hardly any."""
    if not claim.curves:
        return ""
    path = root / claim.curves_file
    by_step: dict[float, list[float]] = {}
    for row in read_curves(root, claim):
        value = number(row, claim.curves[0], path)
        if math.isfinite(value):
            by_step.setdefault(number(row, "env_steps", path), []).append(value)
    if len(by_step) < _LEAST:
        return ""
    return bars([float(np.mean(by_step[step])) for step in sorted(by_step)])


def bars(values: Sequence[float]) -> str:
    """Values in their order, as means of equal parts, between their least and greatest."""
    if not values:
        return ""
    parts = np.array_split(np.asarray(values), min(_WIDTH, len(values)))
    means = np.array([part.mean() for part in parts])
    height = np.ptp(means)
    if height == 0:
        return BARS[0] * len(means)
    levels = (means - means.min()) / height * (len(BARS) - 1)
    return "".join(BARS[round(level)] for level in levels)
