"""What is compared between runs, by hand: the signs and what a stratum is."""

import numpy as np

from lightning_rl.functional.bootstrap import difference, iqm, mean


def test_the_difference_is_that_of_the_first_less_the_second():
    a, b = np.array([[1.0, 5.0], [3.0, 7.0]]), np.array([[1.0, 2.0], [1.0, 2.0], [4.0, 2.0]])
    assert difference(a, b, axis=0).tolist() == [2 - 2, 6 - 2]
    assert difference(a, b[:2], axis=1).tolist() == [3 - 1.5, 5 - 1.5]


def test_a_mean_weighs_strata_alike_and_an_interquartile_mean_weighs_runs_alike():
    """Strata [0, 0, 0, 0, 0, 0] and [8, 16]: the mean of the means is 6, the middle four of eight runs are 0."""
    few, many = np.array([8.0, 16.0]), np.zeros(6)
    assert float(mean(many, few, axis=0)) == 6
    assert float(iqm(many, few, axis=0)) == 0
