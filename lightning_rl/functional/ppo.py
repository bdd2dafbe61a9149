"""Proximal policy optimization (Schulman et al. 2017, arXiv 1707.06347) as functions. Time is the last dimension ``[..., T]``."""

from __future__ import annotations

import torch
from torch import Tensor


def standardised(x: Tensor, eps: float = 1e-5) -> Tensor:
    """Mean 0 and standard deviation 1 over the last dimension."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def clipped_surrogate(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """``min(ratio A, clip(ratio, 1 -/+ clip) A)`` (equation 7), to be maximised; ``[...]``."""
    ratio = (log_prob - old_log_prob).exp()
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
