"""An error of the papers' own code, kept to repeat published numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def swapped_model_input(act: Tensor, obs: Tensor) -> Tensor:
    """``[state, action]`` ``[..., O + A]``, in this order.

    The supervised baseline of arXiv 2202.02790 was trained on it.

    It was then used with ``[action, state]``.
    """
    return torch.cat([obs, act], dim=-1)
