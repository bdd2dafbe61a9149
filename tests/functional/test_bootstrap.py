import numpy as np
import pytest

from lightning_rl.functional.bootstrap import above, bootstrap_interval, difference, iqm, mean, probability_of_improvement


def test_interval_of_two_runs_by_hand():
    # four equally likely draws of two runs: (a a) (a b) (b a) (b b)
    low, high = bootstrap_interval([[0.0, 10.0]], mean)
    assert (low, high) == (0.0, 10.0)
    low, high = bootstrap_interval([[0.0, 10.0]], mean, confidence=0.6)
    assert (low, high) == (0.0, 10.0)
    low, high = bootstrap_interval([[0.0, 10.0]], mean, confidence=0.2)  # inside the middle half all draws give 5
    assert (low, high) == (5.0, 5.0)


def test_interval_of_a_normal_mean_is_the_textbook_one():
    x = np.random.default_rng(3).normal(size=400)
    low, high = bootstrap_interval([x], mean)
    half = 1.96 * x.std() / 20
    assert low == pytest.approx(x.mean() - half, abs=0.02)
    assert high == pytest.approx(x.mean() + half, abs=0.02)


def test_whole_curves_are_drawn():
    curves = np.array([[0.0, 10.0, 5.0], [2.0, 8.0, 5.0], [4.0, 6.0, 5.0]])
    low, high = bootstrap_interval([curves], mean)
    assert low.shape == (3,)
    np.testing.assert_allclose(low + high[[1, 0, 2]], [10.0, 10.0, 10.0])  # the second is 10 less the first, in every draw
    assert low[2] == high[2] == 5.0


def test_strata_are_drawn_apart():
    """Runs of one task never stand in for those of another: with constant tasks nothing varies."""
    low, high = bootstrap_interval([[1.0, 1.0], [100.0, 100.0, 100.0]], mean)
    assert low == high == 50.5
    low, high = bootstrap_interval([[1.0, 1.0], [100.0, 100.0]], iqm)
    assert low == high


def test_one_run_says_nothing_of_seeds():
    low, high = bootstrap_interval([[[1.0, 2.0]]], mean)
    assert low.shape == (2,)
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert np.isnan(bootstrap_interval([[1.0, 2.0], [3.0]], difference)[0])


def test_equal_seeds_give_equal_intervals():
    values = [1.0, 4.0, 2.0, 8.0]
    assert bootstrap_interval([values], iqm) == bootstrap_interval([values], iqm)
    assert bootstrap_interval([values], iqm, resamples=9) != bootstrap_interval([values], iqm, resamples=9, seed=1)


def test_improvement_and_profile_by_hand():
    a, b = np.array([1.0, 5.0, 5.0]), np.array([5.0, 0.0])
    # pairs: 1-5 lost, 1-0 won, twice (5-5 tie, 5-0 won): 3 wins and 2 ties of 6
    assert probability_of_improvement(a, b, axis=0) == pytest.approx(4 / 6)
    assert probability_of_improvement(np.stack([a, -a], 1), np.stack([b, -b], 1), axis=0).tolist() == pytest.approx(
        [4 / 6, 2 / 6]
    )
    assert above([1.0, 3.0], [0.0, 1.0, 2.0]).tolist() == [[1, 0, 0], [1, 1, 1]]
