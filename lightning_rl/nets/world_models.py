"""World models: networks trained to predict what the environment does (Young et al. 2023, arXiv
2211.02222).

Parameters are blocks ``[N, D]``. Every model has *features* ``[N, B, X]``, which the value network
reads and roll-outs pass on: the observation itself, or a latent; of a categorical latent the places
of its ones, int64, see ``MemberMLP.forward``. Gradients are written by hand, see ``members``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from pydantic.dataclasses import dataclass
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.schema import STRICT
from lightning_rl.functional.world_model import (
    STD_FUNCTIONS,
    bits_loss,
    categorical_kl,
    categorical_sample,
    continuation_loss,
    gaussian_kl,
    reward_loss,
    softmax_pullback,
)
from lightning_rl.nets.members import ActivationName, Architecture, Layers, MemberMLP

NoiseKind = Literal["uniform", "normal"]

_MIN_STD = 1e-6


class RealSteps(NamedTuple):
    """Real transitions ``[N, B]``: obs, next_obs ``[N, B, O]``, action int64, reward, continues
    (1, or 0 at a termination).
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    continues: Tensor
    next_obs: Tensor


@dataclass(frozen=True, config=STRICT, kw_only=True)
class LossWeights:
    """Weights of a model's losses; kl_prior: of the KL's gradient to the dynamics network,
    kl_posterior: to the encoder.
    """

    reward_weight: NonNegativeFloat
    continuation_weight: NonNegativeFloat
    obs_weight: NonNegativeFloat
    kl_prior_weight: PositiveFloat
    kl_posterior_weight: NonNegativeFloat


def plain_mlp(
    in_size: int, hidden: Sequence[int], out_size: int, activation: ActivationName
) -> MemberMLP:
    """A network that starts as those of the paper's code do."""
    return MemberMLP(
        in_size, tuple(hidden), out_size, activation, initialisation="truncated_normal"
    )


class CategoricalLatent:
    """Independent variables, each one-hot of ``classes``; gradients pass straight through to the
    probabilities.

    A network's output ``[..., output_size]`` says how they are distributed; a sample ``[...,
    size]`` takes ``noise_size`` numbers of noise of ``noise_kind``. prior: the latent that
    interprets the dynamics network's output, as this one does the encoder's.
    """

    noise_kind: NoiseKind = "uniform"

    def __init__(self, variables: int, classes: int):
        self.variables, self.classes = variables, classes
        self.size = self.output_size = variables * classes
        self.noise_size = variables

    @property
    def prior(self) -> CategoricalLatent:
        return self

    def _logits(self, output: Tensor) -> Tensor:
        return output.unflatten(-1, (self.variables, self.classes))

    def sample(self, output: Tensor, noise: Tensor | None) -> Tensor:
        """A sample for noise ``[..., noise_size]``, or the mode for None: int64 ``[...,
        variables]``, where its ones are.
        """
        logits = self._logits(output)
        chosen = logits.argmax(-1) if noise is None else categorical_sample(logits, noise)
        return chosen + torch.arange(0, self.size, self.classes, device=chosen.device)

    def pullback(self, output: Tensor, noise: Tensor, grad: Tensor) -> Tensor:
        """The gradient to the output from ``grad`` ``[..., size]`` to its sample."""
        return softmax_pullback(self._logits(output).softmax(-1), self._logits(grad)).flatten(-2)

    def kl(self, output: Tensor, prior_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``KL(self || prior)`` ``[...]`` and the gradients to both outputs."""
        kl, to_output, to_prior = categorical_kl(self._logits(output), self._logits(prior_output))
        return kl, to_output.flatten(-2), to_prior.flatten(-2)


class GaussianLatent:
    """Like a ``CategoricalLatent``, of Gaussians: reparameterised; the output is mean and raw
    standard deviation.

    std: from the raw number to the standard deviation (see ``STD_FUNCTIONS``), at least 1e-6.
    min_std is added to the encoder's standard deviation, not to the prior's.
    """

    noise_kind: NoiseKind = "normal"

    def __init__(self, variables: int, std: str, min_std: float):
        self.variables, self.std, self.min_std = variables, std, min_std
        self.size = self.noise_size = variables
        self.output_size = 2 * variables

    @property
    def prior(self) -> GaussianLatent:
        return GaussianLatent(self.variables, self.std, 0.0)

    def moments(self, output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and standard deviation ``[..., variables]``, and the derivative of the latter by
        its raw number.
        """
        mean, raw = output.chunk(2, dim=-1)
        std, slope = STD_FUNCTIONS[self.std](raw)
        slope = slope.mul_(std > _MIN_STD)
        return mean, std.clamp(min=_MIN_STD) + self.min_std, slope

    def sample(self, output: Tensor, noise: Tensor | None) -> Tensor:
        mean, std, _ = self.moments(output)
        return mean if noise is None else torch.addcmul(mean, std, noise)

    def pullback(self, output: Tensor, noise: Tensor, grad: Tensor) -> Tensor:
        _, _, slope = self.moments(output)
        return torch.cat([grad, grad * noise * slope], dim=-1)

    def kl(self, output: Tensor, prior_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, std, slope = self.moments(output)
        prior_mean, prior_std, prior_slope = self.prior.moments(prior_output)
        kl, by = gaussian_kl(mean, std, prior_mean, prior_std)
        to_output = torch.cat([by[0], by[1] * slope], dim=-1)
        return kl, to_output, torch.cat([by[2], by[3] * prior_slope], dim=-1)


Latent = CategoricalLatent | GaussianLatent


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
        self.nets, self.feature_size = tuple(nets), feature_size
        self.noise_kind, self.noise_size, self.encode_noise_size = (
            noise_kind,
            noise_size,
            encode_noise_size,
        )
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

    def _run(self, number: int, layers: Sequence[Layers], x: Tensor) -> Tensor:
        return self.nets[number].forward(layers[number], x)[0]

    def join(self, features: Tensor, action: Tensor) -> Tensor:
        """``[features, one-hot action]`` ``[N, B, X + A]``: what a step depends on. features
        ``[N, B, X]``, action ``[N, B]``.
        """
        if not features.is_floating_point():
            return torch.cat([features, self.feature_size + action.unsqueeze(-1)], dim=-1)
        one_hot = torch.nn.functional.embedding(action, self._one_hot.on(features.device))
        return torch.cat([features, one_hot], dim=-1)

    @abstractmethod
    def gradient(
        self,
        layers: Sequence[Layers],
        real: RealSteps,
        noise: Tensor,
        weights: LossWeights,
        into: Sequence[Layers],
    ) -> Tensor:
        """Writes the gradient of the weighted loss, a mean over the batch, into the layers
        ``into``.

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
    def encode(self, layers: Sequence[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        """Features of observations ``[N, B, O]`` for noise ``[N, B, encode_noise_size]``; None:
        the mode.
        """

    @abstractmethod
    def imagine(self, layers: Sequence[Layers], joined: Tensor, noise: Tensor) -> Tensor:
        """A sample of the features ``[N, B, X]`` after a step, for ``joined`` and noise ``[N, B,
        noise_size]``.
        """

    def outcome(self, layers: Sequence[Layers], joined: Tensor) -> tuple[Tensor, Tensor]:
        """The expected reward of a step and the probability of going on after it, ``[N, B]`` each.

        The states of a roll-out do not depend on them, so they can be computed for all its steps at
        once, afterwards.
        """
        reward, continuation = (self._run(k, layers, joined).squeeze(-1) for k in self.outcome_nets)
        return reward, continuation.sigmoid()

    @abstractmethod
    def decode(self, layers: Sequence[Layers], features: Tensor) -> Tensor:
        """The probability of each bit of the observation ``[N, B, O]``."""


class LatentModel(WorldModel):
    """Encodes the observation into a latent and predicts reward, continuation and next latent from
    it; it has no memory.

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
        nets = [plain_mlp(first, hidden, last, activation) for first, last in ends]
        super().__init__(
            nets, action_size, z, latent.noise_kind, latent.noise_size, latent.noise_size
        )
        self.latent, self.prior = latent, latent.prior

    def gradient(
        self,
        layers: Sequence[Layers],
        real: RealSteps,
        noise: Tensor,
        weights: LossWeights,
        into: Sequence[Layers],
    ) -> Tensor:
        encoder, *others = self.nets
        both, encoder_saved = encoder.forward(
            layers[0], torch.cat([real.obs, real.next_obs], dim=1)
        )
        now, after = both.chunk(2, dim=1)
        z = self.latent.sample(now, noise)
        joined = self.join(z, real.action)
        inputs_of = zip(others, layers[1:], (joined, joined, joined, z), strict=True)
        passes = [net.forward(net_layers, x) for net, net_layers, x in inputs_of]
        prior, reward, continuation, logits = (out for out, _ in passes)
        kl, to_after, to_prior = self.latent.kl(after, prior)
        losses = [
            (kl, to_prior),
            reward_loss(real.reward, reward.squeeze(-1)),
            continuation_loss(real.continues, continuation.squeeze(-1)),
            bits_loss(real.obs, logits, real.continues),
        ]
        scale = (
            weights.kl_prior_weight,
            weights.reward_weight,
            weights.continuation_weight,
            weights.obs_weight,
        )
        count, to_z = real.reward.shape[1], torch.zeros_like(now[..., : self.latent.size])
        for k, (net, (out, saved)) in enumerate(zip(others, passes, strict=True)):
            grad = scale[k] / count * losses[k][1].view_as(out)
            to_input = cast(
                Tensor, net.backward(layers[1 + k], saved, grad, into[1 + k], want_x=True)
            )
            to_z += to_input[..., : self.latent.size]
        to_now = self.latent.pullback(now, noise, to_z)
        to_both = torch.cat([to_now, weights.kl_posterior_weight / count * to_after], dim=1)
        encoder.backward(layers[0], encoder_saved, to_both, into[0])
        return torch.stack([loss for loss, _ in losses]).mean(-1)

    def encode(self, layers: Sequence[Layers], obs: Tensor, noise: Tensor | None) -> Tensor:
        return self.latent.sample(self._run(0, layers, obs), noise)

    def imagine(self, layers: Sequence[Layers], joined: Tensor, noise: Tensor) -> Tensor:
        return self.prior.sample(self._run(1, layers, joined), noise)

    def decode(self, layers: Sequence[Layers], features: Tensor) -> Tensor:
        return self._run(4, layers, features).sigmoid()
