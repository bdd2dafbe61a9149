"""Commands, labels, weights and targets of upside-down RL: UDRL (Srivastava et al. 2019, arXiv
1912.02877) and Reward-Conditioned Policies (RCP; Kumar, Peng and Levine 2019, arXiv 1912.13465).

A label says how well a step turned out: its return-to-go or its advantage. Statistics are those of
the whole set of labels ``[M]`` that is trained on, but for ``max_target``, which has those of a
minibatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import Array, FloatArray

EPSILON = 1e-5  # keeps constant labels finite, as in AWR (Peng et al. 2019)


def trailing_steps(left: Array, uniform: Array) -> Array:
    """Lengths of segments that run to the end of the episode, as in all experiments of the UDRL
    paper.
    """
    return left


def any_steps(left: Array, uniform: Array) -> Array:
    """Lengths of segments, drawn uniformly from ``1 .. left``; uniform in [0, 1)."""
    return 1 + (uniform * left).astype(left.dtype)


SEGMENTS: dict[str, Callable[[Array, Array], Array]] = {
    "trailing": trailing_steps,
    "any": any_steps,
}
"""How many steps a segment has, by the steps ``left`` from its first one to the end of the
episode.
"""


def next_command(
    command: FloatArray, reward: FloatArray, gamma: float, max_return: float, size: int = 2
) -> FloatArray:
    """What is left of a command after one step (UDRL paper, Algorithm 2), for a batch of episodes.

    command ``[B, C]``, reward ``[B]`` -> as command: ``return <- min((return - reward) / gamma,
    max(max_return, 0))``, and ``horizon <- max(horizon - 1, 1)`` where the ``size`` of a command is
    2. What follows, its guidance, stays. The paper's bound is ``max_return`` itself; where that is
    negative, it would be too low: what is left to lose shrinks to 0 within an episode.
    """
    if command.ndim != 2 or reward.shape != command.shape[:1]:
        raise ValueError(
            f"need command [B, C] and reward [B], got {command.shape} and {reward.shape}"
        )
    left = np.minimum((command[:, :1] - reward[:, None]) / np.float32(gamma), max(max_return, 0.0))
    horizon, guidance = np.maximum(command[:, 1:size] - 1, 1), command[:, size:]
    return np.concatenate([left, horizon, guidance], axis=-1, dtype=command.dtype)


def standardise(x: Tensor, limit: float) -> Tensor:
    """``(x - mean) / (sd + 1e-5)`` of the values ``[M]``, clipped to ``-limit .. limit``."""
    return ((x - x.mean()) / (x.std(correction=0) + EPSILON)).clamp(-limit, limit)


def exponential_weights(z: Tensor, temperature: float, max_weight: float) -> Tensor:
    """``min(exp(z / temperature), max_weight)`` of standardised values, scaled to mean 1; ``[M]``
    -> ``[M]``.

    The temperature belongs to standardised values, as in AWR's released code; the paper's 0.05
    belongs to raw ones.
    """
    weight = (z / temperature).exp().clamp(max=max_weight)
    return weight / weight.mean()


def effective_sample_share(weight: Tensor) -> Tensor:
    """Effective sample size of the weights ``[M]`` over ``M``: 1 for equal weights, ``1 / M``
    for a single one.
    """
    return weight.sum().square() / (weight.square().sum() * weight.numel())


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """``1 - Var(target - prediction) / Var(target)`` of ``[M]``: 1 is perfect, 0 no better than
    a constant.
    """
    if prediction.shape != target.shape:
        raise ValueError(
            f"prediction {tuple(prediction.shape)} does not fit target {tuple(target.shape)}"
        )
    return 1 - (target - prediction).var(correction=0) / (target.var(correction=0) + EPSILON**2)


def rank_correlation(x: Array, y: Array) -> float:
    """Spearman's, of ``x`` and ``y [n]``, where equal values share their mean rank; 0 if either
    does not vary.
    """
    ranks = []
    for values in (x, y):
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(count) - (count - 1) / 2)[place])
    return (
        float(np.asarray(np.corrcoef(ranks))[0, 1]) if all(np.ptp(each) for each in ranks) else 0.0
    )


def feature_size(size: int, continuous: bool) -> int:
    """How many features ``phi(a)`` an action of this size has."""
    return 1 + 2 * size if continuous else size


def action_values(output: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """``Q(a) = w . phi(a)``, ``[B]``, of a critic's output ``[B, 1 + F]``, V and w; and ``phi(a)``,
    ``[B, F]``.

    Discrete actions ``[B]`` are one-hot; of continuous ones ``[B, A]`` it is 1, a and a^2.
    """
    if action.is_floating_point():
        features = torch.cat([torch.ones_like(action[:, :1]), action, action.square()], dim=-1)
    else:
        features = torch.nn.functional.one_hot(action, output.shape[-1] - 1).to(output.dtype)
    return (output[:, 1:] * features).sum(-1), features


def fitted_advantage(output: Tensor, action: Tensor) -> Tensor:
    """``Q(a) - V``, ``[B]``, of a critic's output ``[B, 1 + F]``. One network has both: errors
    in common cancel.
    """
    return action_values(output, action)[0] - output[:, 0]


def value_error(
    output: Tensor, target: Tensor, action: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean squared error of V to ``[B]``, plus that of Q(a) if actions are given; and its
    gradient, as output ``[B, 1 + F]``.
    """
    error = output[:, 0] - target
    grad = error.unsqueeze(-1) * (2 / len(error))
    if action is None:
        return error.square().mean(), grad
    value, features = action_values(output, action)
    action_error = value - target
    to_weights = action_error.unsqueeze(-1) * features * (2 / len(error))
    return error.square().mean() + action_error.square().mean(), torch.cat(
        [grad, to_weights], dim=-1
    )


class Target(NamedTuple):
    """Where commands are drawn from: ``mean + sd * noise``; low and high: the range of the
    labels seen.
    """

    mean: float
    sd: float
    low: float
    high: float


def quantiles(values: Tensor, shares: Sequence[float]) -> Tensor:
    """Quantiles of all values ``[...]``, one for each share: between two values on a straight
    line, of very many the nearest.
    """
    flat = values.flatten()
    if len(flat) <= 2**24:  # the most that torch takes
        return torch.quantile(flat, flat.new_tensor(shares))
    return flat.sort().values[[round(share * (len(flat) - 1)) for share in shares]]


def range_target(label: Tensor, max_return: float) -> Target:
    """Mean and sd of the labels ``[M]``, ``mean`` and ``mean + sd`` at most ``max_return`` (UDRL
    paper, section 2.2.4).

    With uniform noise commands fill ``[mean, mean + sd]``. The paper has no such limit; a return
    that the environment cannot give asks the network to extrapolate.
    """
    mean = label.mean().clamp(max=max_return)
    return _target(
        mean, (label.mean() + label.std(correction=0)).clamp(max=max_return) - mean, label
    )


def tilted_target(label: Tensor, weight: Tensor) -> Target:
    """Mean and sd of the labels ``[M]`` resampled with probabilities proportional to the weights
    ``[M]``.

    With exponential weights this is ``p(Z) exp(Z / beta)``, the optimal distribution of the RCP
    paper, and unlike its log-sum-exp it stays among labels that were seen.
    """
    share = weight / weight.sum()
    mean = (share * label).sum()
    return _target(mean, (share * (label - mean).square()).sum().sqrt(), label)


def quantile_target(label: Tensor, quantile: float) -> Target:
    """Centred on a quantile of the labels ``[M]``, with the sd of the labels above it."""
    level = quantiles(label, [quantile])[0]
    return _target(level, label[label >= level].std(correction=0), label)


def max_target(label: Tensor) -> Target:
    """The highest label ``[M]``, with the sd of all, as in the earlier implementation: it asks for
    the largest outlier.

    Of labels ``[U, B]`` of minibatches, the highest of all with the sd of the minibatch that it is
    in.
    """
    batches = label.reshape(-1, label.shape[-1])
    return _target(label.max(), batches[batches.amax(1).argmax()].std(correction=0), label)


def _target(mean: Tensor, sd: Tensor, label: Tensor) -> Target:
    return Target(float(mean), float(sd), float(label.min()), float(label.max()))


def draw_targets(target: Target, spread: float, noise: Tensor, limited: bool = True) -> Tensor:
    """Commands ``[n]`` from noise ``[n]``; ``spread`` scales the sd. limited: never outside
    ``low .. high``.
    """
    drawn = target.mean + spread * target.sd * noise
    return drawn.clamp(target.low, target.high) if limited else drawn


def uniform_noise(rng: np.random.Generator, count: int) -> Tensor:
    """Uniform in [0, 1), ``[count]``."""
    return torch.from_numpy(rng.random(count)).float()


def normal_noise(rng: np.random.Generator, count: int) -> Tensor:
    """Standard normal, ``[count]``."""
    return torch.from_numpy(rng.standard_normal(count, dtype=np.float32))


NOISES: dict[str, Callable[[np.random.Generator, int], Tensor]] = {
    "range": uniform_noise,
    "tilted": normal_noise,
    "quantile": normal_noise,
    "max": normal_noise,
}
"""The noise of commands that are drawn from each kind of target."""
