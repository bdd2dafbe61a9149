"""Latents of Gaussian variables."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.functional.world_model import gaussian_kl
from lightning_rl.nets.world_models import NoiseKind

_MIN_STD = 1e-6


def std_and_slope(raw: Tensor) -> tuple[Tensor, Tensor]:
    """From a network's output to a standard deviation, and its derivative.

    ``2 sigmoid(raw / 2)``: between 0 and 2, and 1 at 0.
    """
    half = torch.sigmoid(0.5 * raw)
    return 2 * half, half * (1 - half)


class GaussianLatent:
    """Like a ``CategoricalLatent``, of Gaussians: reparameterised.

    The output is mean and raw standard deviation.

    The standard deviation (see ``std_and_slope``) is at least 1e-6.
    min_std is added to the encoder's standard deviation, not to the prior's.
    """

    noise_kind: NoiseKind = "normal"

    def __init__(self, variables: int, min_std: float):
        self.variables, self.min_std = variables, min_std
        self.size = self.noise_size = variables
        self.output_size = 2 * variables

    @property
    def prior(self) -> GaussianLatent:
        return GaussianLatent(self.variables, 0.0)

    def moments(self, output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and standard deviation ``[..., variables]``, and the derivative of the latter.

        By its raw number.
        """
        mean, raw = output.chunk(2, dim=-1)
        std, slope = std_and_slope(raw)
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
