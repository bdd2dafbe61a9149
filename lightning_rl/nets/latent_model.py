"""A world model of latents (Young et al. 2023, arXiv 2211.02222)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from lightning_rl.functional.world_model import bits_loss, continuation_loss, reward_loss
from lightning_rl.nets.categorical_latent import CategoricalLatent
from lightning_rl.nets.gaussian_latent import GaussianLatent
from lightning_rl.nets.members import ActivationName
from lightning_rl.nets.world_models import (
    LossWeights,
    ModelLayers,
    PlainMLP,
    RealSteps,
    WorldModel,
)

Latent = CategoricalLatent | GaussianLatent


class LatentModel(WorldModel):
    """Encodes the observation and predicts reward, continuation and next latent from that.

    It has no memory.

    The next latent is trained towards the encoding of the next observation by a balanced KL
    divergence; a decoder, used for nothing else, keeps the observation in the latent.
    """

    parts = ("kl", "reward", "continuation", "obs")
    outcome_nets = (2, 3)

    def __init__(
        self,
        obs_size: int,
        action_size: int,
        hidden: Sequence[int],
        activation: ActivationName,
        latent: Latent,
    ):
        z, out, joined = latent.size, latent.output_size, latent.size + action_size
        # Encoder, dynamics, reward, continuation, decoder.
        ends = [(obs_size, out), (joined, out), (joined, 1), (joined, 1), (z, obs_size)]
        nets = [PlainMLP(first, tuple(hidden), last, activation) for first, last in ends]
        noise_size = latent.noise_size
        super().__init__(nets, action_size, z, latent.noise_kind, noise_size, noise_size)
        self.latent, self.prior = latent, latent.prior

    def gradient(
        self,
        layers: ModelLayers,
        real: RealSteps,
        noise: Tensor,
        weights: LossWeights,
        into: ModelLayers,
    ) -> Tensor:
        encoder, *others = self.nets
        seen = torch.cat([real.obs, real.next_obs], dim=1)
        both, encoder_saved = encoder.forward(layers[0], seen)
        now, after = both.chunk(2, dim=1)
        z = self.latent.sample(now, noise)
        joined = self.join(z, real.action)
        inputs = (joined, joined, joined, z)
        passes = [
            net.forward(own, x) for net, own, x in zip(others, layers[1:], inputs, strict=True)
        ]
        prior, reward, continuation, logits = (out for out, _ in passes)
        kl, to_after, to_prior = self.latent.kl(after, prior)
        losses = [
            (kl, to_prior),
            reward_loss(real.reward, reward.squeeze(-1)),
            continuation_loss(real.continues, continuation.squeeze(-1)),
            bits_loss(real.obs, logits, real.continues),
        ]
        scales = (
            weights.kl_prior_weight,
            weights.reward_weight,
            weights.continuation_weight,
            weights.obs_weight,
        )
        count = real.reward.shape[1]
        to_z = torch.zeros_like(now[..., : self.latent.size])
        for k, net in enumerate(others):
            out, saved = passes[k]
            grad = scales[k] / count * losses[k][1].view_as(out)
            to_x = net.backward(layers[1 + k], saved, grad, into[1 + k], want_x=True)
            to_z += cast(Tensor, to_x)[..., : self.latent.size]
        to_now = self.latent.pullback(now, noise, to_z)
        to_both = torch.cat([to_now, weights.kl_posterior_weight / count * to_after], dim=1)
        encoder.backward(layers[0], encoder_saved, to_both, into[0])
        return torch.stack([loss for loss, _ in losses]).mean(-1)

    def encode(self, layers: ModelLayers, obs: Tensor, noise: Tensor | None) -> Tensor:
        return self.latent.sample(self._run(0, layers, obs), noise)

    def imagine(self, layers: ModelLayers, joined: Tensor, noise: Tensor) -> Tensor:
        return self.prior.sample(self._run(1, layers, joined), noise)

    def decode(self, layers: ModelLayers, features: Tensor) -> Tensor:
        return self._run(4, layers, features).sigmoid()
