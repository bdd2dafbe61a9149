"""Hyper-parameters that differ from member to member."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.seeding import generator

_STEP, _STEP_ELSEWHERE = 10_000_000, 1_000_000_000
"""Fixed cost of a training step of a stack, in multiply-adds of a forward pass: measured on one
core of a CPU (a third of it to three times as much does as well); on other devices a guess, by
which products cost next to nothing.
"""


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
        return (max(self.widths),) * self.depths[0]

    def stacks(
        self, ends: int, passes: int | None, one_width: bool, device: str
    ) -> list[list[int]]:
        """Which members train in one stack so that all take the least time.

        A stack is padded to its widest and largest batch.

        Args:
            ends: numbers that enter and leave a network.
            passes: how often a member learns from each of its steps; None: it learns from a batch
                at each.
            one_width: a stack has members of one width only.
            device: the type of where they train.
        """
        samples = self.batch_sizes if passes is None else (passes,) * len(self.widths)

        def work(n: int) -> int:
            return self.widths[n] ** 2 * samples[n]

        def shape(n: int) -> tuple[int, int]:
            return self.depths[n], self.widths[n] if one_width else 0

        stacks: list[list[int]] = []
        step = _STEP if device == "cpu" else _STEP_ELSEWHERE
        ordered = sorted(range(len(self.widths)), key=lambda n: (shape(n), work(n)))
        for (depth, _), members in itertools.groupby(ordered, shape):
            group = list(members)
            runs = cheapest_runs([(self.widths[n], samples[n]) for n in group], depth, ends, step)
            stacks += [[group[place] for place in run] for run in runs]
        return stacks


def cheapest_runs(
    sizes: Sequence[tuple[int, int]], depth: int, ends: int, step: int
) -> list[range]:
    """Cuts ``sizes`` into runs that cost the least together.

    A size is (width, samples per step) of a member.

    A run costs ``step``, and for each of its members the products of one with the largest width and
    the most samples.
    """
    best, cuts = [0], [0]  # cost of the first n members, and where their last run begins
    for stop in range(1, len(sizes) + 1):
        options, width, samples = [], 0, 0
        for start in reversed(range(stop)):
            width = max(width, sizes[start][0])
            samples = max(samples, sizes[start][1])
            products = samples * width * (ends + (depth - 1) * width)
            options.append((best[start] + step + (stop - start) * products, start))
        cost, start = min(options)
        best.append(cost)
        cuts.append(start)
    runs, stop = [], len(sizes)
    while stop:
        runs.append(range(cuts[stop], stop))
        stop = cuts[stop]
    return runs[::-1]


def check_variable(cfg: Any) -> None:
    """UserError for an agent's config that ``vary`` cannot draw around.

    All hidden layers get one width, and tables have none.
    """
    if not hasattr(cfg, "hidden"):
        raise UserError(
            "key 'vary': what is drawn is of networks, and an agent that learns a table has none; "
            "leave it out"
        )
    hidden = cfg.hidden
    if len(set(hidden)) != 1:
        raise UserError(
            f"hidden {list(hidden)}: agents that vary draw one width for all their layers; give "
            "each the same, e.g. "
            f"hidden={[max(hidden, default=64)] * max(len(hidden), 1)}, or do not vary them"
        )


def vary_agents(cfg: Any, seeds: Sequence[int]) -> Variation:
    """Hyper-parameters around those of an agent's config, drawn for each seed.

    The config passes ``check_variable``. As in the synthetic-environments paper: learning rate
    log-uniform in [x / 3, 3 x], batch size and width log-uniform integers in [int(x / 3), int(3
    x)], depth uniform in {depth - 1, depth, depth + 1}, at least 1. PPO does not use its batch
    size: its minibatches are its config's, as they divide a roll-out.
    """
    rows = []
    for seed in seeds:
        rng = generator(seed, "variation")
        rate = float(cfg.learning_rate * 3 ** rng.uniform(-1, 1))
        batch = _log_uniform_integer(cfg.batch_size or 1, rng.random())
        width = _log_uniform_integer(cfg.hidden[0], rng.random())
        depth = max(len(cfg.hidden) + int(rng.integers(-1, 2)), 1)
        rows.append((rate, batch, width, depth))
    rates, batches, widths, depths = zip(*rows, strict=True)
    return Variation(rates, batches, widths, depths)


def _log_uniform_integer(centre: int, uniform: float) -> int:
    low, high = max(int(centre / 3), 1), int(3 * centre)
    return min(int(math.exp(math.log(low) + uniform * (math.log(high + 1) - math.log(low)))), high)
