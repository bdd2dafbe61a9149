"""Schemas of the configs of Reward-Conditioned Policies."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.methods.base import STRICT, Share, Sizes
from lightning_rl.methods.window import WindowConfig


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RCPConfig(WindowConfig):
    """Keys that both methods share; each is explained in ``configs/RCP-A.yaml``."""

    discount: Share
    label_max: float | None
    standardise: bool
    command_limit: PositiveFloat
    condition: bool
    exp_weights: bool
    temperature: PositiveFloat
    final_temperature: PositiveFloat | None
    cooling: Annotated[list[Share], Field(min_length=2, max_length=2)]
    max_weight: PositiveFloat
    target: Literal["tilted", "quantile", "max"]
    target_temperature: PositiveFloat
    target_quantile: Share
    target_spread: NonNegativeFloat
    n_updates_per_iter: PositiveInt
    learning_rate: PositiveFloat
    gradient_clip: PositiveFloat | None
    averaging: Share
    hidden: Sizes
    gate_scale: PositiveFloat
    output_scale: PositiveFloat

    @model_validator(mode="after")
    def _check_cooling(self) -> Self:
        start, end = self.cooling
        if start >= end:
            raise ValueError(f"cooling {self.cooling}: the start must be below the end, e.g. [0.15, 0.5]")
        if self.final_temperature is not None and self.max_env_steps is None:
            raise ValueError("cooling is timed by max_env_steps, which is null; set it, or final_temperature=null")
        return self

    def temperature_at(self, env_steps: int) -> float:
        """Temperature of the weights after ``env_steps``: it falls linearly between two shares of ``max_env_steps``."""
        if self.final_temperature is None or self.max_env_steps is None:
            return self.temperature
        start, end = self.cooling
        progress = min(max((env_steps / self.max_env_steps - start) / (end - start), 0.0), 1.0)
        return self.temperature + (self.final_temperature - self.temperature) * progress


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RCPAConfig(RCPConfig):
    """Keys of ``configs/RCP-A.yaml``."""

    bootstrap_truncated: bool
    trace_decay: Share
    advantage_trace_decay: Share
    n_critic_updates_per_iter: PositiveInt
    critic_learning_rate: PositiveFloat
    critic_gradient_clip: PositiveFloat
    critic_hidden: Sizes
    value_scale: PositiveFloat


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RCPRConfig(RCPConfig):
    """Keys of ``configs/RCP-R.yaml``."""

    command: Literal["hold", "anneal"]
    weight_by: Literal["return_to_go", "episode_return"]
