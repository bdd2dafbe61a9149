"""Uncertainty over few seeds (Agarwal et al. 2021, arXiv 2108.13264): stratified bootstrap, performance profiles, improvement."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from lightning_rl.functional.statistics import interquartile_mean

Floats = npt.NDArray[np.float64]
Statistic = Callable[..., Any]


def bootstrap_interval(
    strata: Sequence[npt.ArrayLike], statistic: Statistic, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[Floats, Floats]:
    """Percentile interval of ``statistic(*strata, axis)`` under drawing runs anew, with replacement, within each stratum.

    strata: one array ``[n_i, ...]`` per task or method, runs first; whole runs are drawn, so a curve stays a curve.
    Returns low and high, of the statistic's shape; nan where a stratum has a single run: it says nothing about seeds.
    """
    arrays = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if min(len(array) for array in arrays) < 2:
        nothing = np.full(np.shape(statistic(*arrays, axis=0)), np.nan)
        return nothing, nothing
    generator = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # equal runs have an interval of no width; nan stays nan
        interval = stats.bootstrap(
            arrays, statistic, axis=0, vectorized=True, paired=False, method="percentile",
            confidence_level=confidence, n_resamples=resamples, rng=generator,
        ).confidence_interval  # fmt: skip
    return np.asarray(interval.low), np.asarray(interval.high)


def mean_interval(values: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Mean over runs of ``values [n, ...]``, and the low and high end of its 95 % bootstrap interval."""
    array = np.asarray(values, dtype=np.float64)
    return np.mean(array, axis=0), *bootstrap_interval([array], mean)


def mean(*strata: Floats, axis: int) -> Floats:
    """Mean over runs, then over strata."""
    return np.mean([np.mean(stratum, axis=axis) for stratum in strata], axis=0)


def iqm(*strata: Floats, axis: int) -> Floats:
    """Interquartile mean over the runs of all strata."""
    return np.asarray(interquartile_mean(np.concatenate(strata, axis=axis), axis=axis))


def difference(a: Floats, b: Floats, axis: int) -> Floats:
    """Mean of ``a`` less mean of ``b``."""
    return np.asarray(np.mean(a, axis=axis) - np.mean(b, axis=axis))


def probability_of_improvement(a: Floats, b: Floats, axis: int) -> Floats:
    """Share of the pairs of runs (one of ``a``, one of ``b``) in which ``a`` is higher; a tie counts one half."""
    left, right = np.moveaxis(a, axis, -1)[..., :, None], np.moveaxis(b, axis, -1)[..., None, :]
    return np.asarray(((left > right) + 0.5 * (left == right)).mean(axis=(-2, -1)))


def above(scores: npt.ArrayLike, thresholds: npt.ArrayLike) -> Floats:
    """``[n, K]``: 1 where score n is above threshold k. Its mean over runs is the performance profile."""
    return np.asarray(np.asarray(scores)[:, None] > np.asarray(thresholds), dtype=np.float64)
