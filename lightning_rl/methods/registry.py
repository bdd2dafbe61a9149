"""Implementations by name. Adding a method of an existing family is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lightning_rl.core.schema import MethodConfig
from lightning_rl.core.types import UserError
from lightning_rl.methods import (
    agent_configs,
    model_based,
    policy_gradient,
    reward_conditioned,
    reward_conditioned_configs,
    upside_down,
)
from lightning_rl.methods import agents as agent
from lightning_rl.methods import proxy_search as bilevel
from lightning_rl.methods import proxy_search_configs as bilevel_configs
from lightning_rl.methods import supervised_model as mbrl
from lightning_rl.methods.base import Evaluation, Experience, Method


@dataclass(frozen=True)
class Implementation:
    """A method, the schema of its YAML, and what makes its training and evaluation data."""

    method: type[Method]
    config: type[MethodConfig]
    make_loaders: Callable[[Any, int], tuple[Experience, Evaluation]]
    summary: str


IMPLEMENTATIONS: dict[str, Implementation] = {
    "UDRL": Implementation(
        upside_down.UDRL,
        upside_down.UDRLConfig,
        upside_down.make_loaders,
        "Upside-Down RL: supervised learning of commanded returns",
    ),
    "RCP-R": Implementation(
        reward_conditioned.RCPR,
        reward_conditioned_configs.RCPRConfig,
        reward_conditioned.make_loaders,
        "Reward-Conditioned Policies, conditioned on the return-to-go",
    ),
    "RCP-A": Implementation(
        reward_conditioned.RCPA,
        reward_conditioned_configs.RCPAConfig,
        reward_conditioned.make_loaders,
        "Reward-Conditioned Policies, conditioned on the advantage",
    ),
    "REINFORCE": Implementation(
        policy_gradient.REINFORCE,
        policy_gradient.REINFORCEConfig,
        policy_gradient.make_loaders,
        "Policy gradient: every step weighted by its return-to-go",
    ),
    "REINFORCE-baseline": Implementation(
        policy_gradient.REINFORCEBaseline,
        policy_gradient.BaselineConfig,
        policy_gradient.make_loaders,
        "REINFORCE with the batch mean as baseline",
    ),
    "REINFORCE-entropy": Implementation(
        policy_gradient.REINFORCEEntropy,
        policy_gradient.EntropyConfig,
        policy_gradient.make_loaders,
        "REINFORCE with an entropy bonus",
    ),
    "REINFORCE-combined": Implementation(
        policy_gradient.REINFORCECombined,
        policy_gradient.CombinedConfig,
        policy_gradient.make_loaders,
        "REINFORCE with baseline and entropy bonus",
    ),
    "AAC": Implementation(
        policy_gradient.AAC,
        policy_gradient.AACConfig,
        policy_gradient.make_loaders,
        "Advantage actor-critic with an entropy bonus",
    ),
    "QL": Implementation(agent.QL, agent_configs.TabularConfig, agent.make_loaders, "tabular Q-learning"),
    "SARSA": Implementation(agent.SARSA, agent_configs.TabularConfig, agent.make_loaders, "tabular SARSA"),
    "DDQN": Implementation(agent.DDQN, agent_configs.DDQNConfig, agent.make_loaders, "double DQN"),
    "DuelingDDQN": Implementation(
        agent.DuelingDDQN, agent_configs.DuelingDDQNConfig, agent.make_loaders, "double DQN with a dueling network"
    ),
    "TD3": Implementation(agent.TD3, agent_configs.TD3Config, agent.make_loaders, "TD3"),
    "TD3-discrete": Implementation(
        agent.TD3Discrete, agent_configs.TD3DiscreteConfig, agent.make_loaders, "TD3 with Gumbel-softmax actions"
    ),
    "SE": Implementation(bilevel.SE, bilevel_configs.SEConfig, bilevel.make_loaders, "Evolved synthetic environments"),
    "RN": Implementation(bilevel.RN, bilevel_configs.RNConfig, bilevel.make_loaders, "Evolved reward networks"),
    "MBRL": Implementation(mbrl.MBRL, mbrl.MBRLConfig, mbrl.make_loaders, "Supervised model, the baseline of SE"),
    "PPO": Implementation(agent.PPO, agent_configs.PPOConfig, agent.make_loaders, "proximal policy optimisation"),
    "ER": Implementation(model_based.ER, model_based.ERConfig, model_based.make_loaders, "DQN on replayed experience"),
    "perfect-model": Implementation(
        model_based.PerfectModel,
        model_based.PerfectConfig,
        model_based.make_loaders,
        "DQN on roll-outs of the environment itself",
    ),
    "simple-model": Implementation(
        model_based.SimpleModelMethod,
        model_based.SimpleConfig,
        model_based.make_loaders,
        "DQN on roll-outs of a learned model of observations",
    ),
    "categorical-latent": Implementation(
        model_based.CategoricalLatentMethod,
        model_based.CategoricalConfig,
        model_based.make_loaders,
        "DQN on roll-outs of a learned model of categorical latents",
    ),
    "gaussian-latent": Implementation(
        model_based.GaussianLatentMethod,
        model_based.GaussianConfig,
        model_based.make_loaders,
        "DQN on roll-outs of a learned model of Gaussian latents",
    ),
}

ALIASES = {
    "vpg": "REINFORCE",
    "bpg": "REINFORCE-baseline",
    "epg": "REINFORCE-entropy",
    "cpg": "REINFORCE-combined",
    "aac": "AAC",
}
"""Short names; paths, configs and checkpoints carry the long ones."""


def canonical(name: str) -> str:
    """The name that an alias stands for; any other name as it is."""
    return ALIASES.get(name, name)


def implementation(name: str) -> Implementation:
    """The implementation called ``name``; UserError for an unknown one."""
    if name in IMPLEMENTATIONS:
        return IMPLEMENTATIONS[name]
    choice = f"choose one of: {', '.join(IMPLEMENTATIONS)}"
    raise UserError(f"implementation '{name}' is unknown; {choice}")
