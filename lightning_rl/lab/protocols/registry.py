"""Evaluations by name: ``python -m lightning_rl evaluate NAME ...``. A new one is one line here."""

from __future__ import annotations

from lightning_rl.core.arguments import Tool
from lightning_rl.lab.protocols import generations, grid_rewards, reward_curves, transfer, transitions

EVALUATIONS: dict[str, Tool] = {
    "transfer": transfer.TRANSFER,
    "reward-curves": reward_curves.REWARD_CURVES,
    "transitions": transitions.TRANSITIONS,
    "grid-rewards": grid_rewards.GRID_REWARDS,
    "generations": generations.GENERATIONS,
}
