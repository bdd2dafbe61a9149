"""Which seeds are evidence."""

from __future__ import annotations

import re

from lightning_rl.core.limits import SEED, SEEDS, shorten

FIRST_SEED = 100
"""Of evidence. Below it, seeds are for tuning: a number on seeds that its settings were chosen
on says too much.
"""


def seed_list(text: str) -> list[int]:
    """The seeds of ``first-last``; ValueError for those that are no evidence."""
    match = re.fullmatch(r"(\d{1,10})-(\d{1,10})", text)
    if match is None:
        raise ValueError(f"seeds: '{shorten(text)}' is no range; write 100-109")
    first, last = int(match[1]), int(match[2])
    if first < FIRST_SEED:
        raise ValueError(
            f"seeds: {text} begins below {FIRST_SEED}; these are for tuning, evidence takes "
            f"{FIRST_SEED} and up"
        )
    if not first <= last <= min(SEED, first + SEEDS - 1):
        raise ValueError(f"seeds: {text} is not a range of 1 to {SEEDS} seeds up to {SEED:,}")
    return list(range(first, last + 1))
