"""World models: networks that are trained to be the environment. Parameters are blocks ``[N, D]``.

Every model has *features* ``[N, B, X]``, which the value network reads and roll-outs pass on: the observation, or a latent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_rl.functional.world_model import bits_loss, bits_sample, continuation_loss, reward_loss
from lightning_rl.nets.latents import Latent, NoiseKind
from lightning_rl.nets.trunks import Layers, TrunkActivation, TrunkNet


class RealSteps(NamedTuple):
    """Real transitions ``[N, B]``: obs, next_obs ``[N, B, O]``, action int64, reward, continues (1, or 0 at a termination)."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    continues: Tensor
    next_obs: Tensor


class ImaginedStep(NamedTuple):
    """Expected reward and probability of going on ``[N, B]``, and a sample of the next features ``[N, B, X]``."""

    reward: Tensor
    continues: Tensor
    features: Tensor


class LossWeights(NamedTuple):
    """Of the parts of the loss; the KL ones for latent models."""

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

    def layers(self, params: Tensor) -> list[Layers]:
        """The layers of each network."""
        pieces = params.split([net.size for net in self.nets], dim=1)
        return [net.layers(piece) for net, piece in zip(self.nets, pieces, strict=True)]

    @abstractmethod
    def losses(self, layers: list[Layers], real: RealSteps, noise: Tensor) -> dict[str, Tensor]:
        """The parts of the loss, unweighted, ``[N, B]`` each; their names are keys of ``LossWeights``."""

    @abstractmethod
    def encode(self, layers: list[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        """Features of observations ``[N, B, O]`` for noise ``[N, B, encode_noise_size]``; None: the mode."""

    @abstractmethod
    def imagine(self, layers: list[Layers], features: Tensor, action: Tensor, noise: Tensor) -> ImaginedStep:
        """A step from features ``[N, B, X]`` by action ``[N, B]`` for noise ``[N, B, noise_size]``."""

    @abstractmethod
    def decode(self, layers: list[Layers], features: Tensor) -> Tensor:
        """The probability of each bit of the observation ``[N, B, O]``."""

    def loss(self, params: Tensor, real: RealSteps, noise: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted loss ``[N]``, averaged over the batch, and its parts ``[N]``."""
        parts = {name: part.mean(-1) for name, part in self.losses(self.layers(params), real, noise).items()}
        return torch.stack([getattr(self.weights, name) * part for name, part in parts.items()]).sum(0), parts


@dataclass(frozen=True)
class SimpleModel(WorldModel):
    """Predicts reward, continuation and each bit of the next observation from observation and action, by a network each.

    faithful_bits: see ``bits_sample``.
    """

    faithful_bits: bool = False

    @cached_property
    def net(self) -> TrunkNet:
        """Trunks for the reward, the continuation and the next observation."""
        return TrunkNet(self.obs_size, self.hidden, (1, 1, self.obs_size), self.action_size, self.activation)

    @property
    def nets(self) -> tuple[TrunkNet, ...]:
        return (self.net,)

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

    def losses(self, layers: list[Layers], real: RealSteps, noise: Tensor) -> dict[str, Tensor]:
        reward, continuation, logits = self.net(layers[0], real.obs, real.action)
        return {
            "reward": reward_loss(real.reward, reward.squeeze(-1)),
            "continuation": continuation_loss(real.continues, continuation.squeeze(-1)),
            "obs": real.continues * bits_loss(real.next_obs, logits),  # nothing follows a termination
        }

    def encode(self, layers: list[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        return obs

    def imagine(self, layers: list[Layers], features: Tensor, action: Tensor, noise: Tensor) -> ImaginedStep:
        reward, continuation, logits = self.net(layers[0], features, action)
        bits = bits_sample(logits, noise, self.faithful_bits)
        return ImaginedStep(reward.squeeze(-1), continuation.squeeze(-1).sigmoid(), bits)

    def decode(self, layers: list[Layers], features: Tensor) -> Tensor:
        return features


@dataclass(frozen=True)
class LatentModel(WorldModel):
    """Encodes the observation into a latent and predicts reward, continuation and next latent from it; it has no memory.

    The next latent is trained towards the encoding of the next observation by a balanced KL divergence; a decoder, used for
    nothing else, keeps the observation in the latent.
    """

    latent: Latent

    @cached_property
    def nets(self) -> tuple[TrunkNet, ...]:
        """Encoder; dynamics, reward and continuation; decoder."""
        z, out = self.latent.size, self.latent.output_size
        encoder = TrunkNet(self.obs_size, self.hidden, (out,), 0, self.activation)
        dynamics = TrunkNet(z, self.hidden, (out, 1, 1), self.action_size, self.activation)
        return encoder, dynamics, TrunkNet(z, self.hidden, (self.obs_size,), 0, self.activation)

    @property
    def feature_size(self) -> int:
        return self.latent.size

    @property
    def noise_kind(self) -> NoiseKind:
        return self.latent.noise_kind

    @property
    def noise_size(self) -> int:
        return self.latent.noise_size

    def losses(self, layers: list[Layers], real: RealSteps, noise: Tensor) -> dict[str, Tensor]:
        encoder, dynamics, decoder = self.nets
        (both,) = encoder(layers[0], torch.cat([real.obs, real.next_obs], dim=1))
        now, after = both.chunk(2, dim=1)
        z = self.latent.sample(now, noise, posterior=True)
        prior, reward, continuation = dynamics(layers[1], z, real.action)
        (logits,) = decoder(layers[2], z)
        return {
            "kl_posterior": self.latent.kl(after, prior.detach()),
            "kl_prior": self.latent.kl(after.detach(), prior),
            "reward": reward_loss(real.reward, reward.squeeze(-1)),
            "continuation": continuation_loss(real.continues, continuation.squeeze(-1)),
            "obs": real.continues * bits_loss(real.obs, logits),
        }

    def encode(self, layers: list[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        (output,) = self.nets[0](layers[0], obs)
        return self.latent.sample(output, noise, posterior=True)

    def imagine(self, layers: list[Layers], features: Tensor, action: Tensor, noise: Tensor) -> ImaginedStep:
        prior, reward, continuation = self.nets[1](layers[1], features, action)
        z = self.latent.sample(prior, noise, posterior=False)
        return ImaginedStep(reward.squeeze(-1), continuation.squeeze(-1).sigmoid(), z)

    def decode(self, layers: list[Layers], features: Tensor) -> Tensor:
        (logits,) = self.nets[2](layers[2], features)
        return logits.sigmoid()
