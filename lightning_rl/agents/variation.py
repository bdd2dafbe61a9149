"""Hyper-parameters that differ from member to member."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightning_rl.core.seeding import generator


@dataclass(frozen=True)
class Variation:
    """One value per member. Members of one stack have one depth."""

    learning_rates: tuple[float, ...]
    batch_sizes: tuple[int, ...]
    widths: tuple[int, ...]
    depths: tuple[int, ...]

    @property
    def hidden(self) -> tuple[int, ...]:
        """The smallest hidden layers that hold every member."""
        if len(set(self.depths)) > 1:
            raise ValueError(f"members of one stack need one depth, got {self.depths}; group them by depth")
        return (max(self.widths),) * self.depths[0]


def vary_agents(cfg: Any, seeds: Sequence[int]) -> Variation | None:
    """Hyper-parameters around those of an agent's config, drawn for each seed; None for tables, which have no network."""
    if not hasattr(cfg, "hidden"):
        return None
    return vary(cfg.learning_rate, cfg.batch_size or 1, cfg.hidden[0], len(cfg.hidden), seeds)


def vary(learning_rate: float, batch_size: int, width: int, depth: int, seeds: Sequence[int]) -> Variation:
    """Draws for each seed as the synthetic-environments paper does.

    Learning rate log-uniform in [x / 3, 3 x], batch size and width log-uniform integers in [int(x / 3), int(3 x)], depth
    uniform in {depth - 1, depth, depth + 1}, at least 1.
    """
    rows = []
    for seed in seeds:
        rng = generator(seed, "variation")
        rate = learning_rate * 3 ** rng.uniform(-1, 1)
        batch, units = (_log_uniform_integer(x, rng.random()) for x in (batch_size, width))
        rows.append((float(rate), batch, units, max(depth + int(rng.integers(-1, 2)), 1)))
    rates, batches, widths, depths = zip(*rows, strict=True)
    return Variation(rates, batches, widths, depths)


def _log_uniform_integer(centre: int, uniform: float) -> int:
    low, high = max(int(centre / 3), 1), int(3 * centre)
    return min(int(math.exp(math.log(low) + uniform * (math.log(high + 1) - math.log(low)))), high)
