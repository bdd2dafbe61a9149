"""What every learner shares: ``N`` members in one object, each what it would be alone.

Up to rounding: in what order a matrix product is added up may depend on the number of members. Equal shapes give equal bits.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lightning_rl.agents.optim import learners_only
from lightning_rl.agents.replay import MemberReplay, Transition
from lightning_rl.core.seeding import MemberNoise, derive_seed
from lightning_rl.nets.stacked import Stacked


class Agent(Stacked, ABC):
    """``N`` learners trained in lock-step.

    All randomness of member ``n`` is a function of ``seeds[n]`` and the step, so its company changes nothing. ``step``
    counts the lock-step decisions of a training run from 0; ``active`` ``[N]`` bool says who learns.
    """

    def __init__(self, seeds: Sequence[int], device: str = "cpu"):
        self.seeds, self.device = list(seeds), device
        self._noises: list[MemberNoise] = []

    @property
    def num_members(self) -> int:
        return len(getattr(self, self.member_tensors[0]))

    @abstractmethod
    def act(self, obs: Tensor, episode: Tensor, step: int) -> Tensor:
        """Exploring actions for obs ``[N, O]`` in each member's ``episode`` ``[N]`` (0, 1, ..), as ``learn`` takes them."""

    @abstractmethod
    def greedy(self, obs: Tensor) -> Tensor:
        """Actions for the environment without exploration, for obs ``[N, K, O]``: ``[N, K]`` or ``[N, K, A]``."""

    @abstractmethod
    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor) -> None:
        """Takes in one transition of every member; active members learn. over ``[N]``: the episode ended here."""

    def memory(self) -> MemberReplay | None:
        """The replay memory, for agents that have one."""
        return None

    @property
    @abstractmethod
    def num_updates(self) -> Tensor:
        """Optimiser steps of each member so far ``[N]`` int64."""

    @abstractmethod
    def module(self, row: int) -> nn.Module:
        """One member's actor, or its action values, as a plain network from obs ``[..., O]``."""

    @abstractmethod
    def adopt(self, net: nn.Module) -> None:
        """Every member starts from the weights of a network like those of ``module``; RuntimeError if they do not fit."""

    def greedy_copy(self, rows: Tensor) -> Agent:
        """The members ``rows`` (indices or mask) as they are now, for ``greedy`` alone."""
        other = copy.copy(self)
        for name in self.member_tensors:
            setattr(other, name, getattr(self, name)[rows])
        return other

    def to_env(self, action: Tensor) -> Tensor:
        """The environment's action for one of ``act``."""
        return action

    def generators(self, purpose: str) -> list[torch.Generator]:
        """One generator per member, e.g. for the initialisation."""
        return [torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in self.seeds]

    def noise(self, purpose: str, shape: tuple[int, ...], kind: str, lengths: Sequence[int] | None = None) -> MemberNoise:
        """A stream of noise that follows the members through ``keep``."""
        self._noises.append(MemberNoise(self.seeds, purpose, shape, kind, self.device, lengths))
        return self._noises[-1]

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self.seeds = [self.seeds[n] for n in rows.tolist()]
        for noise in self._noises:
            noise.keep(rows)


def per_member(value: float | Sequence[float], count: int, device: str = "cpu") -> Tensor:
    """``[N]`` double precision from one value for all or one for each."""
    values = torch.as_tensor(value, dtype=torch.float64, device=device)
    if values.ndim and values.shape != (count,):
        raise ValueError(f"need one value or {count}, one per member, got {len(values)}")
    return values.expand(count).clone()


def batch_weights(sizes: Sequence[int], device: str = "cpu") -> Tensor:
    """``[N, max(sizes)]``: 1 / sizes[n] for the first sizes[n] rows of member n's batch, 0 for the padding."""
    size = torch.tensor(sizes, device=device).unsqueeze(1)
    inside = torch.arange(max(sizes), device=device) < size
    return inside / size.float()


def value_and_grad(loss: Callable[[Tensor], Tensor], params: Tensor) -> tuple[Tensor, Tensor]:
    """Losses ``[N]`` of members that depend on their own row of params ``[N, D]`` alone, and the gradients ``[N, D]``."""
    leaf = params.detach().requires_grad_()
    with torch.enable_grad():
        value = loss(leaf)
        (grad,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), grad


def track(target: Tensor, params: Tensor, tau: float, active: Tensor) -> None:
    """``target <- target + tau (params - target)`` in place for active members; all ``[N, D]``."""
    target.lerp_(learners_only(params, active), (tau * active.to(target.dtype)).unsqueeze(1))
