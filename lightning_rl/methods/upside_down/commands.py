"""Commands: what the policy is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from lightning_rl.core.limits import shown
from lightning_rl.core.parts import Kind, Part
from lightning_rl.core.schema import Share
from lightning_rl.core.types import FloatArray
from lightning_rl.functional.command_rule import Decrease
from lightning_rl.functional.upside_down import at_most
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, FlatEpisodes

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.config import UpsideDownConfig


class Command(Part):
    """What the policy is asked for, ``C`` numbers; in training what really happened.

    A subclass sets ``names`` and defines ``fulfilled``; with ``command_rule: decrease`` also
    ``after``.

    names: of its numbers. The target draws the first; ``following_numbers`` gives the others.
    in_deviations: with ``standardise`` a command is given in standard deviations of all commands
        that were fulfilled; otherwise it keeps its unit, and the network scales it.
    buffer: what keeps the episodes.
    """

    names: ClassVar[tuple[str, ...]]
    to_define = ("names", "fulfilled")
    in_deviations: ClassVar[bool] = False
    buffer = EpisodeBuffer

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        """What was obtained from each step to the end of its episode, ``[M, C]``."""
        raise NotImplementedError

    def fulfilled_within(self, episodes: FlatEpisodes, step: Tensor, length: Tensor) -> Tensor:
        """What was obtained within ``length`` steps from each ``step``, ``[..., C]``.

        step and length ``[...]``. Only ``segments: any`` asks for it.
        """
        raise NotImplementedError

    def after(self, command: FloatArray, reward: FloatArray) -> FloatArray:
        """What is left of commands ``[B, C]`` after a step that gave rewards ``[B]``.

        Those of this package are a ``Decrease``, which an export can hold.
        """
        raise NotImplementedError

    def following_numbers(self, buffer: EpisodeBuffer) -> tuple[float, ...]:
        """The numbers after the first, of the next commands."""
        return ()

    def completed(self, first: float, following: Sequence[float]) -> tuple[float, ...]:
        """The command of an episode, of the first number that was drawn and those that follow."""
        return (first, *following)

    def scales(self, return_scale: float) -> tuple[float, ...]:
        """What the network multiplies the numbers by, unless they are standardised."""
        return (return_scale,) * len(self.names)

    @property
    def is_episode_return(self) -> bool:
        """Whether the first number, at the beginning of an episode, is its undiscounted return."""
        return False

    @classmethod
    def can(cls, method: str) -> bool:
        """Whether it defines a method that not all commands have."""
        return getattr(cls, method) is not getattr(Command, method)

    @classmethod
    def check_class(cls) -> None:
        super().check_class()
        if isinstance(cls.names, str) or not all(isinstance(name, str) for name in cls.names):
            raise ValueError(f"names {shown(cls.names)} is no tuple of texts; write ('steps',)")

    def check(self, cfg: UpsideDownConfig) -> None:
        decreases = cfg.command_rule == "decrease" and self.can("after")
        wrong = []
        if cfg.command_rule == "decrease" and not decreases:
            wrong.append(
                f"command_rule decrease: {self.names[0]} is not used up by rewards; set "
                "command_rule=hold"
            )
        trailing = cfg.commands_in_deviations or not self.can("fulfilled_within")
        if cfg.segments == "any" and trailing:
            wrong.append(
                f"segments any end anywhere, and command {cfg.command} has no fulfilled_within, or "
                "is in_deviations; set segments=trailing"
            )
        if cfg.target_labels == "best" and not self.is_episode_return:
            wrong.append(
                "target_labels best are undiscounted returns of episodes, which command "
                f"{cfg.command} does not ask for; set "
                f"target_labels={'episode' if decreases else 'buffer'}"
            )
        if cfg.num_held_out_episodes_per_iter and (self.requires or cfg.commands_in_deviations):
            wrong.append(
                f"held-out episodes have no {self.names[0]} to be asked for; set "
                "num_held_out_episodes_per_iter=0"
            )
        if wrong:
            raise ValueError("; ".join(wrong))


COMMANDS = Kind("command", Command, "register_command")
register_command = COMMANDS.register


@register_command("return_horizon")
class ReturnHorizon(Command):
    """An undiscounted return within a number of steps (UDRL paper, section 2)."""

    names = ("return", "horizon")
    last_few: PositiveInt
    max_return: float | None
    horizon_scale: PositiveFloat

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        return torch.stack([episodes.to_go[episodes.row], episodes.left.float()], dim=-1)

    def fulfilled_within(self, episodes: FlatEpisodes, step: Tensor, length: Tensor) -> Tensor:
        row = episodes.row[step]
        obtained = episodes.to_go[row] - episodes.to_go[row + length]
        return torch.stack([obtained, length.to(obtained.dtype)], dim=-1)

    @property
    def after(self) -> Decrease:
        """As in the UDRL paper, Algorithm 2."""
        return Decrease(highest=most_left(self.max_return))

    def following_numbers(self, buffer: EpisodeBuffer) -> tuple[float, ...]:
        """The mean length of the ``last_few`` best episodes (UDRL paper, section 2.2.4)."""
        _, lengths = buffer.highest(self.last_few)
        return (round(float(np.mean(lengths))),)

    def scales(self, return_scale: float) -> tuple[float, ...]:
        return return_scale, self.horizon_scale

    @property
    def is_episode_return(self) -> bool:
        return True


@register_command("return")
class Return(Command):
    """A discounted return-to-go (RCP-R), in the task's unit."""

    names = ("return",)
    gamma: Share
    label_max: float | None
    max_return: float | None

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        return_to_go = episodes.discounted_return(self.gamma)
        return at_most(self.label_max, return_to_go).unsqueeze(-1)

    @property
    def after(self) -> Decrease:
        return Decrease(self.gamma, most_left(self.max_return))

    @property
    def is_episode_return(self) -> bool:
        return self.gamma == 1

    def check(self, cfg: UpsideDownConfig) -> None:
        super().check(cfg)
        if cfg.command_rule == "decrease" and self.gamma == 0:
            raise ValueError(
                "command_rule decrease divides what is left by gamma; set gamma above 0, or "
                "command_rule=hold"
            )


def most_left(max_return: float | None) -> float:
    """The most that can be left of a return.

    The paper's bound is ``max_return`` itself; where that is negative, it would be too low: what is
    left to lose shrinks to 0 within an episode.
    """
    return math.inf if max_return is None else max(max_return, 0.0)
