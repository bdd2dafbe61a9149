"""A user's parts: what they return is checked as it comes in, so that errors name the part.

Each is wrapped once, where a method is made; the rest of the method trusts what parts return.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.parts import P, Part, is_ours
from lightning_rl.core.types import FloatArray
from lightning_rl.methods.upside_down.commands import Command
from lightning_rl.methods.upside_down.targets import Target
from lightning_rl.methods.upside_down.weightings import Weighting
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, FlatEpisodes

_OFF = 0.01  # by which a mean of float32 may miss 1


def checked(part: P) -> P:
    """The part, and around a user's a wrapper of the same kind that checks what it returns."""
    if is_ours(type(part)):
        return part
    wrapper: Any
    for wrapper in (CheckedCommand, CheckedWeighting, CheckedTarget):
        if isinstance(part, wrapper.__base__):
            return wrapper(own=part)
    raise TypeError(f"{type(part).__name__} is of no kind of upside-down RL")


class CheckedCommand(Command):
    """A user's command, what it returns being checked."""

    own: Command

    def __post_init__(self) -> None:  # a part is frozen
        for name in ("names", "in_deviations", "buffer"):
            object.__setattr__(self, name, getattr(self.own, name))

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        return checked_result(
            self.own,
            "fulfilled",
            self.own.fulfilled(episodes),
            (len(episodes), len(self.names)),
            f"a row of {', '.join(self.names)} for each step",
            like=episodes.reward,
        )

    def fulfilled_within(self, episodes: FlatEpisodes, step: Tensor, length: Tensor) -> Tensor:
        return checked_result(
            self.own,
            "fulfilled_within",
            self.own.fulfilled_within(episodes, step, length),
            (*step.shape, len(self.names)),
            "the numbers of each segment's command",
            like=episodes.reward,
        )

    def after(self, command: FloatArray, reward: FloatArray) -> FloatArray:
        left = self.own.after(command, reward)
        meaning = "what is left of each command"
        return checked_result(self.own, "after", left, command.shape, meaning).numpy()

    def following_numbers(self, buffer: EpisodeBuffer) -> tuple[float, ...]:
        following = self.own.following_numbers(buffer)
        return self._numbers("following_numbers", following, self.names[1:])

    def completed(self, first: float, following: Sequence[float]) -> tuple[float, ...]:
        return self._numbers("completed", self.own.completed(first, following), self.names)

    def scales(self, return_scale: float) -> tuple[float, ...]:
        return self._numbers("scales", self.own.scales(return_scale), self.names)

    def _numbers(self, method: str, result: Any, names: Sequence[str]) -> tuple[float, ...]:
        meaning = f"a number for each of {', '.join(names)}" if names else "none"
        return tuple(checked_result(self.own, method, result, (len(names),), meaning).tolist())

    @property
    def is_episode_return(self) -> bool:
        return self.own.is_episode_return


class CheckedWeighting(Weighting):
    """A user's weighting, its weights being checked."""

    own: Weighting

    def weights(self, episodes: FlatEpisodes) -> Tensor | None:
        weight = self.own.weights(episodes)
        if weight is None:
            return None
        return checked_result(
            self.own,
            "weights",
            weight,
            episodes.reward.shape,
            "a weight for each step",
            lowest=0,
            of_mean_1=True,
            like=episodes.reward,
        )


class CheckedTarget(Target):
    """A user's target, what it returns being checked."""

    own: Target

    def fit(self, label: Tensor) -> tuple[Tensor, Tensor]:
        found = self.own.fit(label)
        lowest = (-math.inf, 0)
        mean, sd = checked_result(
            self.own, "fit", found, (2,), "a mean and an sd", lowest, like=label
        )
        return mean, sd

    def draw_noise(self, rng: np.random.Generator, count: int) -> Tensor:
        noise = self.own.draw_noise(rng, count)
        return checked_result(self.own, "draw_noise", noise, (count,), "one a command")


def checked_result(
    part: Part,
    method: str,
    result: Any,
    shape: Sequence[int],
    meaning: str,
    lowest: Sequence[float] | float = -math.inf,
    of_mean_1: bool = False,
    like: Tensor | None = None,
) -> Tensor:
    """What ``method`` of a part returned, as a finite float32 tensor.

    Args:
        part: whose it is.
        method: its name.
        result: a tensor, or what torch makes one of: a NumPy array, numbers, a tuple of tensors.
        shape: that it must have.
        meaning: of the shape, for the message.
        lowest: that each number may be.
        of_mean_1: whether the mean must be 1.
        like: the result is to be on this tensor's device.

    Raises:
        UserError: of one line with part, module, what was returned and what is needed.
    """
    where = f"{type(part).__name__}.{method} (module {type(part).__module__}) returned"
    needs = f"needs {list(shape)}, {meaning}"
    device = None if like is None else like.device
    try:
        found = torch.as_tensor(result, dtype=torch.float32, device=device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{where} {shown(result)}, {needs}") from error
    if found.shape != torch.Size(shape):
        raise UserError(f"{where} {list(found.shape)}, {needs}")
    bad = found[~found.isfinite()]
    if len(bad):
        raise UserError(
            f"{where} {float(bad[0])} as {len(bad)} of {found.numel()} numbers, {needs}, finite"
        )
    low = found < torch.as_tensor(lowest, device=device)
    if low.any():
        raise UserError(f"{where} {float(found[low][0]):g}, {needs}, none below 0")
    if of_mean_1 and abs(float(found.mean()) - 1) > _OFF:
        raise UserError(
            f"{where} numbers of mean {float(found.mean()):g}, {needs}, of mean 1; divide by "
            "the mean"
        )
    return found
