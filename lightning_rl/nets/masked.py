"""Networks whose outputs for actions that may not be taken are lowest.

The mask is the end of the observation, see ``envs.action_masks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from lightning_rl.nets.members import MemberPullback

LOWEST = -1e9
"""A logit or a value that is never chosen, with which sums are finite."""


def masked(output: Tensor, obs: Tensor) -> Tensor:
    """An output ``[..., A]`` that is lowest where the mask of obs ``[..., O]`` is 0."""
    return output.masked_fill(obs[..., -output.shape[-1] :] < 0.5, LOWEST)


class Masked(nn.Module):
    """A network of obs ``[..., O]``, and maybe of a command beside it, that gives ``[..., A]``."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, obs: Tensor, *command: Tensor) -> Tensor:
        return masked(self.net(obs, *command), obs)


class MaskedMemberNet:
    """The same of members: a ``MemberMLP`` or the like that gives ``[N, B, A]``."""

    compilable = False

    def __init__(self, net: Any):
        self.net, self.size = net, net.size

    def init(self, *arguments: Any) -> Tensor:
        """Fresh parameters ``[N, D]``."""
        return cast(Tensor, self.net.init(*arguments))

    def __call__(self, params: Tensor, obs: Tensor) -> Tensor:
        return masked(self.net(params, obs), obs)

    def vjp(self, params: Tensor, obs: Tensor) -> tuple[Tensor, MemberPullback]:
        """See ``MemberMLP.vjp``; gradients are asked for of actions that were taken alone."""
        output, pullback = self.net.vjp(params, obs)
        return masked(output, obs), pullback

    def module(self, params: Tensor) -> nn.Module:
        """Member ``params`` ``[D]`` as a plain module."""
        return Masked(self.net.module(params))

    def from_modules(self, modules: Sequence[nn.Module]) -> Tensor:
        """The block ``[N, D]`` of plain modules laid out as ``module`` lays them out."""
        return cast(Tensor, self.net.from_modules([cast(Masked, each).net for each in modules]))


def epsilon_greedy_of_possible(q: Tensor, epsilon: Tensor, noise: Tensor) -> Tensor:
    """``functional.value_learning.epsilon_greedy``, whose random actions are possible ones, too."""
    possible = q > LOWEST / 2
    number = (noise[..., 1] * possible.sum(-1)).long()
    random = (possible.cumsum(-1) > number.unsqueeze(-1)).long().argmax(-1)
    return torch.where(noise[..., 0] < epsilon, random, q.argmax(-1))
