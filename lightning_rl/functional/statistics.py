"""Summaries of returns over episodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IQM_RUNS = 10
"""With fewer runs no interquartile mean is shown: it would be the mean of only a few of them."""


def interquartile_mean(values: npt.ArrayLike, axis: int = -1) -> npt.NDArray[np.float64]:
    """Mean of the middle half (Agarwal et al. 2021, arXiv 2108.13264).

    A quarter of the values is cut from each end.

    Values on the cut count in part, so that the result changes smoothly with the number of values.

    Args:
        values: of any shape.
        axis: the one that is averaged over.

    Returns:
        The means, of the shape of ``values`` without ``axis``.
    """
    x = np.sort(np.moveaxis(np.asarray(values, dtype=np.float64), axis, -1), axis=-1)
    edges = np.arange(x.shape[-1] + 1) / x.shape[-1]
    weight = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return np.asarray(x @ weight / weight.sum())


def sampling_floor(sd: npt.ArrayLike, count: npt.ArrayLike) -> float:
    """How far means are from their targets on average where these are hit exactly.

    So that only chance moves a mean.

    The distance of a normal variable from its mean is sqrt(2 / pi) standard deviations on average,
    and a mean over n values has a standard deviation of sd / sqrt(n).

    Args:
        sd: standard deviations ``[K]`` of single values.
        count: how many values each mean is of, ``[K]`` or one number.
    """
    return float(np.mean(np.sqrt(2 / np.pi) * np.asarray(sd, dtype=np.float64) / np.sqrt(count)))


def summarise(values: npt.ArrayLike) -> dict[str, float]:
    """The statistics that reports show.

    Args:
        values: ``[n]``, n > 0.

    Returns:
        mean, sd (of the sample; 0 of a single value), median, iqm, min and max.

    Raises:
        ValueError: another shape.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"values must have shape [n], n > 0: got {x.shape}")
    return {
        "mean": float(x.mean()),
        "sd": float(x.std(ddof=1)) if x.size > 1 else 0.0,
        "median": float(np.median(x)),
        "iqm": float(interquartile_mean(x)),
        "min": float(x.min()),
        "max": float(x.max()),
    }
