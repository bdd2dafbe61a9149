"""The config of upside-down RL: which parts there are, and which of them do not go together."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.limits import EPISODES, STEPS
from lightning_rl.core.schema import STRICT, Batch, Episodes, MethodConfig, Share, Sizes
from lightning_rl.envs.spec import EnvSpec

_LONG_EPISODE = (
    10_000  # steps; a longer time limit is none, and says nothing of how long episodes are
)


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class UpsideDownConfig(MethodConfig):
    """Keys of ``configs/upside_down.yaml``, where each is explained."""

    learning_starts: Episodes
    num_episodes_per_iter: Episodes | None
    steps_per_iter: Annotated[int, Field(ge=1, le=STEPS)] | None
    num_held_out_episodes_per_iter: Annotated[int, Field(ge=0, le=EPISODES)]
    buffer: Literal["best", "newest", "both"]
    replay_size: PositiveInt
    recent_episodes: PositiveInt | None
    window_steps: PositiveInt | None
    sample_by: Literal["episode", "transition"]
    segments: Literal["trailing", "any"]
    overlap: bool
    noise_hold: Share
    gamma: Share
    label_max: float | None
    bootstrap_truncated: bool
    value_lambda: Share
    gae_lambda: Share
    command: Literal["return_horizon", "return", "advantage"]
    condition: bool
    standardise: bool
    command_limit: Annotated[float, Field(gt=0, allow_inf_nan=True)]  # .inf: no limit
    weights: Literal["none", "return_to_go", "episode_return", "advantage", "fitted_advantage"]
    temperature: PositiveFloat
    max_weight: PositiveFloat
    command_rule: Literal["hold", "decrease"]
    command_draw: Literal["episode", "step"]
    guidance: NonNegativeFloat
    max_return: float | None
    target: Literal["range", "tilted", "quantile", "max"]
    target_labels: Literal["best", "buffer", "step", "minibatch", "episode"]
    last_few: PositiveInt
    target_episodes: PositiveInt | None
    target_temperature: PositiveFloat
    target_quantile: Share
    target_spread: NonNegativeFloat
    target_limit: bool
    num_updates_per_iter: PositiveInt
    batch_size: Batch
    learning_rate: PositiveFloat
    anneal_from: Share
    max_grad_norm: PositiveFloat | None
    tau: Share
    num_critic_updates_per_iter: PositiveInt
    critic_learning_rate: PositiveFloat
    critic_max_grad_norm: PositiveFloat
    value_scale: PositiveFloat
    network: Literal["gated", "layers", "hyper", "bilinear"]
    hidden: Sizes
    gate_scale: PositiveFloat
    output_scale: PositiveFloat
    return_scale: PositiveFloat
    horizon_scale: PositiveFloat
    critic_hidden: Sizes | None

    @property
    def has_critic(self) -> bool:
        return "advantage" in (self.command, self.weights) or self.fits_advantages

    @property
    def highest_label(self) -> float:
        return math.inf if self.label_max is None else self.label_max

    @property
    def fits_advantages(self) -> bool:
        return self.weights == "fitted_advantage"

    @property
    def commands_in_deviations(self) -> bool:
        """Whether a command counts in standard deviations of the labels; otherwise it has their
        unit.
        """
        return self.standardise and self.command == "advantage"

    @property
    def targets_episode_returns(self) -> bool:
        """Whether targets are undiscounted returns of whole episodes, bounded by ``max_return``;
        returns-to-go may be higher.
        """
        undiscounted = self.command == "return_horizon" or (
            self.command == "return" and self.gamma == 1
        )
        return undiscounted and self.target_labels in ("best", "episode")

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        longest = min(spec.horizon, _LONG_EPISODE)
        best, newest = {"replay_size": self.replay_size * longest}, {}
        if self.window_steps is not None:
            newest = {"window_steps": self.window_steps}
        elif self.recent_episodes is not None:
            newest = {"recent_episodes": self.recent_episodes * longest}
        return {"best": best, "newest": newest, "both": best | newest}[self.buffer]

    @model_validator(mode="after")
    def _check_data(self) -> Self:
        if (self.num_episodes_per_iter is None) == (self.steps_per_iter is None):
            raise ValueError(
                "a collection is counted in num_episodes_per_iter or in steps_per_iter; set one, "
                "the other to null"
            )
        if self.buffer != "best" and self.recent_episodes is None and self.window_steps is None:
            raise ValueError(
                f"buffer {self.buffer} has no limit; set recent_episodes or window_steps"
            )
        if self.segments == "any" and self.command != "return_horizon":
            raise ValueError(
                f"segments any end anywhere, which command {self.command} does not say; set "
                "segments=trailing"
            )
        if self.num_held_out_episodes_per_iter and self.command == "advantage":
            raise ValueError(
                "held-out episodes have no advantages to be asked for; set "
                "num_held_out_episodes_per_iter=0"
            )
        if self.has_critic and self.critic_hidden is None:
            raise ValueError("advantages need a critic; set critic_hidden=[128, 64]")
        if self.anneal_from < 1 and self.max_env_steps is None:
            raise ValueError(
                f"anneal_from {self.anneal_from} is of max_env_steps, which is null; set it, or "
                "anneal_from=1.0"
            )
        return self

    @model_validator(mode="after")
    def _check_commands(self) -> Self:
        best, other = (
            self.target_labels == "best",
            "episode" if self.command_rule == "decrease" else "buffer",
        )
        if self.command_rule == "decrease" and self.command == "advantage":
            raise ValueError("an advantage is not used up by rewards; set command_rule=hold")
        if self.command_rule == "decrease" and self.command == "return" and self.gamma == 0:
            raise ValueError(
                "command_rule decrease divides what is left by gamma; set gamma above 0, or "
                "command_rule=hold"
            )
        if self.command_rule == "decrease" and self.target_labels not in ("best", "episode"):
            raise ValueError(
                "command_rule decrease begins with what an episode is to collect; set "
                "target_labels=episode"
            )
        if not self.standardise and self.command_limit < float("inf"):
            raise ValueError(
                f"command_limit {self.command_limit} is of standardised commands; set "
                "command_limit=.inf as well"
            )
        if self.command_draw == "step" and (
            self.command_rule == "decrease" or self.command == "return_horizon"
        ):
            raise ValueError(
                "command_draw step is for commands of one number that are held; set "
                "command_draw=episode"
            )
        if self.command_draw == "step" and (self.target == "range" or best):
            raise ValueError(
                "command_draw step has normal noise around labels of steps; set "
                "command_draw=episode"
            )
        if best and not self.targets_episode_returns:
            raise ValueError(
                f"target_labels best: they are undiscounted, not command {self.command}; set "
                f"target_labels={other}"
            )
        if self.target_episodes is not None and self.target_labels != "episode":
            raise ValueError(
                f"target_episodes {self.target_episodes} is for first steps; set "
                "target_labels=episode, or null"
            )
        if self.target_episodes is not None and self.buffer != "newest":
            raise ValueError(
                f"target_episodes {self.target_episodes} counts the newest, which buffer "
                f"{self.buffer} does not "
                "keep apart; set buffer=newest, or target_episodes=null"
            )
        return self

    def resolved(self, gamename: str) -> Self:
        return self if self.has_critic else dataclasses.replace(self, critic_hidden=None)

    def absent_networks(self) -> dict[str, str]:
        remedy = "set command=advantage or weights=fitted_advantage, or leave it out"
        return (
            {}
            if self.has_critic
            else {
                "critic": f"command={self.command}, weights={self.weights} has no critic; {remedy}"
            }
        )

    def unread(self) -> dict[str, str]:
        critic = (
            "bootstrap_truncated value_lambda gae_lambda num_critic_updates_per_iter "
            "critic_learning_rate "
        )
        critic += "critic_max_grad_norm value_scale" + " critic_hidden" * (
            self.critic_hidden is not None
        )
        by_horizon = self.command == "return_horizon"
        rules = (
            (
                "advantage" not in (self.command, self.weights),
                "gae_lambda",
                "no advantage is sampled; set weights=advantage as well",
            ),
            (
                not self.has_critic,
                critic,
                "there is no critic; set command=advantage or weights=fitted_advantage as well",
            ),
            (
                by_horizon and self.weights in ("none", "episode_return"),
                "gamma",
                "nothing is discounted; set command=return or weights=return_to_go as well",
            ),
            (
                not by_horizon and self.target_labels != "best",
                "last_few",
                "commands are not those of the best episodes; set target_labels=best as well",
            ),
            (
                not (self.target == "range" and self.targets_episode_returns)
                and self.command_rule == "hold",
                "max_return",
                "commands are not clipped to it; set target=range, of returns of whole episodes, "
                "or command_rule=decrease as well",
            ),
            (
                by_horizon and self.weights == "none",
                "label_max",
                "no label is used; set weights as well",
            ),
            (self.weights == "none", "temperature", "all steps count alike; set weights as well"),
            (
                self.weights == "none" and self.target != "tilted",
                "max_weight",
                "all steps count alike; set weights as well",
            ),
            (
                self.buffer == "newest",
                "replay_size",
                "no best episodes are kept; set buffer=both as well",
            ),
            (
                self.buffer == "best",
                "recent_episodes window_steps",
                "only the best are kept; set buffer=both or newest as well",
            ),
            (self.target != "tilted", "target_temperature", "set target=tilted as well"),
            (self.target != "quantile", "target_quantile", "set target=quantile as well"),
            (self.network != "layers", "gate_scale output_scale", "set network=layers as well"),
            (
                self.standardise,
                "return_scale horizon_scale",
                "commands are standardised; set standardise=false as well",
            ),
            (
                not by_horizon,
                "horizon_scale",
                "commands have no horizon; set command=return_horizon as well",
            ),
        )
        return {key: reason for holds, keys, reason in rules if holds for key in keys.split()}
