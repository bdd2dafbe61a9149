"""A world model of observations (Young et al. 2023, arXiv 2211.02222)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lightning_rl.functional.world_model import (
    bits_loss,
    bits_sample,
    continuation_loss,
    reward_loss,
)
from lightning_rl.nets.members import ActivationName
from lightning_rl.nets.world_models import LossWeights, ModelLayers, PlainMLP, RealSteps, WorldModel


class SimpleModel(WorldModel):
    """Predicts reward, continuation and each bit of the next observation.

    By a network each, from observation and action.

    logits_as_probabilities: as in the paper's code, the logit of an imagined bit is taken for its
    probability: a bit whose logit is below 0 is never 1, and one whose logit is above 1 always.
    """

    def __init__(
        self,
        obs_size: int,
        action_size: int,
        hidden: Sequence[int],
        activation: ActivationName,
        logits_as_probabilities: bool = False,
    ):
        inputs, outputs = obs_size + action_size, (1, 1, obs_size)
        nets = [PlainMLP(inputs, tuple(hidden), out, activation) for out in outputs]
        super().__init__(nets, action_size, obs_size, "uniform", obs_size, encode_noise_size=0)
        self.logits_as_probabilities = logits_as_probabilities

    def gradient(
        self,
        layers: ModelLayers,
        real: RealSteps,
        noise: Tensor,
        weights: LossWeights,
        into: ModelLayers,
    ) -> Tensor:
        joined = self.join(real.obs, real.action)
        passes = [net.forward(own, joined) for net, own in zip(self.nets, layers, strict=True)]
        reward, continuation, logits = (out for out, _ in passes)
        losses = [
            reward_loss(real.reward, reward.squeeze(-1)),
            continuation_loss(real.continues, continuation.squeeze(-1)),
            bits_loss(real.next_obs, logits, real.continues),  # nothing follows a termination
        ]
        scales = (weights.reward_weight, weights.continuation_weight, weights.obs_weight)
        count = real.reward.shape[1]
        for k, net in enumerate(self.nets):
            out, saved = passes[k]
            net.backward(layers[k], saved, scales[k] / count * losses[k][1].view_as(out), into[k])
        return torch.stack([loss for loss, _ in losses]).mean(-1)

    def encode(self, layers: ModelLayers, obs: Tensor, noise: Tensor | None) -> Tensor:
        return obs

    def imagine(self, layers: ModelLayers, joined: Tensor, noise: Tensor) -> Tensor:
        logits = self._run(2, layers, joined)
        if self.logits_as_probabilities:
            return (logits > noise).to(logits.dtype)
        return bits_sample(logits, noise)

    def decode(self, layers: ModelLayers, features: Tensor) -> Tensor:
        return features
