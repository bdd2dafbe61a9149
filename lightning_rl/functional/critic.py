"""What a critic of upside-down RL learns: state values, and action values beside them."""

from __future__ import annotations

import torch
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


def action_values(output: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """``Q(a) = w . phi(a)``, ``[B]``, of a critic's output ``[B, 1 + F]``; and ``phi(a) [B, F]``.

    The output is V and w.
    Discrete actions ``[B]`` are one-hot; of continuous ones ``[B, A]`` it is 1, a and a^2.
    """
    if action.is_floating_point():
        features = torch.cat([torch.ones_like(action[:, :1]), action, action.square()], dim=-1)
    else:
        features = torch.nn.functional.one_hot(action, output.shape[-1] - 1).to(output.dtype)
    return (output[:, 1:] * features).sum(-1), features


def fitted_advantage(output: Tensor, action: Tensor) -> Tensor:
    """``Q(a) - V``, ``[B]``, of an output ``[B, 1 + F]``: errors in common cancel."""
    return action_values(output, action)[0] - output[:, 0]


def value_error(
    output: Tensor, target: Tensor, action: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean squared error of V to ``[B]``, plus Q(a)'s if actions are given; and its gradient.

    output and its gradient ``[B, 1 + F]``.
    """
    error = output[:, 0] - target
    loss = error.square().mean()
    grad = error.unsqueeze(-1) * (2 / len(error))
    if action is None:
        return loss, grad
    value, features = action_values(output, action)
    action_error = value - target
    to_weights = action_error.unsqueeze(-1) * features * (2 / len(error))
    return loss + action_error.square().mean(), torch.cat([grad, to_weights], dim=-1)
