"""Targets, losses and exploration of value-based learners.

Leading dimensions ``[...]`` broadcast (members, batch). ``discount`` is gamma times the probability
that the episode goes on: 0 at a termination, gamma elsewhere, also at a time limit.
"""

from __future__ import annotations

import torch
from torch import Tensor


def q_learning_target(reward: Tensor, discount: Tensor, next_q: Tensor) -> Tensor:
    """``r + discount * max_b Q(s', b)`` (Watkins 1989); next_q ``[..., A]``, the rest ``[...]``."""
    return reward + discount * next_q.amax(-1)


def sarsa_target(reward: Tensor, discount: Tensor, next_q: Tensor, next_action: Tensor) -> Tensor:
    """``r + discount * Q(s', a')`` (Rummery & Niranjan 1994); next_action ``[...]`` int64."""
    return reward + discount * next_q.gather(-1, next_action.unsqueeze(-1)).squeeze(-1)


def double_q_target(
    reward: Tensor, discount: Tensor, next_q: Tensor, next_q_target: Tensor
) -> Tensor:
    """Double DQN: the online network selects the action, the target network evaluates it.

    arXiv 1509.06461, equation 4.

    next_q, next_q_target ``[..., A]`` -> ``[...]``.
    """
    best = (
        next_q.max(-1).indices
    )  # not argmax: the same, but fifty times slower where actions are not the innermost dimension
    return sarsa_target(reward, discount, next_q_target, best)


def dueling_q(value: Tensor, advantage: Tensor) -> Tensor:
    """``Q = V + A - mean(A)`` (Wang et al. 2016, arXiv 1511.06581, equation 9).

    value ``[..., 1]``, advantage ``[..., A]``.
    """
    return value + advantage - advantage.mean(-1, keepdim=True)


def twin_target(reward: Tensor, discount: Tensor, next_q: Tensor) -> Tensor:
    """``r + discount * min(Q1', Q2')`` (Fujimoto et al. 2018, arXiv 1802.09477, equation 10).

    reward, discount ``[N, B]``, next_q ``[N, 2, B]`` -> ``[N, B]``.
    """
    return reward + discount * next_q.amin(-2)


def smoothing_noise(noise: Tensor, std: float, limit: float) -> Tensor:
    """Clipped noise on target actions (ibid., section 5.3) from standard normal noise."""
    return (std * noise).clamp(-limit, limit)


def weighted_squared_error(prediction: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """``sum_b weight_b (prediction_b - target_b)^2`` over the last dimension.

    With weights 1/B the mean. All ``[..., B]``.
    """
    if prediction.shape[-1] != target.shape[-1]:
        raise ValueError(
            f"prediction {list(prediction.shape)} does not fit target {list(target.shape)}"
        )
    return (weight * (prediction - target).square()).sum(-1)


def epsilon_after(episode: Tensor, start: float, minimum: float, decay: float) -> Tensor:
    """Exploration rate of episode 0, 1, ..

    ``start``, then ``start * decay^episode`` but at least ``minimum``.
    """
    return torch.where(episode == 0, start, (start * torch.pow(decay, episode)).clamp(min=minimum))


def epsilon_greedy(q: Tensor, epsilon: Tensor, noise: Tensor) -> Tensor:
    """Actions ``[...]``: with probability epsilon ``[...]`` uniform, else the best.

    Ties go to the lowest index.

    q ``[..., A]``; noise ``[..., 2]`` uniform in [0, 1).
    """
    random = (noise[..., 1] * q.shape[-1]).long()
    return torch.where(noise[..., 0] < epsilon, random, q.argmax(-1))


def boltzmann(q: Tensor, temperature: float, gumbel: Tensor) -> Tensor:
    """Actions ``[...]`` of probability ``softmax(q / temperature)``.

    q ``[..., A]``, gumbel ``[..., A]``: standard Gumbel noise.
    """
    # Over values that do not lie together an argmax takes three times as long.
    return torch.add(q.contiguous(), gumbel, alpha=temperature).argmax(-1)
