"""Whether a policy does what it is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lightning_rl.functional.ranks import rank_correlation
from lightning_rl.functional.statistics import sampling_floor

NEAR = ("within_25", "within_75")
"""Shares of single episodes that are so near to what was asked of them."""


def far_apart(asked: Sequence[float]) -> bool:
    """Whether returns are so large that the shares ``NEAR`` say something."""
    return max(map(abs, asked)) >= 150


def misses(asked: float, obtained: Sequence[float]) -> dict[str, float]:
    """How far single episodes are from what was asked of them.

    Args:
        asked: a return.
        obtained: returns of episodes ``[E]``.

    Returns:
        ``episode_error``: mean of abs(obtained - asked); ``within_25``, ``within_75``: share of the
        episodes that are at most so far away.
    """
    off = np.abs(np.asarray(obtained, dtype=float) - asked)
    return {
        "episode_error": float(off.mean()),
        "within_25": float((off <= 25).mean()),
        "within_75": float((off <= 75).mean()),
    }


def obedience(asked: Sequence[float], obtained: Sequence[Sequence[float]]) -> dict[str, float]:
    """How well what is obtained is what was asked, by single episodes and by their means.

    The mean of many episodes can be what was asked where no single one is: they land or crash.

    Args:
        asked: returns ``[K]``.
        obtained: returns of episodes for each of them, ``[K, E]``.

    Returns:
        ``episode_error``, ``within_25``, ``within_75``: of single episodes, see ``misses``;
        ``worst_asked``, ``worst_episode_error``: where these miss by most, both; ``error``: mean
        over what is asked of abs(mean obtained - asked); ``error_share``: of the range of what is
        asked; ``floor``: the part of the error that chance alone would leave, from the episodes'
        standard deviations; ``slope``: of the least-squares line of episodes' returns over what was
        asked of them; ``rank_correlation``: Spearman's, over episodes (these three are 0 where
        nothing varies); ``highest``: the mean that is obtained where most is asked for.
    """
    x = np.asarray(asked, dtype=float)
    y = np.asarray(obtained, dtype=float)
    spread = np.repeat(x - x.mean(), y.shape[1])
    error = float(np.abs(y.mean(1) - x).mean())
    rows = [misses(*row) for row in zip(asked, obtained, strict=True)]
    of_episodes = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    worst = int(np.argmax([row["episode_error"] for row in rows]))
    return {
        **of_episodes,
        "worst_asked": float(x[worst]),
        "worst_episode_error": rows[worst]["episode_error"],
        "error": error,
        "error_share": error / float(np.ptp(x)) if spread.any() else 0.0,
        "floor": sampling_floor(y.std(axis=1, ddof=y.shape[1] > 1), y.shape[1]),
        "slope": float(spread @ y.ravel() / (spread @ spread)) if spread.any() else 0.0,
        "rank_correlation": rank_correlation(spread, y.ravel()),
        "highest": float(y[x.argmax()].mean()),
    }
