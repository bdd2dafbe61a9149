"""Rules that end the training of a member, on the returns of its episodes so far.

returns ``[N, E]``, of which the first count ``[N]`` are there; both rules give ``[N]`` bool.
"""

from __future__ import annotations

import torch
from torch import Tensor


def window_mean(returns: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Mean of ``returns[n, start[n]:end[n]]``; nan where that is empty."""
    column = torch.arange(returns.shape[1], device=returns.device)
    inside = (column >= start.unsqueeze(1)) & (column < end.unsqueeze(1))
    return torch.where(inside, returns, 0.0).sum(1) / inside.sum(1)


def solved(returns: Tensor, count: Tensor, window: int, threshold: float) -> Tensor:
    """Whether the mean of the last ``window`` returns has reached ``threshold``."""
    return (window_mean(returns, (count - window).clamp(min=0), count) >= threshold) & (count >= window)


def plateaued(returns: Tensor, count: Tensor, window: int, tolerance: float, learning_starts: int) -> Tensor:
    """Whether the mean R of the last ``window`` returns differs from the mean R' of those before by less than
    ``tolerance * |R'|``, judged from the episode after ``learning_starts + window`` on.

    R' averages fewer values while there are fewer.
    """
    middle = (count - window).clamp(min=0)
    now = window_mean(returns, middle, count)
    before = window_mean(returns, (middle - window).clamp(min=0), middle)
    return ((now - before).abs() / (before.abs() + 1e-9) < tolerance) & (count > learning_starts + window)
