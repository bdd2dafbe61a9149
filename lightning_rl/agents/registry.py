"""The agents of this package, registered by being imported."""

from __future__ import annotations

from lightning_rl.agents import dqn, ppo, tabular, td3
from lightning_rl.agents.base import AGENTS

__all__ = ["AGENTS", "dqn", "ppo", "tabular", "td3"]
