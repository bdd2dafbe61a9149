"""Targets: which commands the next episodes get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from lightning_rl.core.parts import Kind, Part
from lightning_rl.core.schema import Share
from lightning_rl.functional.upside_down import at_most, exponential_weights, quantiles, standardise
from lightning_rl.methods.upside_down.commands import Command
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.config import UpsideDownConfig

PROBES = {"eval_low": 0.1, "eval_high": 0.9}
"""Further evaluations, which ask for these quantiles of the labels; UDRL's are of kept returns."""


class Target(Part):
    """The distribution ``mean + sd * noise`` of the first numbers of the next commands.

    A subclass defines ``fit``. Labels are first numbers of commands that were fulfilled: ``[M]``,
    or ``[U, B]`` of minibatches, see the key ``target_labels``.
    """

    to_define = ("fit",)

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the sd, both ``[]``, from labels."""
        raise NotImplementedError

    def draw_noise(self, rng: np.random.Generator, count: int) -> Tensor:
        """The noise of ``count`` commands, ``[count]``: standard normal."""
        return torch.from_numpy(rng.standard_normal(count, dtype=np.float32))


TARGETS = Kind("target", Target, "register_target")
register_target = TARGETS.register


@register_target("range")
class Range(Target):
    """Uniform from the mean of the labels to their mean + sd (UDRL paper, section 2.2.4).

    Both are at most ``max_return``, which the paper has not: a return that the environment cannot
    give asks the network to extrapolate.
    """

    max_return: float | None

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        mean = label.mean()
        highest = at_most(self.max_return, mean + label.std(correction=0))
        mean = at_most(self.max_return, mean)
        return mean, highest - mean

    def draw_noise(self, rng: np.random.Generator, count: int) -> Tensor:
        """Uniform in [0, 1)."""
        return torch.from_numpy(rng.random(count)).float()


@register_target("tilted")
class Tilted(Target):
    """Mean and sd of the labels resampled with probabilities proportional to exponential weights.

    This is ``p(Z) exp(Z / beta)``, the optimal distribution of the RCP paper, and unlike its
    log-sum-exp it stays among labels that were seen.
    """

    target_temperature: PositiveFloat
    max_weight: PositiveFloat

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        weight = exponential_weights(standardise(label), self.target_temperature, self.max_weight)
        share = weight / weight.sum()
        mean = (share * label).sum()
        return mean, (share * (label - mean).square()).sum().sqrt()


@register_target("quantile")
class Quantile(Target):
    """Around a quantile of the labels, with the sd of the labels above it."""

    target_quantile: Share

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        level = quantiles(label, [self.target_quantile])[0]
        return level, label[label >= level].std(correction=0)


@register_target("max")
class Highest(Target):
    """Around the highest label, with the sd of all, as in the earlier implementation: it asks for
    the largest outlier. Of minibatches, with the sd of the one that the highest is in.
    """

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        minibatches = label.reshape(-1, label.shape[-1])
        of_highest = minibatches[minibatches.amax(1).argmax()]
        return label.max(), of_highest.std(correction=0)


class NextCommands(nn.Module):
    """The commands of the next episodes, and which ones evaluation asks for; saved in checkpoints.

    Args:
        cfg: the config.
        target: the part that fits the distribution of their first numbers.
        command: the part whose ``following_numbers`` the others are.

    Attributes:
        numbers: mean and sd of the target, the lowest and the highest label.
        horizon: the numbers after the first.
        probes: first numbers that the evaluations ``PROBES`` ask for.
    """

    numbers: Tensor
    horizon: Tensor
    probes: Tensor

    def __init__(self, cfg: UpsideDownConfig, target: Target, command: Command):
        super().__init__()
        self.cfg, self.target, self.command = cfg, target, command
        self.register_buffer("numbers", torch.zeros(4))
        self.register_buffer("horizon", torch.zeros(len(command.names) - 1))
        self.register_buffer("probes", torch.zeros(len(PROBES)))

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest label."""
        _, _, low, high = self.numbers.tolist()
        return low, high

    def fit(self, label: Tensor, seen: Tensor | None = None) -> None:
        """Sets the target from labels ``[M]``, or ``[U, B]`` of minibatches.

        seen ``[K]``: all labels, where these are some.
        """
        seen = label if seen is None else seen
        mean, sd = self.target.fit(label)
        self.numbers.copy_(torch.stack([mean, sd, seen.min(), seen.max()]))
        self.probes.copy_(quantiles(seen, list(PROBES.values())))

    def ask_for(self, command: Tensor) -> None:
        """Sets the target to one command ``[C]``."""
        self.numbers[[0, 2, 3]] = command[0]  # the mean, the lowest and the highest
        self.horizon.copy_(command[1:])

    def update_from_buffer(self, buffer: EpisodeBuffer) -> None:
        """Sets the numbers after the first; with ``target_labels: best`` also the target."""
        self.horizon.copy_(torch.tensor(self.command.following_numbers(buffer)))
        if self.cfg.target_labels == "best":
            returns, _ = buffer.highest(self.cfg.last_few)
            self.fit(torch.from_numpy(returns), torch.from_numpy(buffer.returns()))

    def draw(self, rng: np.random.Generator, count: int) -> list[tuple[float, ...]]:
        """First commands of ``count`` episodes."""
        mean, sd, low, high = self.numbers.tolist()
        spread = 0.0 if self.cfg.command_draw == "step" else self.cfg.target_spread
        drawn = mean + spread * sd * self.target.draw_noise(rng, count)
        if self.cfg.target_limit:
            drawn = drawn.clamp(low, high)
        return [self.complete(value) for value in drawn.tolist()]

    def complete(self, first: float | None = None) -> tuple[float, ...]:
        """The command with this first number; None: the mean of the target."""
        if first is None:
            first = float(self.numbers[0])
        return self.command.completed(first, self.horizon.tolist())

    def step_noise(self) -> Tensor:
        """Of commands that are drawn at every step: their sd, the lowest and the highest."""
        _, sd, low, high = self.numbers.tolist()
        if not self.cfg.target_limit:
            low, high = torch.finfo().min, torch.finfo().max
        return torch.tensor([self.cfg.target_spread * sd, low, high])
