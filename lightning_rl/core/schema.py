"""What the configs of all methods share. Without Lightning: the workers of a population read it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, PositiveInt
from pydantic.dataclasses import dataclass

from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import Images
from lightning_rl.core.limits import AGENTS, BATCH, EPISODES, LAYERS, SCREEN, WIDTH

if TYPE_CHECKING:
    from lightning_rl.envs.spec import EnvSpec

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Share = Annotated[float, Field(ge=0, le=1)]
Episodes = Annotated[int, Field(gt=0, le=EPISODES)]
Agents = Annotated[int, Field(gt=0, le=AGENTS)]
Batch = Annotated[int, Field(gt=0, le=BATCH)]
Width = Annotated[int, Field(gt=0, le=WIDTH)]
HiddenSizes = Annotated[list[Width], Field(max_length=LAYERS)]
Sizes = Annotated[list[Width], Field(min_length=1, max_length=LAYERS)]


_OF_FACTORS = (
    "its actions are several at once (MultiDiscrete), from which UDRL, RCP-R, RCP-A and policy "
    "gradients learn; take one of these"
)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class MethodConfig:
    """Keys that every implementation has; the values are in ``configs/<family>.yaml``.

    unsaved: keys of networks that no checkpoint holds.
    """

    unsaved: ClassVar[frozenset[str]] = frozenset()
    max_epochs: PositiveInt
    max_env_steps: PositiveInt | None
    chunk_size: PositiveInt
    eval_interval: PositiveInt
    eval_episodes: Episodes
    checkpoint_interval: PositiveInt

    @classmethod
    def why_unfit(cls, spec: EnvSpec) -> str | None:
        """Why networks of the method do not fit an environment's spaces; None where they do."""
        if spec.frames is not None:
            return (
                "its observations are images, from which UDRL, RCP-R, RCP-A, policy gradients, "
                "DDQN, DuelingDDQN and PPO learn; take one of these"
            )
        if spec.factors:
            return _OF_FACTORS
        return None

    @property
    def epoch_budget(self) -> int:
        """Epochs until the budget is spent; a method may count its budget in other units."""
        return self.max_epochs

    def ignored_keys(self) -> dict[str, str]:
        """Keys that make no difference beside this config's others, each with the reason and the
        remedy.
        """
        return {}

    def absent_networks(self) -> dict[str, str]:
        """Networks that the method takes, but not with this config, each with the reason and the
        remedy.
        """
        return {}

    def gpu_only(self) -> str | None:
        """What of it has an effect on a GPU alone, with the remedy; None where nothing has."""
        return None

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        """How many environment steps a seed keeps in memory, by the key that says so."""
        return {}

    def seen(self, spec: EnvSpec) -> EnvSpec:
        """The facts of an environment, of images as the keys have them seen; UserError for such
        keys where there are none.
        """
        return spec

    def resolved(self, gamename: str) -> Self:
        """The config with all that it takes from elsewhere written out, as the run's record
        shall have it.
        """
        return self


@dataclass(frozen=True, config=STRICT, kw_only=True)
class ImageConfig(MethodConfig):
    """Keys of methods that can learn from images, of which null is as the environment's name says,
    and with masks of actions.
    """

    action_masks: bool
    frame_stack: Annotated[int, Field(gt=0, le=64)] | None
    frame_skip: Annotated[int, Field(gt=0, le=64)] | None
    screen_size: Annotated[int, Field(gt=0, le=SCREEN)] | None
    grayscale: bool | None
    encoder: Literal["udrl", "nature"]

    @classmethod
    def why_unfit(cls, spec: EnvSpec) -> str | None:
        return _OF_FACTORS if spec.factors else None

    def seen(self, spec: EnvSpec) -> EnvSpec:
        if self.action_masks:
            spec = spec.with_masks()
        given = {field.name: getattr(self, field.name) for field in fields(Images)}
        given = {name: value for name, value in given.items() if value is not None}
        if spec.images is not None:
            seen = spec.seen_as(replace(spec.images, **given))
            assert seen.frames is not None
            if max(seen.frames.height, seen.frames.width) > SCREEN:
                raise UserError(
                    f"the observations of {spec.gamename} are images of {seen.frames.height} x "
                    f"{seen.frames.width}; networks here take up to {SCREEN} x {SCREEN}: set "
                    "screen_size, e.g. screen_size=84"
                )
            return seen
        for name, value in given.items():
            raise UserError(
                f"{name} {value}: the observations of gamename '{spec.gamename}' are no images; "
                "leave it out"
            )
        return spec


@dataclass(frozen=True, config=STRICT, kw_only=True)
class ObsConfig(ImageConfig):
    """Keys of methods that can also normalise observations that are no images, and that learn
    several discrete actions at once.
    """

    normalise_obs: bool

    @classmethod
    def why_unfit(cls, spec: EnvSpec) -> str | None:
        return None

    def seen(self, spec: EnvSpec) -> EnvSpec:
        if self.normalise_obs and (spec.frames is not None or spec.one_hot):
            kind = "one-hot" if spec.one_hot else "images"
            raise UserError(
                f"normalise_obs: the observations of gamename '{spec.gamename}' are {kind}, of a "
                "scale that is known; leave it out"
            )
        return super().seen(spec)


def ramp(share: float, start: float, end: float) -> float:
    """What keys in shares of the budget are read by: 0 up to ``start``, then linearly to 1 at
    ``end`` > ``start``, then 1.
    """
    return min(max((share - start) / (end - start), 0.0), 1.0)
