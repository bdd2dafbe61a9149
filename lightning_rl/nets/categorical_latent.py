"""Latents of one-hot variables."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.functional.world_model import categorical_kl, categorical_sample, softmax_pullback
from lightning_rl.nets.world_models import NoiseKind


class CategoricalLatent:
    """Independent variables, each one-hot of ``classes``.

    Gradients pass straight through to the probabilities.

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
        """Where the ones of a sample are, int64 ``[..., variables]``.

        noise ``[..., noise_size]``; None: the mode.
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
