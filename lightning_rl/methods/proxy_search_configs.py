"""Schemas of the configs of bi-level learning, and the inner agents that they ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.limits import EPISODES, WIDTH
from lightning_rl.core.schema import STRICT, Agents, Episodes, Layers, MethodConfig, Share
from lightning_rl.core.types import UserError
from lightning_rl.envs.spec import env_spec
from lightning_rl.evolution.strategies import OPTIONAL, STRATEGIES
from lightning_rl.functional.evolution import NEED_TWO, TRANSFORMS
from lightning_rl.functional.reward_shaping import REWARD_FORMS
from lightning_rl.methods.agent_configs import AGENTS
from lightning_rl.methods.inner_loop import OBJECTIVES
from lightning_rl.nets.activations import ActivationName


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class BilevelConfig(MethodConfig):
    """Keys of ``configs/SE.yaml`` and ``configs/RN.yaml``, explained there."""

    agent: str | list[str] | dict[str, dict[str, Any] | None] | None
    vary: bool
    stop_rule: Literal["plateau", "solved", "none"]
    solved_return: float | None
    unsolved_penalty: NonNegativeFloat
    test_episodes: Episodes
    judge_episodes: Annotated[int, Field(ge=0, le=EPISODES)]
    max_train_steps: PositiveInt
    strategy: str
    population: Agents
    noise_std: PositiveFloat
    step_size: PositiveFloat
    score_transform: str
    mirrored: bool
    num_grad_evals: Agents
    grad_eval_aggregate: Literal["mean", "min"]
    center_agents: Agents
    shared_agents: bool
    weight_decay: Share
    nes_step_size: bool
    keep: Literal["best", "last"]
    step_decay: PositiveFloat
    noise_decay: PositiveFloat
    hidden: Layers
    activation: ActivationName
    start: str | None
    eval_agents: Agents

    @model_validator(mode="after")
    def _check(self) -> BilevelConfig:
        for key, value, known in (
            ("strategy", self.strategy, STRATEGIES), ("score_transform", self.score_transform, TRANSFORMS),
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{key} '{value}' is unknown; choose one of: {', '.join(known)}")
        compares = self.strategy != "published" or self.score_transform in NEED_TWO
        if self.population == 1 and compares:
            what = f"strategy {self.strategy}" if self.strategy != "published" else f"score_transform {self.score_transform}"
            raise ValueError(f"population 1: {what} compares candidates with each other; use a population of 2 or more")
        if self.strategy == "openai" and not self.mirrored:
            raise ValueError("mirrored false: strategy openai works on mirrored pairs; use mirrored=true, or strategy=snes")
        if self.strategy == "cmaes" and self.mirrored:
            raise ValueError("mirrored true: strategy cmaes draws its own candidates; use mirrored=false")
        for key, decay, what in (("noise_decay", self.noise_decay, "noise"), ("step_decay", self.step_decay, "steps")):
            if decay != 1 and key in self.unread():
                raise ValueError(f"{key} {decay}: strategy {self.strategy} adapts its {what} itself; use 1.0")
        return self

    def unread(self) -> dict[str, str]:
        found = {}
        for key in OPTIONAL:
            readers = [name for name, strategy in STRATEGIES.items() if key in strategy.reads]
            if self.strategy not in readers:
                found[key] = f"strategy {self.strategy} does not read it; leave it out, or use strategy={' or '.join(readers)}"
        return found

    def resolved(self, gamename: str) -> BilevelConfig:
        """With every value of the inner agents, so that a run's record is complete."""
        agents = {name: dataclasses.asdict(cfg) for name, cfg in agent_configs(self.agent, gamename)}
        return dataclasses.replace(self, agent=agents)  # type: ignore[arg-type]


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class SEConfig(BilevelConfig):
    """Keys of ``configs/SE.yaml``."""

    stop_when_solved: bool
    proxy_horizon: PositiveInt | None
    cap_ends: bool
    latent_size: Annotated[int, Field(ge=0, le=WIDTH)]
    reencode: bool


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RNConfig(BilevelConfig):
    """Keys of ``configs/RN.yaml``."""

    reward: str
    objective: str

    @model_validator(mode="after")
    def _check_reward(self) -> RNConfig:
        for key, value, known in (("reward", self.reward, REWARD_FORMS), ("objective", self.objective, OBJECTIVES)):
            if value not in known:
                raise ValueError(f"{key} '{value}' is unknown; choose one of: {', '.join(known)}")
        if self.judge_episodes == 0 and (self.stop_rule != "none" or self.objective == "auc"):
            raise ValueError("judge_episodes 0: learned returns judge nothing; use 1, or stop_rule=none (and not auc)")
        return self


def agent_configs(
    asked: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None, gamename: str, preset: str | None = None
) -> tuple[tuple[str, Any], ...]:
    """(implementation, config) of the inner agents: their own YAML for the gamename, with the settings that are asked for.

    asked: a name, several, or names with settings; None: DDQN, or TD3 for continuous actions. Of several, those that fit the
    actions are taken. preset: of their YAMLs. UserError for an unknown one, and where none fits.
    """
    spec = env_spec(gamename)
    if asked is None:
        asked = "TD3" if spec.continuous else "DDQN"
    names = [asked] if isinstance(asked, str) else list(asked)
    if not names:
        raise UserError("key 'agent' is empty; name one or more agents, e.g. agent=DDQN")
    settings = asked if isinstance(asked, Mapping) else {}
    for name in names:
        if name not in AGENTS:
            raise UserError(f"agent '{name}' is unknown; choose one of: {', '.join(AGENTS)}")
    fitting = [name for name in names if AGENTS[name].misfit(spec) is None]
    if not fitting:
        raise UserError(f"agent {names[0]} does not fit gamename '{gamename}': {AGENTS[names[0]].misfit(spec)}")
    found = []
    for name in fitting:
        layers = [*merged_values(name, gamename, preset), (f"key 'agent', {name}", settings.get(name) or {})]
        found.append((name, build_config(AGENTS[name].config, layers)))
    return tuple(found)
