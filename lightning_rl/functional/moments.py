"""Running mean and variance."""

from __future__ import annotations

import torch
from torch import Tensor

Moments = tuple[Tensor, Tensor, Tensor]
"""How many rows there were ``[]``, their mean and their variance ``[O]`` (population), float64."""


def merged(moments: Moments, rows: Tensor) -> Moments:
    """The moments of all rows so far and of these ``[B, O]`` together.

    The parallel update of Chan, Golub and LeVeque (1979), which loses no digits to large means.
    """
    count, mean, variance = moments
    rows = rows.to(mean.dtype)
    total = count + len(rows)
    share = len(rows) / total  # of the new ones
    away = rows.mean(0) - mean
    within = torch.lerp(variance, rows.var(0, correction=0), share)
    return total, mean + share * away, within + share * (1 - share) * away.square()
