"""How far one quantity ranks as another does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def rank_correlation(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float:
    """Spearman's, of ``x`` and ``y [n]``, where equal values share their mean rank.

    0 if either does not vary.
    """
    ranks = []
    for values in (x, y):
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(count) - (count - 1) / 2)[place])
    return (
        float(np.asarray(np.corrcoef(ranks))[0, 1]) if all(np.ptp(each) for each in ranks) else 0.0
    )
