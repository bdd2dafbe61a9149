"""Intrinsic rewards."""

from __future__ import annotations

from torch import Tensor


def count_bonus(count: Tensor, beta: float) -> Tensor:
    """``beta / sqrt(n(s, a))`` ``[...]``, the visit itself counted (Strehl & Littman 2008)."""
    return beta * count.float().rsqrt()


def inverse_loss(prediction: Tensor, action: Tensor) -> Tensor:
    """How badly the action is predicted from the features before and after it, ``[N, B]``.

    Pathak et al. 2017, arXiv 1705.05363.

    Cross-entropy of logits ``[N, B, A]`` for discrete action ``[N, B]``; mean squared error for
    ``[N, B, A]``.
    """
    if action.ndim == prediction.ndim:
        return (prediction - action).square().mean(-1)
    # As F.cross_entropy, which has no deterministic form on a GPU for logits of three dimensions.
    return -prediction.transpose(1, 2).log_softmax(1).gather(1, action.unsqueeze(1)).squeeze(1)


def forward_error(prediction: Tensor, features: Tensor) -> Tensor:
    """Mean squared error of the predicted next features ``[..., F]`` -> ``[...]``: the surprise."""
    return (prediction - features).square().mean(-1)
