"""How sure a claim is over few runs: further runs, many differences at once, shares of runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lightning_rl.functional.intervals import (
    CONFIDENCE,
    Floats,
    Interval,
    squared_error,
    student_quantile,
    welch,
)


def prediction_interval(values: npt.ArrayLike, confidence: float) -> tuple[Floats, Floats]:
    """Where a further run would be, beside ``values [n]`` of the same distribution, by Student's t.

    (low, high).
    """
    array = np.asarray(values, dtype=np.float64)
    half = student_quantile(len(array) - 1, confidence) * np.sqrt(
        (len(array) + 1) * squared_error(array)
    )
    return array.mean() - half, array.mean() + half


def difference_chance(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """How likely means so far apart are where the true ones are equal.

    Of ``a [n]`` and ``b [m]``: Welch's test, two-sided.

    Below 0.05 where ``difference_interval`` leaves out 0; nan of single runs.
    """
    from scipy import special

    gap, error, freedom = welch(a, b)
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
    from scipy import stats

    p = np.nan_to_num(np.asarray(chances, dtype=np.float64), nan=1.0)
    return np.asarray(stats.false_discovery_control(p) <= rate)


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
