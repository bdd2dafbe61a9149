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
    straight_through,
)  # fmt: skip

NoiseKind = Literal["uniform", "normal"]


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
        """A sample for noise ``[..., noise_size]``, or the mode for None; its gradient reaches the output.

        posterior: the output is an encoder's.
        """

    def kl(self, posterior: Tensor, prior: Tensor) -> Tensor:
        """``KL(posterior || prior)`` ``[...]`` of an encoder's and a dynamics network's output."""


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
        chosen = logits.argmax(-1) if noise is None else categorical_sample(logits.detach(), noise)
        one_hot = torch.zeros_like(logits).scatter_(-1, chosen.unsqueeze(-1), 1.0)
        return (straight_through(one_hot, logits.softmax(-1)) if output.requires_grad else one_hot).flatten(-2)

    def kl(self, posterior: Tensor, prior: Tensor) -> Tensor:
        return categorical_kl(self._logits(posterior), self._logits(prior))


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

    def moments(self, output: Tensor, posterior: bool) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation ``[..., variables]``."""
        mean, raw = output.chunk(2, dim=-1)
        return mean, STD_FUNCTIONS[self.std](raw).clamp(min=1e-6) + (self.min_std if posterior else 0.0)

    def sample(self, output: Tensor, noise: Tensor | None, posterior: bool) -> Tensor:
        mean, std = self.moments(output, posterior)
        return mean if noise is None else mean + std * noise

    def kl(self, posterior: Tensor, prior: Tensor) -> Tensor:
        return gaussian_kl(*self.moments(posterior, True), *self.moments(prior, False))

