"""Losses and samples of world models (Young et al. 2023, arXiv 2211.02222).

Leading dimensions ``[...]`` broadcast (members, batch). ``continues`` is 1 where the episode goes on after a step, 0 where it
ended there; ``bits`` are observations of zeros and ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

_LOG_2_PI = math.log(2 * math.pi)


def reward_loss(reward: Tensor, mean: Tensor) -> Tensor:
    """Negative log-likelihood ``(r - mean)^2 / 2 + ln(2 pi) / 2`` of a unit Gaussian; all ``[...]``."""
    return 0.5 * (reward - mean).square() + 0.5 * _LOG_2_PI


def continuation_loss(continues: Tensor, logit: Tensor) -> Tensor:
    """Cross-entropy of the probability ``sigmoid(logit)`` that the episode goes on; all ``[...]``."""
    return F.binary_cross_entropy_with_logits(logit, continues, reduction="none")


def bits_loss(bits: Tensor, logits: Tensor) -> Tensor:
    """Cross-entropy of independent bits, summed over them; both ``[..., O]`` -> ``[...]``."""
    return F.binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(-1)


def categorical_kl(p_logits: Tensor, q_logits: Tensor) -> Tensor:
    """``KL(p || q)`` of independent categorical variables, summed; logits ``[..., variables, classes]`` -> ``[...]``."""
    p, q = p_logits.log_softmax(-1), q_logits.log_softmax(-1)
    return (p.exp() * (p - q)).sum((-2, -1))


def gaussian_kl(p_mean: Tensor, p_std: Tensor, q_mean: Tensor, q_std: Tensor) -> Tensor:
    """``KL(p || q)`` of independent Gaussians, summed; all ``[..., variables]`` -> ``[...]``."""
    scaled = (p_std.square() + (p_mean - q_mean).square()) / (2 * q_std.square())
    return ((q_std / p_std).log() + scaled - 0.5).sum(-1)


def straight_through(sample: Tensor, probability: Tensor) -> Tensor:
    """The one-hot ``sample`` with the gradient of its ``probability`` ``[..., K]`` (Bengio et al. 2013, arXiv 1308.3432)."""
    return sample + probability - probability.detach()


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.scale * grads[0], None


def scaled_gradient(x: Tensor, scale: float) -> Tensor:
    """``x`` itself, with ``scale`` times its gradient.

    Of both sides of one divergence it makes what two divergences do, each weighted and with the gradient of the other side
    stopped: KL balancing (Hafner et al. 2021, arXiv 2010.02193), for half of the work.
    """
    return cast(Tensor, _ScaledGradient.apply(x, scale))


def categorical_sample(logits: Tensor, noise: Tensor) -> Tensor:
    """Class indices ``[...]`` by inversion, for uniform noise ``[...]`` in [0, 1) and logits ``[..., K]``."""
    cumulative = (logits - logits.amax(-1, keepdim=True)).exp().cumsum(-1)
    threshold = noise.unsqueeze(-1) * cumulative[..., -1:]
    return torch.searchsorted(cumulative, threshold, right=True).squeeze(-1).clamp(max=logits.shape[-1] - 1)


def bits_sample(logits: Tensor, noise: Tensor, faithful: bool = False) -> Tensor:
    """Bits that are 1 with probability ``sigmoid(logits)``, for uniform noise in [0, 1); all ``[..., O]``.

    faithful: the logit itself taken for the probability, as in the paper's code: below 0 never, above 1 always.
    """
    return (noise < (logits if faithful else logits.sigmoid())).to(logits.dtype)


def imagined_weights(continues: Tensor) -> Tensor:
    """Probability ``[..., L]`` of being alive at each step of a roll-out: ``1, c0, c0 c1, ..`` for continues ``[..., L]``."""
    alive = continues.cumprod(-1)
    return torch.cat([torch.ones_like(alive[..., :1]), alive[..., :-1]], dim=-1)


STD_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": F.softplus,
    "sigmoid": torch.sigmoid,
    "sigmoid2": lambda x: 2 * torch.sigmoid(x / 2),  # between 0 and 2, 1 at 0
}
"""From a network's output to a standard deviation."""
