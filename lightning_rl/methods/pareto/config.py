"""The config of Pareto-conditioned networks."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.limits import EPISODES
from lightning_rl.core.schema import STRICT, Batch, Episodes, MethodConfig, Share, Sizes
from lightning_rl.envs.spec import EnvSpec

_LONG_EPISODE = 10_000  # steps; a longer time limit says nothing of how long episodes are


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class ParetoConfig(MethodConfig):
    """The method's keys, explained in ``configs/pareto.yaml``."""

    learning_starts: Episodes
    num_episodes_per_iter: Episodes
    overlap: bool
    noise_hold: Share
    replay_size: Annotated[int, Field(ge=1, le=EPISODES)]
    crowding: NonNegativeFloat
    front_size: Episodes
    reference: list[float] | None
    num_updates_per_iter: PositiveInt
    batch_size: Batch
    learning_rate: PositiveFloat
    anneal_from: Share
    max_grad_norm: PositiveFloat | None
    tau: Share
    hidden: Sizes
    command_limit: Annotated[float, Field(gt=0, allow_inf_nan=True)]  # .inf: no limit
    kernels: Literal["numba", "torch"]

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size * min(spec.decisions, _LONG_EPISODE)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.anneal_from < 1 and self.max_env_steps is None:
            raise ValueError(
                f"anneal_from {self.anneal_from} is of max_env_steps, which is null; set it, or "
                "anneal_from=1.0"
            )
        return self
