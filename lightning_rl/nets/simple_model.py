"""A world model of observations (Young et al. 2023, arXiv 2211.02222)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lightning_rl.functional.world_model import (
    bits_loss,
    bits_sample,
    continuation_loss,
    reward_loss,
)
from lightning_rl.nets.members import ActivationName, Layers
from lightning_rl.nets.world_models import LossWeights, RealSteps, WorldModel, plain_mlp


class SimpleModel(WorldModel):
    """Predicts reward, continuation and each bit of the next observation from observation and
    action, by a network each.

    sample_bits: ``bits_sample``, or another with its arguments.
    """

    def __init__(
        self,
        obs_size: int,
        action_size: int,
        hidden: Sequence[int],
        activation: ActivationName,
        sample_bits: Callable[[Tensor, Tensor], Tensor] = bits_sample,
    ):
        nets = [
            plain_mlp(obs_size + action_size, hidden, out, activation) for out in (1, 1, obs_size)
        ]
        super().__init__(
            nets, action_size, obs_size, "uniform", noise_size=obs_size, encode_noise_size=0
        )
        self.sample_bits = sample_bits

    def gradient(
        self,
        layers: Sequence[Layers],
        real: RealSteps,
        noise: Tensor,
        weights: LossWeights,
        into: Sequence[Layers],
    ) -> Tensor:
        joined = self.join(real.obs, real.action)
        passes = [
            net.forward(net_layers, joined)
            for net, net_layers in zip(self.nets, layers, strict=True)
        ]
        (reward, _), (continuation, _), (logits, _) = passes
        losses = [
            reward_loss(real.reward, reward.squeeze(-1)),
            continuation_loss(real.continues, continuation.squeeze(-1)),
            bits_loss(real.next_obs, logits, real.continues),  # nothing follows a termination
        ]
        scale, count = (
            (weights.reward_weight, weights.continuation_weight, weights.obs_weight),
            real.reward.shape[1],
        )
        for k, (net, (out, saved)) in enumerate(zip(self.nets, passes, strict=True)):
            net.backward(layers[k], saved, scale[k] / count * losses[k][1].view_as(out), into[k])
        return torch.stack([loss for loss, _ in losses]).mean(-1)

    def encode(self, layers: Sequence[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        return obs

    def imagine(self, layers: Sequence[Layers], joined: Tensor, noise: Tensor) -> Tensor:
        return self.sample_bits(self._run(2, layers, joined), noise)

    def decode(self, layers: Sequence[Layers], features: Tensor) -> Tensor:
        return features
