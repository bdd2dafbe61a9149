"""Which members of drawn sizes train together."""

import itertools
import random

import pytest
from helpers.members import varied

from lightning_rl.agents.variation import Variation, cheapest_runs


def cost(runs, sizes, depth, ends, step):
    """By the definition: each run costs a step, and for each member the products of the largest."""
    total = 0
    for run in runs:
        width, samples = max(sizes[n][0] for n in run), max(sizes[n][1] for n in run)
        total += step + len(run) * samples * width * (ends + (depth - 1) * width)
    return total


def all_cuts(count):
    """Every way to cut a sequence into runs."""
    for size in range(count):
        for places in itertools.combinations(range(1, count), size):
            yield [range(a, b) for a, b in itertools.pairwise((0, *places, count))]


@pytest.mark.parametrize("step", [0, 1000, 30_000, 10**9])
def test_no_other_cut_is_cheaper(step):
    rng = random.Random(step)
    for depth in (1, 2, 3):
        sizes = [(rng.randint(1, 30), rng.randint(1, 20)) for _ in range(7)]
        runs = cheapest_runs(sizes, depth, 6, step)
        assert [n for run in runs for n in run] == list(range(7))
        least = min(cost(cut, sizes, depth, 6, step) for cut in all_cuts(7))
        assert cost(runs, sizes, depth, 6, step) == least
    assert len(cheapest_runs(sizes, 1, 6, 10**9)) == 1


def test_stacks_by_hand():
    """A step costs 10 million products: of two hidden layers, 300 units with 200 samples are
    worth a stack of their own.
    """
    drawn = Variation(
        (1e-3,) * 6, (200, 8, 200, 8, 200, 8), (300, 8, 300, 9, 8, 300), (2, 2, 2, 2, 2, 1)
    )
    batch = {"ends": 6, "passes": None, "one_width": False}
    assert drawn.stacks(**batch, device="cpu") == [[5], [1, 3, 4], [0, 2]]
    assert drawn.stacks(**batch, device="cuda") == [
        [5],
        [1, 3, 4, 0, 2],
    ]  # where products cost next to nothing
    assert drawn.stacks(ends=6, passes=None, one_width=True, device="cpu") == [
        [5],
        [1, 4],
        [3],
        [0, 2],
    ]
    assert drawn.stacks(ends=6, passes=10, one_width=False, device="cpu") == [[5], [1, 4, 3, 0, 2]]


def test_every_member_is_in_one_stack_and_stacks_have_one_depth():
    drawn = varied(2, range(40))
    stacks = drawn.stacks(6, None, False, "cpu")
    assert sorted(n for stack in stacks for n in stack) == list(range(40))
    assert all(len({drawn.depths[n] for n in stack}) == 1 for stack in stacks)
    assert 3 < len(stacks) < 30
