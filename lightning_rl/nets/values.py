"""Value networks with a member axis; parameters are blocks ``[N, D]``, as in ``members``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn

from lightning_rl.functional.value_learning import dueling_q
from lightning_rl.nets.members import ActivationName, MemberMLP, MemberPullback


@dataclass(frozen=True)
class DuelingNet:
    """Features, a linear layer of them, then a head for the value and one for the advantages.

    arXiv 1511.06581.

    Each head has one hidden layer as wide as the features.
    """

    in_size: int
    hidden: tuple[int, ...]
    num_actions: int
    feature_size: int
    activation: ActivationName = "relu"

    @cached_property
    def parts(self) -> tuple[MemberMLP, MemberMLP, MemberMLP]:
        """Features, value head, advantage head: columns of the block in this order."""
        width = self.feature_size
        return (
            MemberMLP(self.in_size, self.hidden, width, self.activation),
            MemberMLP(width, (width,), 1, self.activation),
            MemberMLP(width, (width,), self.num_actions, self.activation),
        )

    @property
    def compilable(self) -> bool:
        """See ``MemberMLP``."""
        return all(part.compilable for part in self.parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def split(self, params: Tensor) -> tuple[Tensor, ...]:
        """The columns of each of ``parts`` in ``params`` ``[..., D]``."""
        return params.split([part.size for part in self.parts], dim=-1)

    def init(
        self, generators: Sequence[torch.Generator], widths: Sequence[int] | None = None
    ) -> Tensor:
        """Fresh parameters ``[N, D]``.

        widths: of the features' hidden layers, see ``MemberMLP.init``.
        """
        features, *heads = self.parts
        return torch.cat(
            [features.init(generators, widths), *(head.init(generators) for head in heads)], dim=1
        )

    def __call__(self, params: Tensor, x: Tensor) -> Tensor:
        """Q values ``[N, B, A]`` for observations x ``[N, B, O]``."""
        features, value, advantage = self.parts
        a, b, c = self.split(params)
        z = features(a, x)
        return dueling_q(value(b, z), advantage(c, z))

    @torch.no_grad()
    def vjp(self, params: Tensor, x: Tensor) -> tuple[Tensor, MemberPullback]:
        """See ``MemberMLP.vjp``."""
        features, value, advantage = self.parts
        a, b, c = self.split(params)
        z, to_features = features.vjp(a, x)
        v, to_value = value.vjp(b, z)
        adv, to_advantage = advantage.vjp(c, z)

        def pullback(grad: Tensor, into: Tensor, want_x: bool = False) -> Tensor | None:
            into_a, into_b, into_c = self.split(into)
            # ``dueling_q`` subtracts the advantages' mean, so their gradient is this one less its
            # mean: a symmetric projection.
            z_by_value = to_value(grad.sum(-1, keepdim=True), into_b, True)
            z_by_advantage = to_advantage(dueling_q(torch.zeros_like(v), grad), into_c, True)
            return to_features(
                cast(Tensor, z_by_value) + cast(Tensor, z_by_advantage), into_a, want_x
            )

        return dueling_q(v, adv), pullback

    def module(self, params: Tensor) -> nn.Module:
        """Member ``params`` ``[D]`` as a plain module."""
        features, value, advantage = (
            part.module(piece) for part, piece in zip(self.parts, self.split(params), strict=True)
        )
        return DuelingModule(features, value, advantage)

    def from_modules(self, modules: Sequence[nn.Module]) -> Tensor:
        """The block ``[N, D]`` of plain modules laid out as ``module`` lays them out."""
        names = ("features", "value", "advantage")
        blocks = [
            part.from_modules([getattr(m, name) for m in modules])
            for part, name in zip(self.parts, names, strict=True)
        ]
        return torch.cat(blocks, dim=1)


MemberNet = MemberMLP | DuelingNet
"""What DDQN learns."""


class DuelingModule(nn.Module):
    """One dueling network: obs ``[..., O]`` to Q values ``[..., A]``."""

    def __init__(self, features: nn.Module, value: nn.Module, advantage: nn.Module):
        super().__init__()
        self.features, self.value, self.advantage = features, value, advantage

    def forward(self, obs: Tensor) -> Tensor:
        z = self.features(obs)
        return dueling_q(self.value(z), self.advantage(z))


@dataclass(frozen=True)
class TwinCritic:
    """Two critics of observation and action side by side.

    Parameters ``[N, 2 D]``, run as a stack of 2 N.
    """

    net: MemberMLP

    @property
    def size(self) -> int:
        return 2 * self.net.size

    def init(
        self, generators: Sequence[torch.Generator], widths: Sequence[int] | None = None
    ) -> Tensor:
        """Fresh parameters ``[N, 2 D]``; see ``MemberMLP.init``."""
        return torch.cat(
            [self.net.init(generators, widths), self.net.init(generators, widths)], dim=1
        )

    def __call__(self, params: Tensor, obs: Tensor, action: Tensor) -> Tensor:
        """Both values ``[N, 2, B]`` of obs ``[N, B, O]`` and action ``[N, B, A]``."""
        members = len(params)
        x = torch.cat([obs, action], dim=-1).repeat_interleave(2, dim=0)
        return self.net(params.reshape(2 * members, -1), x).squeeze(-1).unflatten(0, (members, 2))

    def first(self, params: Tensor, obs: Tensor, action: Tensor) -> Tensor:
        """The first critic's value ``[N, B]``."""
        return self.net(params[:, : self.net.size], torch.cat([obs, action], dim=-1)).squeeze(-1)
