"""Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347) as functions. Time is the last dimension ``[..., T]``."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.functional.returns import reverse_scan


def generalised_advantage(
    reward: Tensor, discount: Tensor, over: Tensor, value: Tensor, next_value: Tensor, gae_lambda: float
) -> Tensor:
    """Generalised advantage estimates (Schulman et al. 2016, arXiv 1506.02438, equation 16), all ``[..., T]``.

    discount is 0 at terminations only, so that time limits and the end of the data bootstrap from next_value; traces stop
    where the episode is over. gae_lambda: lambda.
    """
    delta = reward + discount * next_value - value
    return reverse_scan((gae_lambda * discount).masked_fill(over, 0), delta)


def standardised(x: Tensor, eps: float = 1e-5) -> Tensor:
    """Mean 0 and standard deviation 1 over the last dimension."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def clipped_surrogate(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """``min(ratio A, clip(ratio, 1 -/+ clip) A)`` (equation 7), to be maximised; ``[...]``."""
    ratio = (log_prob - old_log_prob).exp()
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
