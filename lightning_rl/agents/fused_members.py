"""Stacks of members as compiled functions take them: views, which they write to."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from lightning_rl.agents.optim import MemberAdam
from lightning_rl.core.types import Array
from lightning_rl.nets.fused import Learners


def learners_of(adam: MemberAdam, target: Tensor | None = None, tau: float = 0.0) -> Learners:
    """The members that ``adam`` trains; target ``[N, D]``: what follows them by ``tau``."""
    group, moments = adam.param_groups[0], adam.moments
    params = adam.params.data.numpy()
    rate = group["lr"]
    rate = np.full(len(params), rate) if isinstance(rate, float) else rate.numpy()
    max_grad_norm = group["max_grad_norm"]
    adam.counts_changed()
    return Learners(
        params=params,
        average=params if target is None else target.data.numpy(),
        exp_avg=moments["exp_avg"].numpy(),
        exp_avg_sq=moments["exp_avg_sq"].numpy(),
        rate=rate,
        steps=moments["step"].numpy(),
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        eps=group["eps"],
        max_grad_norm=math.inf if max_grad_norm is None else max_grad_norm,
        tau=tau,
    )


def active_members(active: Tensor | None, members: int) -> Array:
    """The mask ``[N]`` of those that learn; None: all."""
    if active is None:
        return np.ones(members, dtype=np.bool_)
    return active.numpy()
