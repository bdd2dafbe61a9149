"""Losses of policy-gradient methods: likelihood-ratio term, baseline, entropy bonus, actor-critic.

Every loss is a mean over time steps, not over episodes: the published numbers of the course
assignment that we follow are met only so. All are functions of ``log_prob``, ``entropy`` and
``value``, so they serve discrete and continuous actions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.functional.returns import check_same_shape


def reinforce_loss(log_prob: Tensor, weight: Tensor) -> Tensor:
    """``-mean(weight * log_prob)``: its gradient is the REINFORCE estimate (Williams 1992).

    log_prob ``[...]`` of the actions taken, weight ``[...]`` (a return or an advantage; no gradient
    flows into it) -> scalar. ValueError for unequal shapes.
    """
    check_same_shape(log_prob=log_prob, weight=weight)
    return -(weight.detach() * log_prob).mean()


def no_baseline(returns: Tensor, last: Tensor) -> Tensor:
    """Zeros; returns and last as in ``time_step_baseline``."""
    return torch.zeros_like(returns)


def batch_baseline(returns: Tensor, last: Tensor) -> Tensor:
    """Mean of the returns-to-go over all steps of the batch: one scalar.

    returns and last as in ``time_step_baseline``. The mean holds the very samples it is subtracted
    from; the bias of order 1/B is ignored, as in the assignment.
    """
    check_same_shape(returns=returns, last=last)
    return returns.mean()


def time_step_baseline(returns: Tensor, last: Tensor) -> Tensor:
    """Mean of the returns-to-go at the same time step, over all ``E`` episodes; those that have
    ended count as 0.

    returns ``[B]`` of episodes that lie one behind another, last ``[B]``: the last step of each ->
    ``[B]``. A baseline may depend on the time step, as on the state, because it does not depend on
    the action. Counting ended episodes as 0 keeps the baseline of the few longest episodes from
    being their own return.
    """
    check_same_shape(returns=returns, last=last)
    ends = last.nonzero().squeeze(-1)
    lengths = torch.diff(ends, prepend=ends.new_full((1,), -1))
    first = (ends + 1 - lengths).repeat_interleave(lengths)
    time = torch.arange(len(returns), device=returns.device) - first
    total = returns.new_zeros(int(lengths.max())).index_add(0, time, returns)
    return total[time] / len(ends)


BASELINES = {"none": no_baseline, "batch": batch_baseline, "time_step": time_step_baseline}


def normalised(weight: Tensor) -> Tensor:
    """``(w - mean) / (std + 1e-8)`` over all entries, with the population's standard deviation."""
    return (weight - weight.mean()) / (weight.std(correction=0) + 1e-8)


def entropy_loss(entropy: Tensor, max_entropy: float, beta: float) -> Tensor:
    """``-beta * mean(entropy) / max_entropy``: -beta if uniform, 0 if deterministic.

    entropy ``[...]`` and max_entropy in nats; the latter is ``ln A`` for ``A`` discrete actions.
    """
    return -beta * entropy.mean() / (max_entropy or 1.0)


def value_loss(value: Tensor, target: Tensor, delta: float) -> Tensor:
    """``delta * mean((value - target)^2)``, both ``[...]``; no gradient flows into the target.

    A column ``[B, 1]`` of values is refused, because against targets ``[B]`` it would become ``[B,
    B]`` in silence.
    """
    check_same_shape(value=value, target=target)
    return delta * (value - target.detach()).square().mean()


def next_values(value: Tensor, final_value: Tensor, last: Tensor) -> Tensor:
    """``V(s')`` of each step of episodes that lie one behind another.

    value ``[T]`` of the observations acted on, final_value ``[E]`` of the final observation of each
    of the ``E`` episodes, last ``[T]``, with ``E`` ones -> ``[T]``.
    """
    check_same_shape(value=value, last=last)
    following = value.roll(-1)
    following[last] = final_value
    return following
