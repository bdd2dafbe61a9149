import numpy as np
import pytest
from scipy.stats import spearmanr, trim_mean

from lightning_rl.functional.ranks import rank_correlation
from lightning_rl.functional.statistics import (
    interquartile_mean,
    sampling_floor,
    summarise,
)


def test_by_hand():
    stats = summarise([1, 2, 3, 4, 5, 6, 7, 108])
    assert stats == pytest.approx(
        {"mean": 17.0, "sd": 1356.0**0.5, "median": 4.5, "iqm": 4.5, "min": 1.0, "max": 108.0}
    )


def test_iqm_is_the_trimmed_mean_where_quarters_are_whole():
    values = [9.0, -3.0, 4.0, 4.0, 100.0, 2.0, 0.5, 7.0, 1.0, 1.0, 3.0, 5.0]
    assert interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25))


def test_iqm_weighs_values_on_the_cut():
    # five values, the middle half is 1.25 .. 3.75 of five: weights 0.75, 1, 0.75
    assert interquartile_mean([0, 1, 2, 4, 50]) == pytest.approx((0.75 * 1 + 2 + 0.75 * 4) / 2.5)
    assert interquartile_mean([3.0]) == 3.0


def test_what_chance_leaves_of_an_error_is_the_mean_distance_of_a_normal_mean():
    """sqrt(2 / pi) = 0.79788 standard deviations of a mean: of 10 / sqrt(25) = 2, and of 30 /
    sqrt(100) = 3.
    """
    assert sampling_floor([10.0, 30.0], [25, 100]) == pytest.approx(0.79788 * 2.5, rel=1e-5)
    assert sampling_floor([10.0, 20.0], 25) == pytest.approx(0.79788 * 3, rel=1e-5)


def test_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"\[n\]"):
        summarise([])


def test_rank_correlation_is_spearmans_and_says_nothing_of_what_does_not_vary():
    rng = np.random.default_rng(0)
    asked, obtained = np.repeat([-2.0, 0.5, 3.0], 10), rng.integers(0, 12, 30).astype(float)
    assert rank_correlation(asked, obtained) == pytest.approx(spearmanr(asked, obtained).statistic)
    assert rank_correlation(np.arange(5), np.exp(np.arange(5))) == pytest.approx(1.0)
    for x, y in ((np.ones(5), np.arange(5)), (np.arange(5), np.ones(5))):
        assert rank_correlation(x, y) == 0.0
