"""The config of upside-down RL: keys of the method and of its parts; what does not go together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.limits import EPISODES, STEPS
from lightning_rl.core.parts import keys_of_other_parts, with_keys, with_own_parts
from lightning_rl.core.schema import STRICT, Batch, Episodes, ObsConfig, Share, Sizes
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.upside_down import owed, survival, value  # noqa: F401  which register commands
from lightning_rl.methods.upside_down.commands import COMMANDS
from lightning_rl.methods.upside_down.critic import CriticFit
from lightning_rl.methods.upside_down.targets import TARGETS
from lightning_rl.methods.upside_down.weightings import WEIGHTINGS

KINDS = (COMMANDS, WEIGHTINGS, TARGETS)

SWITCHES: Mapping[tuple[str, Any], Sequence[str]] = {
    ("buffer", "best"): ("replay_size",),
    ("buffer", "newest"): ("recent_episodes", "window_steps"),
    ("buffer", "both"): ("replay_size", "recent_episodes", "window_steps"),
    ("target_labels", "best"): ("last_few",),
    ("network", "layers"): ("gate_scale", "output_scale"),
    ("condition", True): ("guidance",),
}
"""Keys of the method that are read with some values of another key alone."""

OF_PLAYING = (
    "learning_starts",
    "num_episodes_per_iter",
    "steps_per_iter",
    "buffer",
    "replay_size",
    "recent_episodes",
    "window_steps",
    "overlap",
    "noise_hold",
)
"""Keys of episodes that the policy plays: which, and which of them are kept."""

# steps; a longer time limit is none, and says nothing of how long episodes are
_LONG_EPISODE = 10_000


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class UpsideDownConfig(ObsConfig):
    """The method's keys, explained in ``configs/upside_down.yaml``; ``CONFIG`` adds the parts'."""

    offline: bool
    best_share: Annotated[float, Field(gt=0, le=1)]
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
    command: str
    condition: bool
    standardise: bool
    command_limit: Annotated[float, Field(gt=0, allow_inf_nan=True)]  # .inf: no limit
    weights: str
    command_rule: Literal["hold", "decrease"]
    command_draw: Literal["episode", "step"]
    guidance: NonNegativeFloat
    max_return: float | None
    target: str
    target_labels: Literal["best", "buffer", "step", "minibatch", "episode"]
    last_few: PositiveInt
    target_episodes: PositiveInt | None
    target_spread: NonNegativeFloat
    target_limit: bool
    num_updates_per_iter: PositiveInt
    batch_size: Batch
    learning_rate: PositiveFloat
    anneal_from: Share
    max_grad_norm: PositiveFloat | None
    tau: Share
    num_critic_updates_per_iter: PositiveInt
    critic_hidden: Sizes | None
    network: Literal["gated", "layers"]
    hidden: Sizes
    gate_scale: PositiveFloat
    output_scale: PositiveFloat
    return_scale: PositiveFloat
    kernels: Literal["numba", "torch"]

    @classmethod
    def for_values(cls, layers: Iterable[tuple[str, Mapping[str, Any]]]) -> type[UpsideDownConfig]:
        """The class with the keys of the user's parts as well; UserError for an unknown part."""
        return with_own_parts(cls, KINDS, layers)

    @property
    def critic(self) -> type[CriticFit] | None:
        """How the critic is fitted: as the most special of the parts that require one; or None."""
        chosen = (kind.find(getattr(self, kind.key), "config") for kind in KINDS)
        fits = [fit for part in chosen for fit in part.requires if issubclass(fit, CriticFit)]
        return max(fits, key=lambda fit: len(fit.__mro__), default=None)

    @property
    def updates_per_epoch(self) -> dict[str, int]:
        """How many updates each network has in an epoch that plays ``steps_per_iter``, or none."""
        updates = {"policy": self.num_updates_per_iter}
        if self.critic:
            updates["critic"] = self.num_critic_updates_per_iter
        return updates

    @property
    def targets_episode_returns(self) -> bool:
        """Whether targets are undiscounted returns of whole episodes, at most ``max_return``."""
        of_episodes = self.target_labels in ("best", "episode")
        return of_episodes and COMMANDS.make(self).is_episode_return

    @property
    def commands_in_deviations(self) -> bool:
        """Whether a command counts in standard deviations of those that were fulfilled."""
        return self.standardise and COMMANDS.classes[self.command].in_deviations

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        if self.offline:
            return {}  # the dataset is there before anything is trained
        longest = min(spec.decisions, _LONG_EPISODE)
        steps = {}
        if self.buffer != "newest":
            steps["replay_size"] = self.replay_size * longest
        if self.buffer != "best":
            if self.window_steps is not None:
                steps["window_steps"] = self.window_steps
            elif self.recent_episodes is not None:
                steps["recent_episodes"] = self.recent_episodes * longest
        return steps

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
        if self.critic and self.critic_hidden is None:
            raise ValueError("advantages need a critic; set critic_hidden=[128, 64]")
        if self.anneal_from < 1 and self.max_env_steps is None and not self.offline:
            raise ValueError(
                f"anneal_from {self.anneal_from} is of max_env_steps, which is null; set it, or "
                "anneal_from=1.0"
            )
        return self

    @model_validator(mode="after")
    def _check_commands(self) -> Self:
        for kind in KINDS:
            kind.make(self).check(self)
        decreases = self.command_rule == "decrease"
        best = self.target_labels == "best"
        if decreases and self.target_labels not in ("best", "episode"):
            raise ValueError(
                "command_rule decrease begins with what an episode is to collect; set "
                "target_labels=episode"
            )
        if not self.standardise and self.command_limit < math.inf:
            raise ValueError(
                f"command_limit {self.command_limit} is of standardised commands; set "
                "command_limit=.inf as well"
            )
        one_number = len(COMMANDS.classes[self.command].names) == 1
        otherwise = decreases or not one_number or self.target == "range" or best
        if self.command_draw == "step" and otherwise:
            raise ValueError(
                "command_draw step is for commands of one number that are held, with normal noise "
                "around labels of steps; set command_draw=episode"
            )
        newest = self.target_labels == "episode" and self.buffer == "newest"
        if self.target_episodes is not None and not newest:
            raise ValueError(
                f"target_episodes {self.target_episodes} is for first steps of the newest "
                "episodes; set target_labels=episode and buffer=newest, or target_episodes=null"
            )
        return self

    def resolved(self, gamename: str) -> Self:
        elsewhere: dict[str, Any] = {}
        if self.critic is None:
            elsewhere["critic_hidden"] = None
        if self.offline:
            elsewhere["max_env_steps"] = None
        return dataclasses.replace(self, **elsewhere)

    def absent_networks(self) -> dict[str, str]:
        if self.critic:
            return {}
        reason = f"command={self.command}, weights={self.weights} has no critic"
        remedy = "set command=advantage or weights=fitted_advantage, or leave it out"
        return {"critic": f"{reason}; {remedy}"}

    def ignored_keys(self) -> dict[str, str]:
        ignored_keys = keys_of_other_parts(self, KINDS, SWITCHES)
        if self.offline:
            ignored_keys |= dict.fromkeys(OF_PLAYING, "offline nothing is played; leave it out")
            ignored_keys["max_env_steps"] = "offline nothing is played; max_epochs is the budget"
        else:
            ignored_keys["best_share"] = "it is of a dataset; give --dataset as well"
        if self.critic_hidden is None:
            ignored_keys.pop("critic_hidden", None)
        if self.standardise:
            reason = "commands are standardised; set standardise=false as well"
            ignored_keys |= {"return_scale": reason, "horizon_scale": reason}
        limits_target = self.target == "range" and self.targets_episode_returns
        if self.command_rule == "hold" and not limits_target:
            ignored_keys["max_return"] = (
                "commands are not clipped to it; set target=range, of returns of whole episodes, "
                "or command_rule=decrease as well"
            )
        return ignored_keys


_PARTS = [part for kind in KINDS for part in kind.classes.values()]
CONFIG = with_keys(UpsideDownConfig, CriticFit, *_PARTS)
"""The config with the keys of all parts of this package."""
