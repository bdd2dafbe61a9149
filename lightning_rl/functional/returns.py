"""Returns along episodes."""

from __future__ import annotations

import torch
from torch import Tensor


def reverse_scan(decay: Tensor, x: Tensor) -> Tensor:
    """``y[t] = x[t] + decay[t] * y[t + 1]`` along the last dimension, beginning with ``y[T] = 0``.

    decay ``[..., T]`` and x ``[..., T]`` -> ``[..., T]``. Episodes may lie one behind another: a
    decay of 0 at an episode's last step keeps them apart. Takes log2(T) passes by doubling, not T
    steps.
    """
    check_same_shape(decay=decay, x=x)
    stride, length = 1, x.shape[-1]
    while stride < length:
        x = torch.cat(
            [x[..., :-stride] + decay[..., :-stride] * x[..., stride:], x[..., -stride:]], dim=-1
        )
        decay = torch.cat(
            [decay[..., :-stride] * decay[..., stride:], decay[..., -stride:]], dim=-1
        )
        stride *= 2
    return x


def lambda_returns(
    reward: Tensor, discount: Tensor, next_value: Tensor, last: Tensor, gae_lambda: float
) -> Tensor:
    """TD(lambda) returns ``G[t] = r + discount * ((1 - lambda) V(s') + lambda G[t + 1])``.

    All ``[..., T]``; episodes may lie one behind another. discount: gamma, and 0 where the episode
    terminated; a truncated episode keeps its gamma, so that it is bootstrapped. last: the last step
    of each episode, where ``G = r + discount * V(s')``.

    lambda = 1 gives discounted returns, lambda = 0 one-step targets. Minus V they are the
    generalised advantage estimates of Schulman et al. 2016 (arXiv 1506.02438, equation 16).
    """
    check_same_shape(reward=reward, discount=discount, next_value=next_value, last=last)
    trace = gae_lambda * (~last).to(reward.dtype)
    return reverse_scan(discount * trace, reward + discount * (1 - trace) * next_value)


def discounted_returns(reward: Tensor, gamma: float, last: Tensor) -> Tensor:
    """Discounted returns-to-go of episodes that lie one behind another, all ``[..., T]``.

    last: the last step of each episode. However it ended, nothing comes after it: a time limit
    counts as an end.
    """
    nothing = torch.zeros_like(reward)
    return lambda_returns(reward, torch.full_like(reward, gamma), nothing, last, gae_lambda=1.0)


def check_same_shape(**tensors: Tensor) -> None:
    """ValueError that names the shapes unless all are equal.

    So ``[B, 1]`` is never broadcast against ``[B]``.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"shapes must be equal, got {shapes}")
