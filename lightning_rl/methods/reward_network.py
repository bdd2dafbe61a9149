"""Reward networks (RN): the real task with a learned reward (Ferreira et al. 2022, arXiv
2202.02790); ``proxy_search`` is how.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.core.schema import STRICT
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.functional.reward_shaping import REWARD_FORMS
from lightning_rl.methods.inner_loop import OBJECTIVES, agent_configs
from lightning_rl.methods.proxy_search import AgentSearchConfig, ProxySearch
from lightning_rl.methods.registry import register_method


def _reward_name(value: Any) -> Any:
    """The name of a reward form that may be given by its number in the paper's code."""
    if type(value) is not int:
        return value
    names = {form.code: name for name, form in REWARD_FORMS.items()}
    return names.get(value, str(value))


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class RNConfig(AgentSearchConfig):
    """Keys of RN."""

    reward: Annotated[str, BeforeValidator(_reward_name)]
    # Of this one alone; plain, it would take over the value of its base.
    objective: str = Field()  # type: ignore[misc]
    scale_states: bool

    @model_validator(mode="after")
    def _check_reward(self) -> RNConfig:
        if self.reward == "-1":
            raise ValueError(
                "reward -1: use reward=native and agent={DDQN: {curiosity: icm}}, that is what it "
                "stands for"
            )
        for key, known in (("reward", REWARD_FORMS), ("objective", OBJECTIVES)):
            if getattr(self, key) not in known:
                raise ValueError(
                    f"{key} '{getattr(self, key)}' is unknown; choose one of: {', '.join(known)}"
                )
        if self.judge_episodes == 0 and (self.stop_rule != "none" or self.objective == "auc"):
            raise ValueError(
                "judge_episodes 0: learned returns judge nothing; use 1, or stop_rule=none, "
                "objective=final_return"
            )
        if self.objective == "auc" and self.stop_rule != "none":
            raise ValueError(
                f"objective auc: with stop_rule {self.stop_rule} early success has a small area; "
                "set stop_rule=none"
            )
        if self.objective == "steps_to_threshold" and self.stop_rule == "none":
            raise ValueError(
                "objective steps_to_threshold: with stop_rule none all train to the end; set "
                "stop_rule=solved"
            )
        return self

    def proxy(self, gamename: str) -> RewardProxy:
        ((_, agent), *_) = agent_configs(self.agent, gamename)
        return RewardProxy(
            gamename=gamename,
            hidden=tuple(self.hidden),
            activation=self.activation,
            form=self.reward,
            gamma=agent.gamma,
            scale_states=self.scale_states,
        )


@register_method("RN")
class RN(ProxySearch):
    """Reward networks: the real task with a learned reward."""

    Config = RNConfig
