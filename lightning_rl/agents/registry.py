"""All agents by implementation, for training on their own and in the inner loop alike."""

from __future__ import annotations

from lightning_rl.agents.base import RegisteredAgent
from lightning_rl.agents.dqn import DDQN, DDQNConfig, DuelingDDQNConfig
from lightning_rl.agents.ppo import PPO, PPOConfig
from lightning_rl.agents.tabular import QLearning, Sarsa, TabularConfig
from lightning_rl.agents.td3 import TD3, DiscreteTD3, TD3Config, TD3DiscreteConfig

AGENTS = {
    "DuelingDDQN": RegisteredAgent(DuelingDDQNConfig, DDQN),
    "DDQN": RegisteredAgent(DDQNConfig, DDQN),
    "PPO": RegisteredAgent(PPOConfig, PPO),
    "QL": RegisteredAgent(TabularConfig, QLearning),
    "SARSA": RegisteredAgent(TabularConfig, Sarsa),
    "TD3": RegisteredAgent(TD3Config, TD3),
    "TD3-discrete": RegisteredAgent(TD3DiscreteConfig, DiscreteTD3),
}
