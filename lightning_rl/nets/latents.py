"""Latent variables of world models: what a network's output says about them, samples and divergences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from lightning_rl.functional.world_model import (
    STD_FUNCTIONS,
    categorical_kl,
    categorical_sample,
    gaussian_kl,
    softmax_pullback,
)  # fmt: skip

NoiseKind = Literal["uniform", "normal"]

_LEAST_STD = 1e-6


class Latent(Protocol):
    """Independent variables, given by a network output ``[..., output_size]``; a sample is a vector ``[..., size]``."""

    @property
    def noise_kind(self) -> NoiseKind: ...
    @property
    def size(self) -> int: ...
    @property
    def output_size(self) -> int: ...
    @property
    def noise_size(self) -> int:
        """How many numbers of noise of ``noise_kind`` a sample takes."""

    def sample(self, output: Tensor, noise: Tensor | None, posterior: bool) -> Tensor:
        """A sample for noise ``[..., noise_size]``, or the mode for None. posterior: the output is an encoder's."""

    def pullback(self, output: Tensor, noise: Tensor, grad: Tensor) -> Tensor:
        """The gradient to an encoder's output from ``grad`` ``[..., size]`` to its sample."""

    def kl(self, posterior: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """``KL(posterior || prior)`` ``[...]`` of an encoder's and a dynamics network's output, and the gradients to them."""


@dataclass(frozen=True)
class CategoricalLatent:
    """``variables`` of ``classes`` each, one-hot; gradients pass straight through to the probabilities."""

    variables: int
    classes: int
    noise_kind: NoiseKind = "uniform"

    @property
    def size(self) -> int:
        return self.variables * self.classes

    @property
    def output_size(self) -> int:
        return self.size

    @property
    def noise_size(self) -> int:
        return self.variables

    def _logits(self, output: Tensor) -> Tensor:
        return output.unflatten(-1, (self.variables, self.classes))

    def sample(self, output: Tensor, noise: Tensor | None, posterior: bool) -> Tensor:
        del posterior
        logits = self._logits(output)
        chosen = logits.argmax(-1) if noise is None else categorical_sample(logits, noise)
        return torch.zeros_like(logits).scatter_(-1, chosen.unsqueeze(-1), 1.0).flatten(-2)

    def pullback(self, output: Tensor, noise: Tensor, grad: Tensor) -> Tensor:
        return softmax_pullback(self._logits(output).softmax(-1), self._logits(grad)).flatten(-2)

    def kl(self, posterior: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        kl, to_posterior, to_prior = categorical_kl(self._logits(posterior), self._logits(prior))
        return kl, to_posterior.flatten(-2), to_prior.flatten(-2)


@dataclass(frozen=True)
class GaussianLatent:
    """``variables`` Gaussians; the output is mean and raw standard deviation. Samples are reparameterised.

    std: from the raw number to the standard deviation, at least 1e-6. min_std is added to the encoder's alone.
    """

    variables: int
    std: str
    min_std: float
    noise_kind: NoiseKind = "normal"

    @property
    def size(self) -> int:
        return self.variables

    @property
    def output_size(self) -> int:
        return 2 * self.variables

    @property
    def noise_size(self) -> int:
        return self.variables

    def moments(self, output: Tensor, posterior: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and standard deviation ``[..., variables]``, and the derivative of the latter by its raw number."""
        mean, raw = output.chunk(2, dim=-1)
        std, slope = STD_FUNCTIONS[self.std](raw)
        slope = slope.mul_(std > _LEAST_STD)
        return mean, std.clamp(min=_LEAST_STD) + (self.min_std if posterior else 0.0), slope

    def sample(self, output: Tensor, noise: Tensor | None, posterior: bool) -> Tensor:
        mean, std, _ = self.moments(output, posterior)
        return mean if noise is None else torch.addcmul(mean, std, noise)

    def pullback(self, output: Tensor, noise: Tensor, grad: Tensor) -> Tensor:
        _, _, slope = self.moments(output, True)
        return torch.cat([grad, grad * noise * slope], dim=-1)

    def kl(self, posterior: Tensor, prior: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p_mean, p_std, p_slope = self.moments(posterior, True)
        q_mean, q_std, q_slope = self.moments(prior, False)
        kl, slopes = gaussian_kl(p_mean, p_std, q_mean, q_std)
        to_posterior = torch.cat([slopes[0], slopes[1] * p_slope], dim=-1)
        return kl, to_posterior, torch.cat([slopes[2], slopes[3] * q_slope], dim=-1)
