"""Losses and samples of world models (Young et al. 2023, arXiv 2211.02222).

Leading dimensions ``[...]`` broadcast (members, batch). ``continues`` is 1 where the episode goes
on after a step, 0 where it ended there; ``bits`` are observations of zeros and ones. A loss comes
with its derivatives: on tensors of a few kilobytes autograd would take longer than the networks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

REWARD_LOSS_FLOOR = 0.5 * math.log(2 * math.pi)
"""The ``reward_loss`` of a reward that is predicted exactly."""


def reward_loss(reward: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of a unit Gaussian, and its derivative by mean.

    ``(r - mean)^2 / 2 + ln(2 pi) / 2``.
    """
    error = mean - reward
    return 0.5 * error.square() + REWARD_LOSS_FLOOR, error


def continuation_loss(continues: Tensor, logit: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the probability that the episode goes on, and its derivative by logit.

    The probability is ``sigmoid(logit)``.
    """
    return F.binary_cross_entropy_with_logits(
        logit, continues, reduction="none"
    ), logit.sigmoid() - continues


def bits_loss(bits: Tensor, logits: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of independent bits, summed, and its derivative by logits.

    Times weight ``[...]``; bits and logits are ``[..., O]``.
    """
    loss = weight * F.binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(-1)
    return loss, (logits.sigmoid() - bits).mul_(weight.unsqueeze(-1))


def categorical_kl(p_logits: Tensor, q_logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``KL(p || q)`` ``[...]``, summed, and its derivatives by the logits of both.

    Of independent categorical variables.

    Logits are ``[..., variables, classes]``.
    """
    p, q = p_logits.log_softmax(-1), q_logits.log_softmax(-1)
    probability, ratio = p.exp(), p - q
    each = (probability * ratio).sum(-1, keepdim=True)
    return each.sum((-2, -1)), probability * (ratio - each), q.exp() - probability


def gaussian_kl(
    p_mean: Tensor, p_std: Tensor, q_mean: Tensor, q_std: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """``KL(p || q)`` ``[...]`` of independent Gaussians, summed, and its derivatives.

    By p_mean, p_std, q_mean, q_std.

    These are ``[..., variables]``.
    """
    precision, error = q_std.reciprocal(), p_mean - q_mean
    spread, distance = p_std * precision, error * precision
    half = 0.5 * (spread.square() + distance.square())
    slope = distance * precision
    slopes = (slope, spread * precision - p_std.reciprocal(), -slope, (1 - 2 * half) * precision)
    return (half - spread.log() - 0.5).sum(-1), slopes


def softmax_pullback(probability: Tensor, grad: Tensor) -> Tensor:
    """The gradient to the logits of a softmax ``[..., K]`` from that to its ``probability``.

    Taken for the gradient of a one-hot sample, it passes straight through (Bengio et al. 2013,
    arXiv 1308.3432).
    """
    weighted = probability * grad
    return weighted - probability * weighted.sum(-1, keepdim=True)


def categorical_sample(logits: Tensor, noise: Tensor) -> Tensor:
    """Class indices ``[...]`` by inversion.

    noise ``[...]``: uniform in [0, 1); logits ``[..., K]``.
    """
    weights = (logits - logits.amax(-1, keepdim=True)).exp()
    cumulative = weights.cumsum(-1) if weights.device.type == "cpu" else sums_by_product(weights)
    threshold = noise.unsqueeze(-1) * cumulative[..., -1:]
    return (
        torch.searchsorted(cumulative, threshold, right=True)
        .squeeze(-1)
        .clamp(max=logits.shape[-1] - 1)
    )


def sums_by_product(x: Tensor) -> Tensor:
    """``x.cumsum(-1)`` by a product with a triangle of ones.

    On a GPU the sum itself has no deterministic form.
    """
    size = x.shape[-1]
    return x @ torch.ones(size, size, dtype=x.dtype, device=x.device).triu_()


def bits_sample(logits: Tensor, noise: Tensor) -> Tensor:
    """Bits that are 1 with probability ``sigmoid(logits)``.

    noise: uniform in [0, 1); all ``[..., O]``.
    """
    return logits.sigmoid().gt_(noise)


def imagined_weights(continues: Tensor) -> Tensor:
    """Probability ``[..., L]`` of being alive at each step of a roll-out.

    ``1, c0, c0 c1, ..`` for continues ``[..., L]``.
    """
    alive = continues.cumprod(-1)
    return torch.cat([torch.ones_like(alive[..., :1]), alive[..., :-1]], dim=-1)


def in_order(steps: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Concatenates the L steps of a roll-out, each a tuple of tensors ``[N, B, ..]``.

    One ``[N, L B, ..]`` for each of these.
    """
    return [torch.cat(rows, dim=1) for rows in zip(*steps, strict=True)]
