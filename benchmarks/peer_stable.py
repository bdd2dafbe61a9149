"""Stable-Baselines3, and sbx, its twin in JAX, in ``make peers``: agents that train alone."""

from __future__ import annotations

from typing import Any

from harness import cpu
from peer_cases import EPISODES, Case, Side

from lightning_rl.cli.tools import find_experiments


class Model:
    """An agent with our settings."""

    def __init__(self, case: Case, model: Any, env: Any):
        self.model, self.env = model, env
        self.turn = cpu(lambda: model.learn(case.steps, reset_num_timesteps=False), case.steps)

    def returns(self) -> list[float]:
        from stable_baselines3.common.evaluation import evaluate_policy

        mean: Any = evaluate_policy(self.model, self.env, EPISODES, warn=False)[0]
        return [float(mean)]


def side(library: str, case: Case, seeds: int) -> Side:
    """seeds: 1, as neither library can stack them."""
    find_experiments()
    from experiments import baselines

    kind = {}
    if library == "sbx":
        import sbx
        from flax import linen

        kind["kind"] = {"DDQN": sbx.DQN, "PPO": sbx.PPO, "TD3": sbx.TD3}[case.name]
        baselines.ACTIVATIONS.update(tanh=linen.tanh, relu=linen.relu)  # those of this process
    model = baselines.MODELS[case.name](case.config, case.spec, 0, **kind)
    return Model(case, model, baselines.environment(case.config, case.spec))
