import itertools

import numpy as np
import pytest
from helpers import ROOT

from experiments.intervals import (
    difference_chance,
    discoveries,
    prediction_interval,
    share_interval,
)
from lightning_rl.functional.intervals import (
    difference_interval,
    improvement_interval,
    mean_interval,
    mean_of_intervals,
    probability_of_improvement,
)


def test_student_by_hand():
    # sample variance 7, quantile of two degrees of freedom 4.30265
    mean, low, high = mean_interval([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    half = 4.30265 * (7 / 3) ** 0.5
    np.testing.assert_allclose([mean, low, high], [[3, 5], [3 - half, 5], [3 + half, 5]], rtol=1e-5)


def test_a_further_run_by_hand():
    """Of 1, 2 and 6: mean 3, variance 7, quantile of two degrees of freedom 9.92484."""
    half = 9.92484 * (7 * (1 + 1 / 3)) ** 0.5
    assert prediction_interval([1.0, 2.0, 6.0], 0.99) == pytest.approx(
        (3 - half, 3 + half), rel=1e-5
    )


def test_one_run_says_nothing_of_seeds():
    for _, low, high in (
        mean_interval([3.0]),
        difference_interval([1.0, 2.0], [3.0]),
        improvement_interval([1.0], [3.0, 4.0]),
    ):
        assert np.isnan([low, high]).all()
    assert mean_interval([[1.0, 2.0]])[1].shape == (2,)


def test_welch_by_hand():
    """Squared errors 1/3 and 1, so 4/3; degrees of freedom (4/3)^2 / (1/9/2 + 1/1) = 1.6842,
    quantile 5.1762.
    """
    gap, low, high = difference_interval([1.0, 2.0, 3.0], [4.0, 6.0])
    assert (gap, low, high) == pytest.approx(
        (-3, -3 - 5.1762 * (4 / 3) ** 0.5, -3 + 5.1762 * (4 / 3) ** 0.5), rel=2e-4
    )
    assert difference_interval([5.0, 5.0], [3.0, 3.0]) == (2, 2, 2)


def test_the_chance_of_a_difference_is_five_percent_where_its_interval_ends_at_zero():
    """Means 0 and h of two runs each, squared errors 1 each: two degrees of freedom, quantile
    4.30265.
    """
    edge = 4.30265 * 2**0.5
    assert difference_chance([-1.0, 1.0], [edge - 1, edge + 1]) == pytest.approx(0.05, rel=1e-5)
    assert difference_chance([edge - 1, edge + 1], [-1.0, 1.0]) == pytest.approx(0.05, rel=1e-5)
    assert difference_chance([5.0, 5.0], [5.0, 5.0]) == 1.0
    assert difference_chance([5.0, 5.0], [3.0, 3.0]) == 0.0
    assert np.isnan(difference_chance([5.0], [3.0, 4.0]))


def test_discoveries_by_hand():
    """Of five, limits 0.01 to 0.05: the third is above its 0.03, but the fourth is at most 0.04,
    and takes it along.
    """
    assert discoveries([0.04, 0.9, 0.032, 0.001, 0.02]).tolist() == [True, False, True, True, True]
    assert discoveries([0.041, 0.9, 0.032, 0.001, 0.02]).tolist() == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert discoveries([0.03, float("nan"), 0.04]).tolist() == [False, False, False]
    assert discoveries([0.03, 0.04]).tolist() == [True, True]


def test_share_by_hand():
    """No or all successes of n: the far end is where the chance of that is 2.5 %."""
    share, low, high = share_interval([[0, 1, 1], [0, 1, 0], [0, 1, 0]])
    edge = 1 - 0.025 ** (1 / 3)
    np.testing.assert_allclose(share, [0, 1, 1 / 3])
    np.testing.assert_allclose(low, [0, 1 - edge, 0.0084], atol=1e-4)
    np.testing.assert_allclose(high, [edge, 1, 0.9057], atol=1e-4)


def test_improvement_by_hand():
    a, b = np.array([1.0, 5.0, 5.0]), np.array([5.0, 0.0])
    # pairs: 1-5 lost, 1-0 won, twice (5-5 tie, 5-0 won): 3 wins and 2 ties of 6
    assert probability_of_improvement(a, b) == pytest.approx(4 / 6)
    chance, low, high = improvement_interval([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert (chance, high) == (1, 1)
    assert 0.3 < low < 0.4  # three wins of three leave much open
    turned = improvement_interval([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert turned == pytest.approx((0, 0, 1 - low))
    # three and two runs: the end is so many standard errors from 1, the quantile of three degrees
    # of freedom
    _, low, _ = improvement_interval([4.0, 5.0, 6.0], [1.0, 2.0])
    variance = low * (1 - low) * (1 + 1.5 * ((1 - low) / (2 - low) + low / (1 + low))) / 6
    assert 1 - low == pytest.approx(3.18245 * variance**0.5, abs=2e-4)


def test_a_mean_of_intervals_adds_distances_as_squares():
    found = mean_of_intervals(
        [tuple(map(np.asarray, ends)) for ends in ((1.0, -2.0, 13.0), (3.0, -1.0, 8.0))]
    )
    assert found == (2, 2 - 5 / 2, 2 + 13 / 2)


_DRAWS = {  # (draw, true mean)
    "normal": (lambda g, size: g.normal(size=size), 0.0),
    "mildly skewed (gamma, skewness 1)": (lambda g, size: -g.gamma(4.0, size=size), -4.0),
    "one seed in five fails, by four standard deviations": (
        lambda g, size: g.normal(size=size) - 4 * (g.random(size) < 0.2),
        -0.8,
    ),
    "very skewed (exponential, skewness 2)": (lambda g, size: g.exponential(size=size), 1.0),
    "all alike, but one seed in five fails": (lambda g, size: -1.0 * (g.random(size) < 0.2), -0.2),
    "all alike, but one seed in ten fails": (lambda g, size: -1.0 * (g.random(size) < 0.1), -0.1),
}
_PROMISED = list(_DRAWS)[:2]  # at least 93 %


def bootstrap_interval(draws):
    """The percentile interval that is used elsewhere."""
    n = len(draws)
    generator = np.random.default_rng(0)
    means = [draws[generator.integers(n, size=n)].mean(axis=0) for _ in range(400)]
    return np.quantile(means, [0.025, 0.975], axis=0)


def coverage_on_the_page():
    """What docs/evidence.md says: per cent, for 3, 5 and 10 seeds, by the kind of scores."""
    lines = (ROOT / "docs" / "evidence.md").read_text().splitlines()
    start = lines.index("| scores of seeds | 3 seeds | 5 seeds | 10 seeds |") + 2
    rows = [line.strip("| ").split(" | ") for line in itertools.takewhile(str.strip, lines[start:])]
    return {name: [float(cell) for cell in cells] for name, *cells in rows}


@pytest.mark.parametrize("name", list(_DRAWS))
def test_the_interval_of_a_mean_covers_what_the_page_says(name):
    draw, truth = _DRAWS[name]
    for n, stated in zip((3, 5, 10), coverage_on_the_page()[name], strict=True):
        _, low, high = mean_interval(draw(np.random.default_rng(n), (n, 20_000)))
        covered = 100 * ((low <= truth) & (truth <= high)).mean()
        assert covered == pytest.approx(stated, abs=0.5)
        assert covered >= 93 or name not in _PROMISED


def test_a_bootstrap_covers_less_as_the_page_says():
    *_, (name, stated) = coverage_on_the_page().items()
    assert name == "normal, by a percentile bootstrap instead"
    for n, expected in zip((3, 5, 10), stated, strict=True):
        low, high = bootstrap_interval(np.random.default_rng(n).normal(size=(n, 2000)))
        assert 100 * ((low <= 0) & (high >= 0)).mean() == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_other_intervals_cover_what_they_promise(n):
    generator = np.random.default_rng(n)
    pairs = [(generator.normal(1, 1, n), generator.normal(0, 2, n)) for _ in range(1000)]
    chance = 0.6726  # normal distribution at 1 / sqrt(5)
    for interval, truth in ((difference_interval, 1.0), (improvement_interval, chance)):
        found = [interval(a, b) for a, b in pairs]
        assert np.mean([low <= truth <= high for _, low, high in found]) >= 0.93
    _, low, high = share_interval(generator.random((n, 2000)) < 0.8)
    assert ((low <= 0.8) & (high >= 0.8)).mean() >= 0.95
