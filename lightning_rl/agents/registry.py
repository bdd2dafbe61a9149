"""The agents of this package, registered by being imported."""

from __future__ import annotations

from lightning_rl.agents import dqn, ppo, tabular, td3
from lightning_rl.agents.base import AGENTS, AgentConfig, NetConfig, register_agent

__all__ = ["AGENTS", "AgentConfig", "NetConfig", "dqn", "ppo", "register_agent", "tabular", "td3"]
