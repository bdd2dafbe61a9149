"""Schemas of the configs of Reward-Conditioned Policies."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.schema import STRICT, Share, Sizes
from lightning_rl.functional.schedules import ramp
from lightning_rl.methods.window import WindowConfig


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RCPConfig(WindowConfig):
    """Keys that both methods share; each is explained in ``configs/upside_down.yaml``."""

    gamma: Share
    label_max: float | None
    standardise: bool
    command_limit: Annotated[float, Field(gt=0, allow_inf_nan=True)]  # .inf: no limit
    condition: bool
    exp_weights: bool
    temperature: PositiveFloat
    max_weight: PositiveFloat
    target: Literal["tilted", "quantile", "max"]
    target_temperature: PositiveFloat
    target_quantile: Share
    target_spread: NonNegativeFloat
    target_limit: bool
    command_draw: Literal["episode", "step"]
    num_updates_per_iter: PositiveInt
    learning_rate: PositiveFloat
    anneal_from: Share
    max_grad_norm: PositiveFloat | None
    tau: Share
    hidden: Sizes
    gate_scale: PositiveFloat
    output_scale: PositiveFloat

    @model_validator(mode="after")
    def _check_annealing(self) -> Self:
        if self.anneal_from < 1 and self.max_env_steps is None:
            raise ValueError(f"anneal_from {self.anneal_from} is of max_env_steps, which is null; set it, or anneal_from=1.0")
        return self

    def progress(self, env_steps: int) -> float:
        """Share of the budget of steps that is spent; 0 without a budget."""
        return 0.0 if self.max_env_steps is None else env_steps / self.max_env_steps


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RCPAConfig(RCPConfig):
    """Keys of RCP-A."""

    target_labels: Literal["window", "minibatch"]
    bootstrap_truncated: bool
    value_lambda: Share
    gae_lambda: Share
    final_gae_lambda: Share
    lambda_ramp: Annotated[list[Share], Field(min_length=2, max_length=2)]
    num_critic_updates_per_iter: PositiveInt
    critic_learning_rate: PositiveFloat
    critic_max_grad_norm: PositiveFloat
    critic_hidden: Sizes
    value_scale: PositiveFloat

    @model_validator(mode="after")
    def _check_ramp(self) -> Self:
        start, end = self.lambda_ramp
        if start >= end:
            raise ValueError(f"lambda_ramp {self.lambda_ramp}: the start must be below the end, e.g. [0.15, 0.35]")
        if self.final_gae_lambda != self.gae_lambda and self.max_env_steps is None:
            raise ValueError("lambda_ramp is of max_env_steps, which is null; set it, or gae_lambda and final_gae_lambda alike")
        return self

    def gae_lambda_at(self, env_steps: int) -> float:
        """Lambda of the advantage after ``env_steps``: it changes linearly between two shares of ``max_env_steps``."""
        change = self.final_gae_lambda - self.gae_lambda
        return self.gae_lambda + change * ramp(self.progress(env_steps), *self.lambda_ramp)


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RCPRConfig(RCPConfig):
    """Keys of RCP-R."""

    command: Literal["hold", "anneal"]
    target_labels: Literal["step", "episode"]
    target_episodes: PositiveInt | None
    weight_by: Literal["return_to_go", "episode_return"]

    @model_validator(mode="after")
    def _check_target_labels(self) -> Self:
        if self.command == "anneal" and self.target_labels == "step":
            raise ValueError("command anneal begins with what an episode is to collect; set target_labels=episode")
        if self.target_episodes is not None and self.target_labels == "step":
            raise ValueError(f"target_episodes {self.target_episodes}: labels of every step are of the whole window; "
                             "set target_labels=episode, or target_episodes=null")  # fmt: skip
        return self
