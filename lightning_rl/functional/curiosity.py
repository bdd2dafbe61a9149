"""Intrinsic rewards."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def count_bonus(count: Tensor, beta: float) -> Tensor:
    """``beta / sqrt(n(s, a))`` ``[...]``, the visit itself counted (Strehl & Littman 2008)."""
    return beta * count.float().rsqrt()


def inverse_loss(prediction: Tensor, action: Tensor) -> Tensor:
    """How badly the action is predicted from the features before and after it (Pathak et al. 2017, arXiv 1705.05363), ``[N, B]``.

    Cross-entropy of logits ``[N, B, A]`` for discrete action ``[N, B]``; mean squared error for ``[N, B, A]``.
    """
    if action.ndim == prediction.ndim:
        return (prediction - action).square().mean(-1)
    return F.cross_entropy(prediction.transpose(1, 2), action, reduction="none")


def forward_error(prediction: Tensor, features: Tensor) -> Tensor:
    """Mean squared error of the predicted next features ``[..., F]`` -> ``[...]``: the surprise."""
    return (prediction - features).square().mean(-1)
