"""Scaling of observations to about [-1, 1] before a network reads them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# wider boxes count as unbounded: some tasks give the largest number of single precision for no
# bound
_UNBOUNDED = 1e6


def units(low: Sequence[float], high: Sequence[float]) -> tuple[Tensor, Tensor]:
    """The middle and the half-width ``[O]`` of a box, 0 and 1 where it has no bounds.

    For ``(obs - middle) / half-width``.
    """
    lower, upper = torch.tensor(low), torch.tensor(high)
    bounded = (upper > lower) & (upper - lower < _UNBOUNDED)
    return ((upper + lower) / 2).where(bounded, 0.0), ((upper - lower) / 2).where(bounded, 1.0)
