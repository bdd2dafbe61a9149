"""Errors of the papers' own code, kept to repeat published numbers.

Each replaces the right function.
"""

from __future__ import annotations

import torch
from torch import Tensor


def swapped_model_input(act: Tensor, obs: Tensor) -> Tensor:
    """``[state, action]`` ``[..., O + A]``, in this order.

    The supervised baseline of arXiv 2202.02790 was trained on it.

    It was then used with ``[action, state]``.
    """
    return torch.cat([obs, act], dim=-1)


def dueling_q_over_batch(value: Tensor, advantage: Tensor) -> Tensor:
    """``value_learning.dueling_q`` with the mean over samples and actions together.

    As in the synthetic-environments paper's code, for ``[..., B, A]``.

    Q values of a batch then depend on each other; one sample ``[A]`` is a batch of its own. In a
    stack of members whose batches are of several sizes they also depend on the samples of weight 0
    that the smaller ones are filled up with.
    """
    return value + advantage - advantage.mean((-2, -1) if advantage.ndim > 1 else -1, keepdim=True)
