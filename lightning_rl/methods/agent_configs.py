"""Schemas of the agents' configs, and the agents that they ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass

from lightning_rl.agents.base import Agent
from lightning_rl.agents.dqn import DDQN, DQNSettings
from lightning_rl.agents.icm import ICM, ICMSettings
from lightning_rl.agents.ppo import PPO, PPOSettings
from lightning_rl.agents.tabular import Tabular, TabularSettings
from lightning_rl.agents.td3 import TD3, DiscreteTD3, TD3Settings
from lightning_rl.agents.variation import Variation, vary
from lightning_rl.core.schema import STRICT, Batch, Layers, MethodConfig, Share, Width
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import UserError
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.nets.activations import ActivationName
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.values import DuelingNet


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class AgentConfig(MethodConfig):
    """Keys of all agents; ``configs/agents.yaml`` explains them."""

    steps_per_epoch: PositiveInt
    train_episodes: PositiveInt
    action_repeat: PositiveInt
    simulator: Literal["serial", "processes", "envpool"]
    gamma: Share
    learning_rate: PositiveFloat
    stop_rule: Literal["none", "solved", "plateau"]
    solved_return: float | None
    judge: Literal["training", "test"]
    early_out_num: PositiveInt
    early_out_virtual_diff: PositiveFloat
    faithful: bool


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class EpsilonGreedyConfig(AgentConfig):
    """Keys of agents that explore by epsilon."""

    learning_starts: NonNegativeInt
    epsilon_init: Share
    epsilon_min: Share
    epsilon_decay: Share


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class TabularConfig(EpsilonGreedyConfig):
    """Keys of QL and SARSA."""

    curiosity: Literal["none", "count"]
    count_beta: PositiveFloat


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class NetConfig:
    """Keys of agents with networks."""

    hidden: Layers
    activation: ActivationName
    curiosity: Literal["none", "icm"]
    icm_learning_rate: PositiveFloat
    icm_beta: Share
    icm_eta: NonNegativeFloat
    icm_hidden_size: Width
    icm_feature_size: Width


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class DDQNConfig(EpsilonGreedyConfig, NetConfig):
    """Keys of DDQN."""

    batch_size: Batch
    replay_size: PositiveInt
    tau: Share

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size}


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class DuelingDDQNConfig(DDQNConfig):
    """Keys of DuelingDDQN."""

    feature_size: Width


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class TD3Config(AgentConfig, NetConfig):
    """Keys of TD3."""

    learning_starts: NonNegativeInt
    batch_size: Batch
    replay_size: PositiveInt
    tau: Share
    policy_delay: PositiveInt
    action_std: NonNegativeFloat
    target_std: NonNegativeFloat
    target_clip: NonNegativeFloat

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size}


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class TD3DiscreteConfig(TD3Config):
    """Keys of TD3-discrete."""

    layer_norm: bool
    temperature: Literal["fixed", "learnable", "annealed"]
    temperature_init: PositiveFloat
    hard: bool


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class PPOConfig(AgentConfig, NetConfig):
    """Keys of PPO."""

    rollout_steps: PositiveInt
    epochs: PositiveInt
    batch_size: Batch | None
    clip: PositiveFloat
    value_coef: NonNegativeFloat
    entropy_coef: NonNegativeFloat
    standardise: Literal["advantages", "returns"]
    gae_lambda: Share
    std_init: PositiveFloat
    max_grad_norm: PositiveFloat | None

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"rollout_steps": self.rollout_steps}


def _icm(cfg: NetConfig, spec: EnvSpec, vectors: bool, seeds: Sequence[int]) -> ICM | None:
    """vectors: actions are stored as vectors, not as indices."""
    if cfg.curiosity == "none":
        return None
    settings = ICMSettings(cfg.icm_learning_rate, cfg.icm_beta, cfg.icm_eta, cfg.icm_hidden_size, cfg.icm_feature_size)
    generators = [torch.Generator().manual_seed(derive_seed(seed, "curiosity")) for seed in seeds]
    return ICM(spec.obs_size, spec.action_size, vectors, settings, generators)


def _starts(variation: Variation, net: MemberMLP, purpose: str, seeds: Sequence[int], count: int = 1) -> torch.Tensor:
    """First parameters of ``count`` networks side by side, drawn as the agents themselves would."""
    generators = [torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in seeds]
    return torch.cat([variation.params(net, generators) for _ in range(count)], dim=1)


def vary_agents(cfg: AgentConfig, seeds: Sequence[int]) -> Variation | None:
    """Hyper-parameters around those of the config, drawn for each seed; None for tables, which have but a learning rate."""
    if not isinstance(cfg, NetConfig):
        return None
    batch = getattr(cfg, "batch_size", None) or 1
    return vary(cfg.learning_rate, batch, cfg.hidden[0], len(cfg.hidden), seeds)


def build_tabular(
    cfg: TabularConfig, spec: EnvSpec, seeds: Sequence[int], variation: Variation | None = None, *, sarsa: bool
) -> Agent:
    """Q-learning or SARSA."""
    del variation
    beta = cfg.count_beta if cfg.curiosity == "count" else 0.0
    epsilons = (cfg.epsilon_init, cfg.epsilon_min, cfg.epsilon_decay)
    settings = TabularSettings(cfg.gamma, cfg.learning_rate, *epsilons, beta)
    return Tabular(spec.obs_size, spec.action_size, settings, seeds, sarsa)


def build_ddqn(cfg: DDQNConfig, spec: EnvSpec, seeds: Sequence[int], variation: Variation | None = None) -> Agent:
    """Double DQN, plain or dueling."""
    rates, batches = (variation.learning_rates, variation.batch_sizes) if variation else (cfg.learning_rate, cfg.batch_size)
    settings = DQNSettings(
        cfg.gamma, rates, batches, cfg.replay_size, cfg.tau, cfg.epsilon_init, cfg.epsilon_min, cfg.epsilon_decay
    )
    hidden, sizes, params = tuple(cfg.hidden), (spec.obs_size, spec.action_size), None
    out = cfg.feature_size if isinstance(cfg, DuelingDDQNConfig) else sizes[1]
    first = MemberMLP(sizes[0], hidden, out, cfg.activation)
    if variation is not None:
        first = variation.net(sizes[0], out, first)
        params = _starts(variation, first, "initialisation", seeds)
    net: MemberMLP | DuelingNet = first
    if isinstance(cfg, DuelingDDQNConfig):
        net = DuelingNet(sizes[0], first.hidden, sizes[1], out, cfg.activation, cfg.faithful)
        if params is not None:
            generators = [torch.Generator().manual_seed(derive_seed(seed, "heads")) for seed in seeds]
            params = torch.cat([params, *(part.init(generators) for part in net.parts[1:])], dim=1)
    return DDQN(net, spec.obs_size, settings, seeds, params, _icm(cfg, spec, False, seeds))


def build_td3(cfg: TD3Config, spec: EnvSpec, seeds: Sequence[int], variation: Variation | None = None) -> Agent:
    """TD3, for continuous or discrete actions."""
    rates, batches = (variation.learning_rates, variation.batch_sizes) if variation else (cfg.learning_rate, cfg.batch_size)
    settings = TD3Settings(
        cfg.gamma, rates, batches, cfg.replay_size, cfg.tau, cfg.policy_delay,
        cfg.action_std, cfg.target_std, cfg.target_clip, cfg.learning_starts,
    )  # fmt: skip
    hidden = tuple(cfg.hidden)
    norm = isinstance(cfg, TD3DiscreteConfig) and cfg.layer_norm
    actor = MemberMLP(spec.obs_size, hidden, spec.action_size, cfg.activation, norm)
    critic = MemberMLP(spec.obs_size + spec.action_size, hidden, 1, cfg.activation, norm)
    starts: tuple[torch.Tensor | None, torch.Tensor | None] = (None, None)
    if variation is not None:
        actor, critic = (variation.net(net.in_size, net.out_size, net) for net in (actor, critic))
        starts = (_starts(variation, actor, "actor", seeds), _starts(variation, critic, "critic", seeds, 2))
    curiosity = _icm(cfg, spec, True, seeds)
    if isinstance(cfg, TD3DiscreteConfig):
        kind = (cfg.temperature, cfg.temperature_init, cfg.hard)
        return DiscreteTD3(actor, critic, settings, seeds, *kind, *starts, curiosity)
    return TD3(actor, critic, settings, seeds, *starts, curiosity)


def build_ppo(cfg: PPOConfig, spec: EnvSpec, seeds: Sequence[int], variation: Variation | None = None) -> Agent:
    """PPO, for either kind of actions; a variation's batch sizes do not apply."""
    if cfg.batch_size is not None and cfg.rollout_steps % cfg.batch_size:
        raise UserError(f"batch_size {cfg.batch_size} does not divide rollout_steps {cfg.rollout_steps}; choose one that does")
    settings = PPOSettings(
        cfg.gamma, variation.learning_rates if variation else cfg.learning_rate, cfg.rollout_steps, cfg.epochs, cfg.batch_size,
        cfg.clip, cfg.value_coef, cfg.entropy_coef, cfg.standardise, cfg.gae_lambda, cfg.std_init, cfg.max_grad_norm,
    )  # fmt: skip
    hidden, starts = tuple(cfg.hidden), None
    actor = MemberMLP(spec.obs_size, hidden, spec.action_size, cfg.activation)
    critic = MemberMLP(spec.obs_size, hidden, 1, cfg.activation)
    if variation is not None:
        actor, critic = (variation.net(net.in_size, net.out_size, net) for net in (actor, critic))
        starts = (_starts(variation, actor, "actor", seeds), _starts(variation, critic, "critic", seeds))
    return PPO(actor, critic, spec.continuous, settings, seeds, _icm(cfg, spec, spec.continuous, seeds), starts=starts)


Build = Callable[[Any, EnvSpec, Sequence[int], Variation | None], Agent]


def _one_hot_only(spec: EnvSpec) -> str | None:
    if spec.one_hot and not spec.continuous:
        return None
    return "tables need one-hot observations and discrete actions; use a grid world, e.g. cliff or FrozenLake-v1"


def _discrete_only(spec: EnvSpec) -> str | None:
    return "it is for discrete actions; use TD3 or PPO" if spec.continuous else None


def _continuous_only(spec: EnvSpec) -> str | None:
    return None if spec.continuous else "it is for continuous actions; use TD3-discrete, DDQN or PPO"


def _any(spec: EnvSpec) -> str | None:
    return None


@dataclass(frozen=True)
class AgentKind:
    """A kind of agent.

    config: the schema of its YAML. build: makes it from (config, spec, seeds, variation). misfit: why it cannot play an
    environment, with the remedy; None where it can.
    """

    config: type[AgentConfig]
    build: Build
    misfit: Callable[[EnvSpec], str | None]


AGENTS: dict[str, AgentKind] = {
    "QL": AgentKind(TabularConfig, functools.partial(build_tabular, sarsa=False), _one_hot_only),
    "SARSA": AgentKind(TabularConfig, functools.partial(build_tabular, sarsa=True), _one_hot_only),
    "DDQN": AgentKind(DDQNConfig, build_ddqn, _discrete_only),
    "DuelingDDQN": AgentKind(DuelingDDQNConfig, build_ddqn, _discrete_only),
    "TD3": AgentKind(TD3Config, build_td3, _continuous_only),
    "TD3-discrete": AgentKind(TD3DiscreteConfig, build_td3, _discrete_only),
    "PPO": AgentKind(PPOConfig, build_ppo, _any),
}
"""Agents by implementation, also for methods that train many of them."""
