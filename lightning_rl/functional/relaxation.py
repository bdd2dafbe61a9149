"""Samples of discrete actions that gradients flow through."""

from __future__ import annotations

import torch
from torch import Tensor


def gumbel_softmax(
    logits: Tensor, gumbel: Tensor, temperature: Tensor | float, hard: bool
) -> Tensor:
    """Relaxed one-hot samples ``[..., A]``.

    Jang et al. 2017, arXiv 1611.01144; Maddison et al. 2017.

    gumbel: standard Gumbel noise ``[..., A]``. hard: one-hot forward, the gradient of the relaxed
    sample backward.
    """
    soft = ((logits + gumbel) / temperature).softmax(-1)
    if not hard:
        return soft
    one_hot = torch.nn.functional.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft.dtype)
    return one_hot + soft - soft.detach()


def annealed(step: Tensor, start: float, end: float, steps: int) -> Tensor:
    """Linear from ``start`` at step 0 to ``end`` at step ``steps`` and after."""
    return start + (end - start) * (step / steps).clamp(max=1)
