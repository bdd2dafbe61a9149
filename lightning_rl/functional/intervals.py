"""How sure a number is over few runs.

95 % intervals that hold what they promise from three runs on.

A percentile bootstrap of three to five runs, which is common, covers the true mean in 75 to 83 % of
all cases. Student's interval covers it in 95 % for normal scores, in 93 % and more for mildly
skewed ones (skewness up to 1), and in 88 to 90 % for those as skewed as an exponential;
``docs/evidence.md`` has the table, ``tests/functional/test_intervals.py`` makes it. One
run says nothing of others: nan.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Interval = tuple[Floats, Floats, Floats]
"""(value, low, high)."""

CONFIDENCE = 0.95


def mean_interval(values: npt.ArrayLike) -> Interval:
    """Mean over runs of ``values [n, ...]``, with Student's interval."""
    array = np.asarray(values, dtype=np.float64)
    mean = array.mean(axis=0)
    half = student_quantile(len(array) - 1) * np.sqrt(_squared_error(array))
    return mean, mean - half, mean + half


def prediction_interval(values: npt.ArrayLike, confidence: float) -> tuple[Floats, Floats]:
    """Where a further run would be, beside ``values [n]`` of the same distribution, by Student's t.

    (low, high).
    """
    array = np.asarray(values, dtype=np.float64)
    half = student_quantile(len(array) - 1, confidence) * np.sqrt(
        (len(array) + 1) * _squared_error(array)
    )
    return array.mean() - half, array.mean() + half


def difference_interval(a: npt.ArrayLike, b: npt.ArrayLike) -> Interval:
    """Mean of ``a [n]`` less mean of ``b [m]``, with Welch's interval.

    The two may spread differently.
    """
    gap, error, freedom = _welch(a, b)
    half = student_quantile(freedom) * error if error else 0.0
    return gap, gap - half, gap + half


def difference_chance(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """How likely means so far apart are where the true ones are equal.

    Of ``a [n]`` and ``b [m]``: Welch's test, two-sided.

    Below 0.05 where ``difference_interval`` leaves out 0; nan of single runs.
    """
    from scipy import special

    gap, error, freedom = _welch(a, b)
    if error == 0:
        return float(gap == 0)
    return float(2 * special.stdtr(freedom, -abs(gap) / error)) if freedom > 0 else float("nan")


def discoveries(chances: npt.ArrayLike, rate: float = 1 - CONFIDENCE) -> npt.NDArray[np.bool_]:
    """Which of many differences to call real: ``[K]``.

    So that a share of ``rate`` of those is expected to be none.

    Benjamini and Hochberg (1995): of K chances in ascending order the first k, where the k-th is
    the last that is at most rate k / K. It holds for tests that are independent or positively
    dependent. nan counts as 1.
    """
    p = np.nan_to_num(np.asarray(chances, dtype=np.float64), nan=1.0)
    ordered = np.sort(p)
    below = ordered <= rate * np.arange(1, len(p) + 1) / len(p)
    return np.asarray(p <= ordered[below].max() if below.any() else np.zeros(len(p), dtype=bool))


def _welch(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, float, float]:
    """Difference of means, its standard error, and degrees of freedom.

    0 where a single run leaves none.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    errors = np.array([_squared_error(x), _squared_error(y)])
    total = errors.sum()
    several = min(len(x), len(y)) > 1 and total > 0
    freedom = total**2 / (errors**2 / (len(x) - 1, len(y) - 1)).sum() if several else 0.0
    return np.asarray(x.mean() - y.mean()), float(np.sqrt(total)), float(freedom)


def share_interval(successes: npt.ArrayLike) -> Interval:
    """Share of runs over ``successes [n, ...]`` of 0 and 1, with its exact interval.

    Clopper and Pearson (1934).
    """
    from scipy import special  # which training does without

    array = np.asarray(successes, dtype=np.float64)
    n, won = len(array), array.sum(axis=0)
    tail = (1 - CONFIDENCE) / 2
    low = np.where(won > 0, special.betaincinv(np.maximum(won, 1), n - won + 1, tail), 0.0)
    high = np.where(won < n, special.betaincinv(won + 1, np.maximum(n - won, 1), 1 - tail), 1.0)
    return won / n, low, high


def improvement_interval(a: npt.ArrayLike, b: npt.ArrayLike) -> Interval:
    """Probability that a run of ``a [n]`` is above one of ``b [m]``, with its interval.

    Newcombe (2006, method 5).

    It holds those probabilities P for which the one that was found lies within Student's quantile
    of P's standard error (Newcombe has the normal quantile, too narrow below five runs). It is wide
    even where each run of ``a`` is above all of ``b``.
    """
    chance = probability_of_improvement(a, b)
    n, m = len(np.asarray(a)), len(np.asarray(b))
    if min(n, m) < 2:
        return chance, np.asarray(np.nan), np.asarray(np.nan)
    p = np.linspace(0, 1, 10_001)
    variance = p * (1 - p) * (1 + ((n + m) / 2 - 1) * ((1 - p) / (2 - p) + p / (1 + p))) / (n * m)
    inside = p[np.abs(p - chance) <= student_quantile(n + m - 2) * np.sqrt(variance) + 1e-9]
    return chance, inside[0], inside[-1]


def probability_of_improvement(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Share of the pairs of runs (one of ``a [n]``, one of ``b [m]``) in which ``a`` is higher.

    A tie counts one half.
    """
    left, right = np.asarray(a)[:, None], np.asarray(b)
    return np.asarray(((left > right) + 0.5 * (left == right)).mean())


def mean_of_intervals(intervals: list[Interval]) -> Interval:
    """Mean of independent values with an interval from theirs.

    Squared distances to their ends add up (Zou and Donner 2008).
    """
    value, low, high = (np.array(part) for part in zip(*intervals, strict=True))
    count, mean = len(value), value.mean()
    below, above = (np.sqrt(np.square(end - value).sum()) / count for end in (low, high))
    return mean, mean - below, mean + above


def _squared_error(values: Floats) -> Floats:
    """Square of the standard error of the mean over runs; nan of a single run."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.var(axis=0, ddof=1) / len(values))


def student_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Student's quantile of a two-sided interval; nan without a degree of freedom."""
    from scipy import (
        special,
    )  # scipy.stats has the same under a plainer name, and takes seconds to import

    return float(special.stdtrit(freedom, (1 + confidence) / 2)) if freedom > 0 else float("nan")
