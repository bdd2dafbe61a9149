"""What the parts of upside-down RL share: labels in standard deviations, and their weights.

A label says how well a step turned out: its return-to-go or its advantage. Statistics are those of
the whole set of labels ``[M]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

EPSILON = 1e-5  # keeps constant labels finite, as in AWR (Peng et al. 2019)


def at_most(limit: float | None, label: Tensor) -> Tensor:
    """Labels ``[M]``, where more than ``limit`` counts as it; None: there is no limit."""
    return label if limit is None else label.clamp(max=limit)


def standardise(x: Tensor, limit: float = math.inf) -> Tensor:
    """``(x - mean) / (sd + 1e-5)`` of the values ``[M]``, clipped to ``-limit .. limit``."""
    return ((x - x.mean()) / (x.std(correction=0) + EPSILON)).clamp(-limit, limit)


def exponential_weights(z: Tensor, temperature: float, max_weight: float) -> Tensor:
    """``min(exp(z / temperature), max_weight)`` of standardised values ``[M]``, scaled to mean 1.

    The temperature belongs to standardised values, as in AWR's released code; the paper's 0.05
    belongs to raw ones.
    """
    weight = (z / temperature).exp().clamp(max=max_weight)
    return weight / weight.mean()


def effective_sample_share(weight: Tensor) -> Tensor:
    """Effective sample size of the weights ``[M]`` over ``M``: 1 if equal, ``1 / M`` for one."""
    return weight.sum().square() / (weight.square().sum() * weight.numel())


def quantiles(values: Tensor, shares: Sequence[float]) -> Tensor:
    """Quantiles of all values ``[...]``, one a share: interpolated, of very many the nearest."""
    flat = values.flatten()
    if len(flat) <= 2**24:  # the most that torch takes
        return torch.quantile(flat, flat.new_tensor(shares))
    places = [round(share * (len(flat) - 1)) for share in shares]
    return flat.sort().values[places]
