"""Labels, weights and targets of Reward-Conditioned Policies (Kumar, Peng and Levine 2019, arXiv 1912.13465).

A label says how well a step turned out: its return-to-go or its advantage. Statistics are those of
the whole set of labels ``[M]`` that is trained on, never of a minibatch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import FloatArray

EPSILON = 1e-5  # keeps constant labels finite, as in AWR (Peng et al. 2019)


def standardise(x: Tensor, limit: float) -> Tensor:
    """``(x - mean) / (sd + 1e-5)`` of the values ``[M]``, clipped to ``-limit .. limit``."""
    return ((x - x.mean()) / (x.std(correction=0) + EPSILON)).clamp(-limit, limit)


def exponential_weights(z: Tensor, temperature: float, max_weight: float) -> Tensor:
    """``min(exp(z / temperature), max_weight)`` of standardised values, scaled to mean 1; ``[M]`` -> ``[M]``.

    The temperature belongs to standardised values, as in AWR's released code; the paper's 0.05 belongs to raw ones.
    """
    weight = (z / temperature).exp().clamp(max=max_weight)
    return weight / weight.mean()


def effective_sample_share(weight: Tensor) -> Tensor:
    """Effective sample size of the weights ``[M]`` over ``M``: 1 for equal weights, ``1 / M`` for a single one."""
    return weight.sum().square() / (weight.square().sum() * weight.numel())


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """``1 - Var(target - prediction) / Var(target)`` of ``[M]``: 1 is perfect, 0 no better than a constant."""
    if prediction.shape != target.shape:
        raise ValueError(f"prediction {tuple(prediction.shape)} does not fit target {tuple(target.shape)}")
    return 1 - (target - prediction).var(correction=0) / (target.var(correction=0) + EPSILON**2)


class Target(NamedTuple):
    """Where commands are drawn from: ``N(mean, sd)`` within ``[low, high]``, the range of the labels seen."""

    mean: float
    sd: float
    low: float
    high: float


def tilted_target(label: Tensor, weight: Tensor, quantile: float) -> Target:
    """Mean and sd of the labels ``[M]`` resampled with probabilities proportional to the weights.

    With exponential weights this is ``p(Z) exp(Z / beta)``, the optimal distribution of the paper, and unlike its
    log-sum-exp it stays among labels that were seen.
    """
    del quantile
    share = weight / weight.sum()
    mean = (share * label).sum()
    return _target(mean, (share * (label - mean).square()).sum().sqrt(), label)


def quantile_target(label: Tensor, weight: Tensor, quantile: float) -> Target:
    """Centred on a quantile of the labels ``[M]``, with the sd of the labels above it."""
    del weight
    level = torch.quantile(label, quantile)
    return _target(level, label[label >= level].std(correction=0), label)


def max_target(label: Tensor, weight: Tensor, quantile: float) -> Target:
    """The highest label ``[M]``, with the sd of all: the earlier implementation's, which asks for the extreme of the noise.

    Of labels ``[U, B]`` of minibatches, the highest of all with the sd of the minibatch that it is in.
    """
    del weight, quantile
    batches = label.reshape(-1, label.shape[-1])
    return _target(label.max(), batches[batches.amax(1).argmax()].std(correction=0), label)


def _target(mean: Tensor, sd: Tensor, label: Tensor) -> Target:
    return Target(float(mean), float(sd), float(label.min()), float(label.max()))


TARGETS: dict[str, Callable[[Tensor, Tensor, float], Target]] = {
    "tilted": tilted_target,
    "quantile": quantile_target,
    "max": max_target,
}


def draw_targets(target: Target, spread: float, noise: Tensor, limited: bool = True) -> Tensor:
    """Commands ``[n]`` from standard normal noise ``[n]``; ``spread`` scales the sd. limited: never outside ``low .. high``."""
    drawn = target.mean + spread * target.sd * noise
    return drawn.clamp(target.low, target.high) if limited else drawn


def annealed(command: FloatArray, reward: FloatArray, discount: float) -> FloatArray:
    """The return that is left to collect: ``(command - reward) / discount``; command ``[B, 1]``, reward ``[B]``."""
    return (command - reward[:, None]) / np.float32(discount)
