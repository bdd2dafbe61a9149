"""What the benchmarks share: timing in turns, medians with their spread, the machine's own limits,
tables.

A family of benchmarks is a file ``bench_<name>.py`` with a function ``tables(smoke: bool) ->
Iterator[Table]``; ``bench.py`` finds it by its name and runs it in a process of its own, with one
thread. ``smoke`` asks only whether it runs: seconds.

What is compared is measured in turns, in one process, on one machine: ``in_turns``. Beside a number
stands its limit, the time
of the part that cannot be left out: matrix products at the rate that large ones reach here, the
simulator alone.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

Measure = Callable[[], float]
"""Does some work; the seconds that one unit of it took."""

ANOTHER = "(another machine)"
"""Goes into the cell of every figure that was not measured here."""

NOTHING = "–"
"""Goes into the cell of a goal that nobody has set."""


@dataclass(frozen=True)
class Spread:
    """The median of several measurements, and their quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, median, high = (
            statistics.quantiles(values, n=4, method="inclusive")
            if len(values) > 1
            else [values[0]] * 3
        )
        return cls(median, low, high)

    def times(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def per_second(self) -> Spread:
        """Of seconds for a unit: units in a second."""
        return Spread(1 / self.median, 1 / self.high, 1 / self.low)

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.low)} – {number(self.high)})"


def number(value: float) -> str:
    """Three digits, thousands in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Table:
    """A table of results/speed.md. about: what was measured, and what its limits are."""

    title: str
    about: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"## {self.title}\n\n{self.about}\n\n{table}\n"


def in_turns(measures: Mapping[str, Measure], rounds: int) -> dict[str, Spread]:
    """The spread of each measure: all of them one after the other, ``rounds`` times over, after
    a round that does not count.
    """
    values: dict[str, list[float]] = {name: [] for name in measures}
    for turn in range(rounds + 1):
        for name, measure in measures.items():
            seconds = measure()
            if turn:
                values[name].append(seconds)
    return {name: Spread.of(each) for name, each in values.items()}


def cpu(work: Callable[[], object], units: float = 1) -> Measure:
    """CPU seconds of this process for each of the ``units`` that ``work`` does: other processes
    hardly disturb them.
    """

    def measure() -> float:
        started = time.process_time()
        work()
        return (time.process_time() - started) / units

    return measure


def products(rows: int = 1024, inner: int = 1024, columns: int = 1024) -> Measure:
    """CPU seconds for a floating-point operation of such a matrix product."""
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    flops = 2 * rows * inner * columns
    repeats = -(-(2 << 30) // flops)

    def work() -> None:
        for _ in range(repeats):
            a @ b

    return cpu(work, repeats * flops)


def tanhs() -> Measure:
    """CPU seconds for a tanh of a large tensor, by way of the faster sigmoid."""
    x = torch.randn(1 << 18)

    def work() -> None:
        for _ in range(20):
            x.sigmoid()

    return cpu(work, 20 * len(x))


def copies() -> Measure:
    """CPU seconds for a byte that is read or written, in a tensor far larger than the caches."""
    source, target = torch.ones(1 << 25), torch.empty(1 << 25)
    return cpu(lambda: target.copy_(source), 2 * 4 * len(source))


def mlp_size(sizes: Sequence[int]) -> int:
    """Parameters of a network with layers ``sizes``, inputs and outputs included."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(sizes))


def mlp_flops(sizes: Sequence[int], batch: int, forwards: int = 0, backwards: int = 0) -> int:
    """Floating-point operations of the matrix products of a network with layers ``sizes``, inputs
    and outputs included.

    A backward pass is that of all weights, and of all inputs but the first layer's.
    """
    layers = [inputs * outputs for inputs, outputs in itertools.pairwise(sizes)]
    return 2 * batch * (forwards * sum(layers) + backwards * (2 * sum(layers) - layers[0]))
