"""The agents and their configs, by implementation."""

from lightning_rl.agents.base import NetConfig as NetConfig
from lightning_rl.agents.dqn import DDQNConfig as DDQNConfig
from lightning_rl.agents.dqn import DuelingDDQNConfig as DuelingDDQNConfig
from lightning_rl.agents.ppo import PPOConfig as PPOConfig
from lightning_rl.agents.registry import AGENTS as AGENTS
from lightning_rl.agents.registry import AgentConfig as AgentConfig
from lightning_rl.agents.tabular import TabularConfig as TabularConfig
from lightning_rl.agents.td3 import TD3Config as TD3Config
from lightning_rl.agents.td3 import TD3DiscreteConfig as TD3DiscreteConfig
from lightning_rl.agents.variation import vary_agents as vary_agents
