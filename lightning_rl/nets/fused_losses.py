"""Losses of a network's output ``[O, B]``, as compiled functions that write the gradient to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lightning_rl.core.compiled import compiled, inlined
from lightning_rl.functional.distributions import Gaussian
from lightning_rl.nets.fused import F, tanh

_HALF_LOG_TWO_PI = F(0.5 * np.log(2 * np.pi))
LOG_STD_MIN, LOG_STD_MAX = map(F, Gaussian.LOG_STD_RANGE)


@compiled
def categorical_loss(logits: Any, action: Any, weight: Any, grad: Any) -> Any:
    """Mean of ``-weight * log_prob`` ``[B]``; see ``Categorical``. action ``[B, 1]``: numbers."""
    size, batch = logits.shape
    loss = F(0)
    for k in range(batch):
        top = logits[0, k]
        for a in range(1, size):
            top = max(top, logits[a, k])
        total = F(0)
        for a in range(size):
            grad[a, k] = np.exp(logits[a, k] - top)
            total += grad[a, k]
        chosen, share = int(action[k, 0]), weight[k] / F(batch)
        loss -= share * (logits[chosen, k] - top - np.log(total))
        for a in range(size):
            grad[a, k] *= share / total
        grad[chosen, k] -= share
    return loss


@compiled
def gaussian_loss(output: Any, action: Any, weight: Any, grad: Any) -> Any:
    """The same for ``Gaussian`` and actions ``[B, A]``."""
    batch, size = action.shape
    loss = F(0)
    for k in range(batch):
        share = weight[k] / F(batch)
        for a in range(size):
            mean, free = tanh(output[a, k]), output[size + a, k]
            log_std = min(max(free, LOG_STD_MIN), LOG_STD_MAX)
            inverse = np.exp(-log_std)
            z = (action[k, a] - mean) * inverse
            loss += share * (F(0.5) * z * z + log_std + _HALF_LOG_TWO_PI)
            grad[a, k] = -share * z * inverse * (F(1) - mean * mean)
            grad[size + a, k] = share * (F(1) - z * z) if free == log_std else F(0)
    return loss


@compiled
def value_loss(output: Any, target: Any, features: Any, grad: Any) -> Any:
    """Mean squared error of V, the first output, to target ``[B]``, plus that of Q(a).

    ``Q(a) = w . phi(a)``, where w are the other outputs; features ``[B, F]``: phi(a). See
    ``functional.critic.critic_loss``.
    """
    batch, size = features.shape
    loss, twice = F(0), F(2 / batch)
    for k in range(batch):
        error = output[0, k] - target[k]
        loss += error * error
        grad[0, k] = twice * error
        if size == 0:
            continue
        error = -target[k]
        for i in range(size):
            error += output[1 + i, k] * features[k, i]
        loss += error * error
        for i in range(size):
            grad[1 + i, k] = twice * error * features[k, i]
    return loss / F(batch)


@inlined
def _log_sum(logits: Any, k: Any) -> Any:
    """The logarithm of the sum of the exponentials of column ``k``."""
    top = logits[0, k]
    for a in range(1, len(logits)):
        top = max(top, logits[a, k])
    total = F(0)
    for a in range(len(logits)):
        total += np.exp(logits[a, k] - top)
    return top + np.log(total)


@compiled
def categorical_log_prob(logits: Any, action: Any, log_prob: Any) -> None:
    """Writes ``log_prob`` ``[B]`` of ``Categorical``; action ``[B, 1]``: numbers."""
    for k in range(len(log_prob)):
        log_prob[k] = logits[int(action[k, 0]), k] - _log_sum(logits, k)


@compiled
def categorical_entropy(logits: Any, coef: float, grad: Any) -> None:
    """Adds to ``grad`` the slope of ``-coef`` times the mean entropy of ``Categorical``."""
    size, batch = logits.shape
    share = F(coef / batch)
    for k in range(batch):
        log_sum = _log_sum(logits, k)
        entropy = F(0)
        for a in range(size):
            log_prob = logits[a, k] - log_sum
            entropy -= np.exp(log_prob) * log_prob
        for a in range(size):
            log_prob = logits[a, k] - log_sum
            grad[a, k] += share * np.exp(log_prob) * (log_prob + entropy)


@compiled
def free_gaussian_log_prob(output: Any, log_std: Any, action: Any, log_prob: Any) -> None:
    """The same for actions ``[B, A]`` of mean ``tanh(output)`` ``[A, B]`` and log_std ``[A]``."""
    batch, size = action.shape
    log_prob[:] = 0
    for a in range(size):
        inverse, constant = np.exp(-log_std[a]), log_std[a] + _HALF_LOG_TWO_PI
        for k in range(batch):
            z = (action[k, a] - tanh(output[a, k])) * inverse
            log_prob[k] -= F(0.5) * z * z + constant


@compiled
def free_gaussian_loss(
    output: Any, log_std: Any, action: Any, weight: Any, grad: Any, to_log_std: Any
) -> None:
    """The slope of the mean of ``-weight * log_prob`` ``[B]`` to ``output`` and ``log_std``."""
    batch, size = action.shape
    for a in range(size):
        inverse, total = np.exp(-log_std[a]), F(0)
        for k in range(batch):
            share = weight[k] / F(batch)
            mean = tanh(output[a, k])
            z = (action[k, a] - mean) * inverse
            grad[a, k] = -share * z * inverse * (F(1) - mean * mean)
            total += share * (F(1) - z * z)
        to_log_std[a] = total


@compiled
def surrogate_weight(
    log_prob: Any, old_log_prob: Any, advantage: Any, clip: float, weight: Any
) -> None:
    """By what ``clipped_surrogate`` multiplies the gradient of each log-probability ``[B]``."""
    low, high = F(1 - clip), F(1 + clip)
    for k in range(len(weight)):
        ratio = np.exp(log_prob[k] - old_log_prob[k])
        gain = ratio * advantage[k]
        limited = min(max(ratio, low), high) * advantage[k]
        weight[k] = F(0) if gain > limited else gain
