"""Layers whose inputs are zeros but for a few ones, given by their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from lightning_rl.nets.members import Layer


def written_out(ones: Tensor, size: int) -> Tensor:
    """Dense inputs ``[N, B, size]`` with a 1 at the places ``ones`` ``[N, B, K]``.

    On a GPU faster than picking rows.
    """
    inputs = torch.zeros(*ones.shape[:2], size, device=ones.device)
    return inputs.scatter_(-1, ones, 1.0)


def linear_of_ones(layer: Layer, ones: Tensor, scale: float) -> Tensor:
    """``scale (x W + b)`` ``[N, O, B]`` of inputs with a 1 at the places ``ones`` ``[N, K, B]``."""
    picked = [
        F.embedding_bag(places, weight, mode="sum")
        for places, weight in zip(ones.mT, layer.weight, strict=True)
    ]
    return torch.stack(picked).add_(layer.bias).mul_(scale).mT


def write_weight_gradient(grad: Tensor, ones: Tensor, into: Layer) -> None:
    """Writes the gradient of the weight from that to the outputs ``[N, O, B]``.

    For each input, the sum over the samples for which it is among the ``ones`` ``[N, K, B]``.
    """
    for places, each, weight in zip(ones, grad, into.weight, strict=True):
        which, order = places.flatten().sort()
        first = torch.searchsorted(which, torch.arange(len(weight), device=which.device))
        samples = order % places.shape[1]
        weight.copy_(F.embedding_bag(samples, each.mT.contiguous(), first, mode="sum"))
