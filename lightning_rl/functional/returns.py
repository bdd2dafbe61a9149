"""Returns along one episode."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def returns_to_go(reward: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Undiscounted return from each step to the end.

    reward ``[T]`` -> ``[T+1]``; entry ``t`` is ``sum(reward[t:])``, the last entry is 0, so that the
    return of the segment ``t1..t2`` is ``G[t1] - G[t2]``.
    """
    if reward.ndim != 1:
        raise ValueError(f"reward must have shape [T], got {reward.shape}")
    out = np.zeros(len(reward) + 1)
    out[:-1] = np.cumsum(reward[::-1], dtype=np.float64)[::-1]
    return out
