"""A small strategy of evolution."""

import dataclasses

from lightning_rl.evolution.strategies import StrategyConfig


def strategy_config(**changes) -> StrategyConfig:
    """Small values, or others where these are given."""
    small = StrategyConfig(
        strategy="published",
        population=4,
        mirrored=None,
        noise_std=0.1,
        noise_decay=1.0,
        step_size=0.5,
        step_decay=1.0,
        score_transform="linear",
        num_grad_evals=1,
        center_agents=2,
        shared_agents=False,
        weight_decay=0.0,
        keep="best",
    )
    return dataclasses.replace(small, **changes)
