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

from lightning_rl.core.extras import require

Floats = npt.NDArray[np.float64]
Interval = tuple[Floats, Floats, Floats]
"""(value, low, high)."""

CONFIDENCE = 0.95


def mean_interval(values: npt.ArrayLike) -> Interval:
    """Mean over runs of ``values [n, ...]``, with Student's interval."""
    array = np.asarray(values, dtype=np.float64)
    mean = array.mean(axis=0)
    half = student_quantile(len(array) - 1) * np.sqrt(squared_error(array))
    return mean, mean - half, mean + half


def difference_interval(a: npt.ArrayLike, b: npt.ArrayLike) -> Interval:
    """Mean of ``a [n]`` less mean of ``b [m]``, with Welch's interval.

    The two may spread differently.
    """
    gap, error, freedom = welch(a, b)
    half = student_quantile(freedom) * error if error else 0.0
    return gap, gap - half, gap + half


def welch(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, float, float]:
    """Difference of means, its standard error, and degrees of freedom.

    0 where a single run leaves none.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    errors = np.array([squared_error(x), squared_error(y)])
    total = errors.sum()
    several = min(len(x), len(y)) > 1 and total > 0
    freedom = total**2 / (errors**2 / (len(x) - 1, len(y) - 1)).sum() if several else 0.0
    return np.asarray(x.mean() - y.mean()), float(np.sqrt(total)), float(freedom)


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


def squared_error(values: Floats) -> Floats:
    """Square of the standard error of the mean over runs; nan of a single run."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.var(axis=0, ddof=1) / len(values))


def student_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Student's quantile of a two-sided interval; nan without a degree of freedom."""
    require("a confidence interval", "scipy")
    # scipy.stats has the same under a plainer name, and takes seconds to import
    from scipy import special

    return float(special.stdtrit(freedom, (1 + confidence) / 2)) if freedom > 0 else float("nan")
