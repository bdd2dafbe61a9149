"""What a critic of upside-down RL learns: state values, and action values beside them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lightning_rl.functional.returns import check_same_shape
from lightning_rl.functional.upside_down import EPSILON


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """``1 - Var(target - prediction) / Var(target)`` of ``[M]``: 1 if perfect, 0 for a mean."""
    check_same_shape(prediction=prediction, target=target)
    return 1 - (target - prediction).var(correction=0) / (target.var(correction=0) + EPSILON**2)


def feature_size(size: int, continuous: bool) -> int:
    """How many features ``phi(a)`` an action of this size has."""
    return 1 + 2 * size if continuous else size


def action_features(action: Tensor, sizes: Sequence[int]) -> Tensor:
    """``phi(a)`` ``[B, F]`` of actions.

    Of continuous ones ``[B, A]`` it is 1, a and a^2. Discrete ones, one ``[B]`` or several
    ``[B, K]`` of these ``sizes``, are one-hot, one behind another.
    """
    if action.is_floating_point():
        return torch.cat([torch.ones_like(action[..., :1]), action, action.square()], dim=-1)
    columns = action.reshape(len(action), -1).unbind(1)
    one_hot = [F.one_hot(each, size) for each, size in zip(columns, sizes, strict=True)]
    return torch.cat(one_hot, dim=-1).float()


def action_values(output: Tensor, features: Tensor) -> Tensor:
    """``Q(a) = w . phi(a)``, ``[B]``, of a critic's output ``[B, 1 + F]``: V and w."""
    return (output[:, 1:] * features).sum(-1)


def fitted_advantage(output: Tensor, features: Tensor) -> Tensor:
    """``Q(a) - V``, ``[B]``, of an output ``[B, 1 + F]``: errors in common cancel."""
    return action_values(output, features) - output[:, 0]


def critic_loss(output: Tensor, target: Tensor, features: Tensor | None = None) -> Tensor:
    """Mean squared error of V to ``[B]``; plus that of Q(a), if actions' features are given."""
    loss = F.mse_loss(output[:, 0], target)
    if features is None:
        return loss
    return loss + F.mse_loss(action_values(output, features), target)
