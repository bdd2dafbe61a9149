"""Action distributions as functions of a network's output.

Sampling takes explicit noise, and zero noise gives the mode: greedy and sampled acting are one code
path.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import FloatArray


class Distribution(ABC):
    """A batch of distributions over actions, built from a network output ``[..., output_size]``.

    outputs: numbers of it for each of ``A`` actions or action dimensions.
    """

    outputs: ClassVar[int] = 1

    def __init__(self, output: Tensor):
        self.output = output

    @classmethod
    def output_size(cls, action_size: int) -> int:
        """Size of the network output for ``A`` actions or action dimensions."""
        return cls.outputs * action_size

    @staticmethod
    @abstractmethod
    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise that ``sample`` turns into actions; ``shape`` ends with ``A``."""

    @classmethod
    @abstractmethod
    def max_entropy(cls, action_size: int) -> float:
        """The highest entropy (nats) that the distribution can have.

        action_size: ``A`` actions or action dimensions.
        """

    @staticmethod
    def executed(action: Tensor) -> Tensor:
        """The actions that the environment executes for sampled ones.

        Continuous actions are clipped to the box.
        """
        return action

    @staticmethod
    def guided(output: Tensor, usual: Tensor, guidance: Tensor) -> Tensor:
        """Network outputs ``[..., output_size]`` pushed away from the ``usual`` ones.

        ``output + guidance * (output - usual)``.

        The classifier-free guidance of Ho and Salimans (2022, arXiv 2207.12598): of logits,
        ``p(a|c)^(1+w) / p(a|usual)^w``.
        guidance: w, ``[]`` or ``[..., 1]``.
        """
        return output + guidance * (output - usual)

    @abstractmethod
    def sample(self, noise: Tensor) -> Tensor:
        """An action for noise ``[..., A]``; the mode where the noise is zero."""

    @abstractmethod
    def log_prob(self, action: Tensor) -> Tensor:
        """Log-probability (density) ``[...]`` of ``action``."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Entropy ``[...]`` in nats."""


class Categorical(Distribution):
    """Discrete actions ``[...]`` int64; the output are logits ``[..., A]``.

    Sampling is the Gumbel-max trick.
    """

    @staticmethod
    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.gumbel(size=shape).astype(np.float32)

    @classmethod
    def max_entropy(cls, action_size: int) -> float:
        return math.log(action_size)

    def sample(self, noise: Tensor) -> Tensor:
        return (self.output + noise).argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        if action.shape != self.output.shape[:-1]:
            raise ValueError(
                f"action {tuple(action.shape)} does not fit logits {tuple(self.output.shape)}"
            )
        # A softmax over few classes is several times faster over the first dimension, where each
        # class is contiguous in memory.
        logits = self.output.reshape(-1, self.output.shape[-1]).T
        return logits.log_softmax(0).gather(0, action.reshape(1, -1)).reshape(action.shape)

    def entropy(self) -> Tensor:
        log_prob = self.output.log_softmax(-1)
        return -(log_prob.exp() * log_prob).sum(-1)


class Gaussian(Distribution):
    """Continuous actions ``[..., A]`` in units where the action box is [-1, 1].

    The output is ``[..., 2A]``: the mean is squashed into the box by tanh, the log standard
    deviation is clamped to [-3, 0.5]. Samples may leave the box; the environment clips them.
    """

    outputs = 2
    LOG_STD_RANGE = (-3.0, 0.5)

    def __init__(self, output: Tensor):
        super().__init__(output)
        mean, log_std = output.chunk(2, dim=-1)
        self.mean = mean.tanh()
        self.log_std = log_std.clamp(*self.LOG_STD_RANGE)

    @staticmethod
    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return rng.standard_normal(shape, dtype=np.float32)

    @classmethod
    def max_entropy(cls, action_size: int) -> float:
        return action_size * (cls.LOG_STD_RANGE[1] + 0.5 * math.log(2 * math.pi * math.e))

    @staticmethod
    def executed(action: Tensor) -> Tensor:
        return action.clamp(-1, 1)

    @staticmethod
    def guided(output: Tensor, usual: Tensor, guidance: Tensor) -> Tensor:
        """Pushes the mean, before it is squashed into the box.

        The standard deviation is that of the command.

        For normal distributions of equal standard deviation, without the squashing, this is
        ``p(a|c)^(1+w) / p(a|usual)^w``.
        """
        mean, log_std = output.chunk(2, dim=-1)
        return torch.cat(
            [Distribution.guided(mean, usual.chunk(2, dim=-1)[0], guidance), log_std], dim=-1
        )

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + self.log_std.exp() * noise

    def log_prob(self, action: Tensor) -> Tensor:
        if action.shape != self.mean.shape:
            raise ValueError(
                f"action {tuple(action.shape)} does not fit mean {tuple(self.mean.shape)}"
            )
        z = (action - self.mean) / self.log_std.exp()
        return (-0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


def distribution_for(continuous: bool) -> type[Distribution]:
    """The distribution for an action space."""
    return Gaussian if continuous else Categorical
