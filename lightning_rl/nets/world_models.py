"""World models: networks that are trained to be the environment. Parameters are blocks ``[N, D]``.

Every model has *features* ``[N, B, X]``, which the value network reads and roll-outs pass on: the observation, or a latent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from lightning_rl.functional.world_model import (
    bits_loss,
    bits_sample,
    continuation_loss,
    reward_loss,
)  # fmt: skip
from lightning_rl.nets.latents import Latent, NoiseKind
from lightning_rl.nets.trunks import Layers, TrunkActivation, TrunkNet


class RealSteps(NamedTuple):
    """Real transitions ``[N, B]``: obs, next_obs ``[N, B, O]``, action int64, reward, continues (1, or 0 at a termination)."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    continues: Tensor
    next_obs: Tensor


class LossWeights(NamedTuple):
    """Of the parts of the loss; the KL ones for latent models: of its gradient to the dynamics network and to the encoder."""

    reward: float
    continuation: float
    obs: float
    kl_prior: float = 0.0
    kl_posterior: float = 0.0


@dataclass(frozen=True)
class WorldModel(ABC):
    """A model of an environment with ``obs_size`` bits and ``action_size`` actions.

    Its networks have the hidden layers ``hidden``. noise_kind: of all the noise that it takes.
    """

    obs_size: int
    action_size: int
    hidden: tuple[int, ...]
    activation: TrunkActivation
    weights: LossWeights

    @property
    @abstractmethod
    def nets(self) -> tuple[TrunkNet, ...]:
        """The networks, in the order of their columns."""

    @property
    @abstractmethod
    def feature_size(self) -> int: ...

    @property
    @abstractmethod
    def noise_kind(self) -> NoiseKind: ...

    @property
    @abstractmethod
    def noise_size(self) -> int:
        """Numbers of noise for one sample of features by ``imagine``."""

    @property
    def encode_noise_size(self) -> int:
        """Numbers of noise that ``encode`` takes."""
        return self.noise_size

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return sum(net.size for net in self.nets)

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``."""
        return torch.cat([net.init(generators) for net in self.nets], dim=1)

    def net(self, in_size: int, out_size: int) -> TrunkNet:
        """One of the networks, which differ in their ends alone."""
        return TrunkNet(in_size, self.hidden, out_size, self.activation)

    def layers(self, params: Tensor) -> list[Layers]:
        """The layers of each network, as views."""
        pieces = params.split([net.size for net in self.nets], dim=1)
        return [net.layers(piece) for net, piece in zip(self.nets, pieces, strict=True)]

    parts: ClassVar[tuple[str, ...]] = ("reward", "continuation", "obs")
    """Of the loss."""

    @abstractmethod
    def gradient(self, layers: Sequence[Layers], real: RealSteps, noise: Tensor, into: Sequence[Layers]) -> Tensor:
        """Writes the gradient of the weighted loss, a mean over the batch, ``into``; its ``parts`` ``[P, N]``, unweighted."""

    @abstractmethod
    def encode(self, layers: Sequence[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        """Features of observations ``[N, B, O]`` for noise ``[N, B, encode_noise_size]``; None: the mode."""

    @abstractmethod
    def imagine(self, layers: Sequence[Layers], joined: Tensor, noise: Tensor) -> Tensor:
        """A sample of the features ``[N, B, X]`` after a step, for ``joined`` and noise ``[N, B, noise_size]``."""

    @abstractmethod
    def outcome(self, layers: Sequence[Layers], joined: Tensor) -> tuple[Tensor, Tensor]:
        """The expected reward of a step and the probability of going on after it, ``[N, B]`` each.

        Roll-outs do not depend on them, so all their steps can be asked for at once.
        """

    @abstractmethod
    def decode(self, layers: Sequence[Layers], features: Tensor) -> Tensor:
        """The probability of each bit of the observation ``[N, B, O]``."""

    def join(self, features: Tensor, action: Tensor) -> Tensor:
        """``[features, one-hot action]`` ``[N, B, X + A]``: what a step depends on. features ``[N, B, X]``, action ``[N, B]``."""
        one_hot = torch.nn.functional.embedding(action, self._eye.to(features.device))
        return torch.cat([features, one_hot], dim=-1)

    @cached_property
    def _eye(self) -> Tensor:
        return torch.eye(self.action_size)


@dataclass(frozen=True)
class SimpleModel(WorldModel):
    """Predicts reward, continuation and each bit of the next observation from observation and action, by a network each.

    faithful_bits: see ``bits_sample``.
    """

    faithful_bits: bool = False

    @cached_property
    def nets(self) -> tuple[TrunkNet, ...]:
        """Reward, continuation, next observation."""
        return tuple(self.net(self.obs_size + self.action_size, out) for out in (1, 1, self.obs_size))

    @property
    def feature_size(self) -> int:
        return self.obs_size

    @property
    def noise_kind(self) -> NoiseKind:
        return "uniform"

    @property
    def noise_size(self) -> int:
        return self.obs_size

    @property
    def encode_noise_size(self) -> int:
        return 0

    def gradient(self, layers: Sequence[Layers], real: RealSteps, noise: Tensor, into: Sequence[Layers]) -> Tensor:
        joined = self.join(real.obs, real.action)
        passes = [net.forward(mine, joined) for net, mine in zip(self.nets, layers, strict=True)]
        (reward, _), (continuation, _), (logits, _) = passes
        losses = [
            reward_loss(real.reward, reward.squeeze(-1)),
            continuation_loss(real.continues, continuation.squeeze(-1)),
            bits_loss(real.next_obs, logits, real.continues),  # nothing follows a termination
        ]
        weights, count = (self.weights.reward, self.weights.continuation, self.weights.obs), real.reward.shape[1]
        for k, (net, (out, inputs)) in enumerate(zip(self.nets, passes, strict=True)):
            net.parameter_gradient(layers[k], inputs, weights[k] / count * losses[k][1].view_as(out), into[k])
        return torch.stack([loss for loss, _ in losses]).mean(-1)

    def encode(self, layers: Sequence[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        return obs

    def imagine(self, layers: Sequence[Layers], joined: Tensor, noise: Tensor) -> Tensor:
        return bits_sample(self.nets[2](layers[2], joined), noise, self.faithful_bits)

    def outcome(self, layers: Sequence[Layers], joined: Tensor) -> tuple[Tensor, Tensor]:
        reward, continuation = (self.nets[k](layers[k], joined).squeeze(-1) for k in (0, 1))
        return reward, continuation.sigmoid()

    def decode(self, layers: Sequence[Layers], features: Tensor) -> Tensor:
        return features


@dataclass(frozen=True)
class LatentModel(WorldModel):
    """Encodes the observation into a latent and predicts reward, continuation and next latent from it; it has no memory.

    The next latent is trained towards the encoding of the next observation by a balanced KL divergence; a decoder, used for
    nothing else, keeps the observation in the latent.
    """

    latent: Latent
    parts: ClassVar[tuple[str, ...]] = ("kl", "reward", "continuation", "obs")

    @cached_property
    def nets(self) -> tuple[TrunkNet, ...]:
        """Encoder, dynamics, reward, continuation, decoder."""
        z, out = self.latent.size, self.latent.output_size
        steps = (self.net(z + self.action_size, size) for size in (out, 1, 1))
        return self.net(self.obs_size, out), *steps, self.net(z, self.obs_size)

    @property
    def feature_size(self) -> int:
        return self.latent.size

    @property
    def noise_kind(self) -> NoiseKind:
        return self.latent.noise_kind

    @property
    def noise_size(self) -> int:
        return self.latent.noise_size

    def gradient(self, layers: Sequence[Layers], real: RealSteps, noise: Tensor, into: Sequence[Layers]) -> Tensor:
        encoder, *others = self.nets
        both, seen = encoder.forward(layers[0], torch.cat([real.obs, real.next_obs], dim=1))
        now, after = both.chunk(2, dim=1)
        z = self.latent.sample(now, noise, posterior=True)
        joined = self.join(z, real.action)
        passes = [net.forward(mine, x) for net, mine, x in zip(others, layers[1:], (joined, joined, joined, z), strict=True)]
        prior, reward, continuation, logits = (out for out, _ in passes)
        kl, to_after, to_prior = self.latent.kl(after, prior)
        losses = [
            (kl, to_prior),
            reward_loss(real.reward, reward.squeeze(-1)),
            continuation_loss(real.continues, continuation.squeeze(-1)),
            bits_loss(real.obs, logits, real.continues),
        ]
        w, count, to_z = self.weights, real.reward.shape[1], torch.zeros_like(z)
        weights = (w.kl_prior, w.reward, w.continuation, w.obs)
        for k, (net, (out, inputs)) in enumerate(zip(others, passes, strict=True)):
            grad = weights[k] / count * losses[k][1].view_as(out)
            to_z += net.backward(layers[1 + k], inputs, grad, into[1 + k])[..., : z.shape[-1]]
        to_both = torch.cat([self.latent.pullback(now, noise, to_z), w.kl_posterior / count * to_after], dim=1)
        encoder.parameter_gradient(layers[0], seen, to_both, into[0])
        return torch.stack([loss for loss, _ in losses]).mean(-1)

    def encode(self, layers: Sequence[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        return self.latent.sample(self.nets[0](layers[0], obs), noise, posterior=True)

    def imagine(self, layers: Sequence[Layers], joined: Tensor, noise: Tensor) -> Tensor:
        return self.latent.sample(self.nets[1](layers[1], joined), noise, posterior=False)

    def outcome(self, layers: Sequence[Layers], joined: Tensor) -> tuple[Tensor, Tensor]:
        reward, continuation = (self.nets[k](layers[k], joined).squeeze(-1) for k in (2, 3))
        return reward, continuation.sigmoid()

    def decode(self, layers: Sequence[Layers], features: Tensor) -> Tensor:
        return self.nets[4](layers[4], features).sigmoid()
