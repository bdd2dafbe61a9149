"""Sets of vector returns, by hand."""

import numpy as np
import pytest
from helpers.toys import deep_sea_front

from lightning_rl.functional.pareto import (
    crowding_distance,
    hypervolume,
    non_dominated,
)

STAIRS = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])


def test_what_is_worse_in_one_and_better_in_none_is_dominated():
    points = np.array([[1.0, 3.0], [1.0, 2.0], [2.0, 2.0], [2.0, 2.0], [0.0, 0.0]])
    assert non_dominated(points).tolist() == [True, False, True, True, False]


def test_hypervolume_of_stairs_and_of_a_box():
    # columns of width 1 and heights 3, 2, 1
    assert hypervolume(STAIRS, np.zeros(2)) == 6
    # without the first row, which is not above the reference
    assert hypervolume(STAIRS, np.array([1.0, 0.0])) == 3
    assert hypervolume(STAIRS, np.array([3.0, 3.0])) == 0
    # two boxes of 2 x 1 x 3 and 1 x 2 x 3, which share 1 x 1 x 3; the third lies within them
    boxes = np.array([[2.0, 1.0, 3.0], [1.0, 2.0, 3.0], [1.0, 1.0, 2.0]])
    assert hypervolume(boxes, np.zeros(3)) == 6 + 6 - 3
    assert hypervolume(np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 2.0]]), np.zeros(3)) == 2 + 2 - 1


@pytest.mark.parametrize(("front", "volume"), [("convex", 994.3), ("concave", 4255)])
def test_hypervolume_of_the_deep_sea(front, volume):
    points = deep_sea_front(front)
    assert hypervolume(points[::-1], np.array([0.0, -50.0])) == pytest.approx(volume)
    assert non_dominated(points).all()


def test_crowding_is_the_distance_between_neighbours_and_1_at_an_end():
    # ranges of 4 and 2: the neighbours of the second are 2/4 + 1/2 apart, of the third 3/4 + 1.5/2
    points = np.array([[0.0, 2.0], [1.0, 1.5], [2.0, 1.0], [4.0, 0.0]])
    expected = [2.0, 2 / 4 + 1 / 2, 3 / 4 + 1.5 / 2, 2.0]
    assert crowding_distance(points) == pytest.approx(expected)
