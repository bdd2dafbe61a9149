"""The command of tasks that pay for every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lightning_rl.methods.upside_down.commands import ReturnHorizon, register_command
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.config import UpsideDownConfig


@register_command("survival")
class Survival(ReturnHorizon):
    """A return within as many steps as it takes, where each step pays alike (UDRL paper, section
    3.3: TakeCover, whose desired horizon is the desired return).
    """

    def following_numbers(self, buffer: EpisodeBuffer) -> tuple[float, ...]:
        """How many steps a return of 1 takes in the ``last_few`` best episodes."""
        returns, lengths = buffer.highest(self.last_few)
        return (float(lengths.sum() / max(returns.sum(), 1e-9)),)

    def completed(self, first: float, following: Sequence[float]) -> tuple[float, ...]:
        return first, max(round(first * following[0]), 1)

    def check(self, cfg: UpsideDownConfig) -> None:
        super().check(cfg)
        if cfg.standardise:
            raise ValueError("command survival keeps its units; set standardise=false")
