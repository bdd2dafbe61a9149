"""World models: networks trained to predict what the environment does.

Young et al. 2023, arXiv 2211.02222.

Parameters are blocks ``[N, D]``. Every model has *features* ``[N, B, X]``, which the value network
reads and roll-outs pass on: the observation itself, or a latent; of a categorical latent the places
of its ones, int64, see ``MemberMLP.forward``. Gradients are written by hand, see ``members``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from pydantic.dataclasses import dataclass
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.schema import STRICT
from lightning_rl.nets.members import Architecture, Layers, MemberMLP

NoiseKind = Literal["uniform", "normal"]
ModelLayers = Sequence[Layers]
"""The layers of each network of a model."""
_NORMAL_2 = 0.9772498680518208  # P(standard normal < 2)


class RealSteps(NamedTuple):
    """Real transitions ``[N, B]``.

    obs, next_obs ``[N, B, O]``, action int64, reward, continues (1, or 0 at a termination).
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    continues: Tensor
    next_obs: Tensor


@dataclass(frozen=True, config=STRICT, kw_only=True)
class LossWeights:
    """Weights of a model's losses.

    kl_prior: of the KL's gradient to the dynamics network; kl_posterior: to the encoder.
    """

    reward_weight: NonNegativeFloat
    continuation_weight: NonNegativeFloat
    obs_weight: NonNegativeFloat
    kl_prior_weight: PositiveFloat
    kl_posterior_weight: NonNegativeFloat


class PlainMLP(MemberMLP):
    """A network that starts as those of the paper's code do.

    Weights are ``1 / sqrt(fan_in)`` times a standard normal number truncated to [-2, 2], so of
    standard deviation ``0.88 / sqrt(fan_in)``, biases are 0: the default of Haiku's linear layers,
    which does not rescale for the truncation.
    """

    def init(
        self, generators: Sequence[torch.Generator], widths: Sequence[int] | None = None
    ) -> Tensor:
        rows = [torch.rand(self.size, generator=g, dtype=torch.float64) for g in generators]
        normal = torch.special.ndtri(1 - _NORMAL_2 + (2 * _NORMAL_2 - 1) * torch.stack(rows))
        scale = self._per_column([piece.bound for piece in self._pieces])
        return (normal * scale * self.columns("weight")).float()


class WorldModel(Architecture, ABC):
    """A model of an environment whose observations are bits.

    nets: its networks, in the order of their columns of the parameter block. feature_size: ``X``.
    noise_kind: of all noise that it takes; noise_size: numbers of it for one sample of ``imagine``;
    encode_noise_size: for one of ``encode``.
    """

    parts: tuple[str, ...] = ("reward", "continuation", "obs")
    """Names of the parts of the loss, in the order in which ``gradient`` returns them."""
    outcome_nets: tuple[int, int] = (0, 1)
    """Indices of the networks that predict reward and continuation."""

    def __init__(
        self,
        nets: Sequence[MemberMLP],
        action_size: int,
        feature_size: int,
        noise_kind: NoiseKind,
        noise_size: int,
        encode_noise_size: int,
    ):
        self.nets = tuple(nets)
        self.feature_size = feature_size
        self.noise_kind = noise_kind
        self.noise_size = noise_size
        self.encode_noise_size = encode_noise_size
        self._one_hot = Constant(torch.eye(action_size))

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return sum(net.size for net in self.nets)

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``."""
        return torch.cat([net.init(generators) for net in self.nets], dim=1)

    def layers(self, params: Tensor) -> list[Layers]:
        """The layers of each network in ``params`` ``[N, D]``, as views."""
        pieces = params.split([net.size for net in self.nets], dim=1)
        return [net.layers(piece) for net, piece in zip(self.nets, pieces, strict=True)]

    def _run(self, number: int, layers: ModelLayers, x: Tensor) -> Tensor:
        return self.nets[number].forward(layers[number], x)[0]

    def join(self, features: Tensor, action: Tensor) -> Tensor:
        """``[features, one-hot action]`` ``[N, B, X + A]``: what a step depends on.

        features ``[N, B, X]``, action ``[N, B]``.
        """
        if not features.is_floating_point():
            return torch.cat([features, self.feature_size + action.unsqueeze(-1)], dim=-1)
        one_hot = torch.nn.functional.embedding(action, self._one_hot.on(features.device))
        return torch.cat([features, one_hot], dim=-1)

    @abstractmethod
    def gradient(
        self,
        layers: ModelLayers,
        real: RealSteps,
        noise: Tensor,
        weights: LossWeights,
        into: ModelLayers,
    ) -> Tensor:
        """Writes the gradient of the weighted loss, a mean over the batch, ``into`` layers.

        None of it passes to the inputs.

        Args:
            layers: of the parameters.
            real: transitions to learn from.
            noise: for one sample of ``encode`` each, ``[N, B, encode_noise_size]``.
            weights: of the parts of the loss.
            into: layers of a block ``[N, D]``, which are overwritten.

        Returns:
            The unweighted ``parts`` of the loss, ``[len(parts), N]``.
        """

    @abstractmethod
    def encode(self, layers: ModelLayers, obs: Tensor, noise: Tensor | None) -> Tensor:
        """Features of observations ``[N, B, O]`` for noise ``[N, B, encode_noise_size]``.

        None: the mode.
        """

    @abstractmethod
    def imagine(self, layers: ModelLayers, joined: Tensor, noise: Tensor) -> Tensor:
        """A sample of the features ``[N, B, X]`` after a step.

        For ``joined`` and noise ``[N, B, noise_size]``.
        """

    def outcome(self, layers: ModelLayers, joined: Tensor) -> tuple[Tensor, Tensor]:
        """The expected reward of a step and the probability of going on after it, ``[N, B]`` each.

        The states of a roll-out do not depend on them, so they can be computed for all its steps at
        once, afterwards.
        """
        reward, continuation = self.outcome_nets
        mean, logit = self._run(reward, layers, joined), self._run(continuation, layers, joined)
        return mean.squeeze(-1), logit.squeeze(-1).sigmoid()

    @abstractmethod
    def decode(self, layers: ModelLayers, features: Tensor) -> Tensor:
        """The probability of each bit of the observation ``[N, B, O]``."""
