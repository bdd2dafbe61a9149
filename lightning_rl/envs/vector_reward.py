"""Environments of several objectives: each step pays a vector of rewards.

Such an environment has a ``reward_space``, a box ``[K]``, as those of MO-Gymnasium do, or was
registered with the names of its ``objectives``. The vector is its reward, or
``info["reward_vector"]`` beside a reward that is a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.utils import RecordConstructorArgs

from lightning_rl.core.limits import shown
from lightning_rl.core.types import FloatArray
from lightning_rl.envs.spaces import Env, ResetOutcome, StepOutcome, Wrapper

VECTOR = "reward_vector"
"""Where ``info`` has the vector."""

_LARGEST = 1e15  # as of other rewards


class VectorReward(Wrapper, RecordConstructorArgs):
    """Pays the sum of the rewards where an environment pays a vector, and keeps the vectors.

    count: of objectives, ``K``. rewards: those of the episode so far, each ``[K]``.
    """

    def __init__(self, env: Env, count: int):
        RecordConstructorArgs.__init__(self, count=count)
        super().__init__(env)
        self.count = count
        self.rewards: list[FloatArray] = []

    def reset(self, **kwargs: Any) -> ResetOutcome:
        self.rewards = []
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> StepOutcome:
        obs, reward, terminated, truncated, info = self.env.step(action)
        paid: Any = reward
        vector = np.asarray(info.get(VECTOR, paid))
        right = vector.shape == (self.count,) and vector.dtype.kind in "biuf"
        if not right or not (abs(vector) <= _LARGEST).all():
            raise ValueError(
                f"the vector of rewards {shown(vector.tolist())}, expected {self.count} finite "
                f"numbers of at most {_LARGEST:g}"
            )
        self.rewards.append(vector.astype(np.float32))
        total = float(vector.sum()) if np.ndim(paid) else reward
        return obs, total, terminated, truncated, {**info, VECTOR: self.rewards[-1]}


def kept_rewards(env: Env) -> VectorReward:
    """The wrapper within an environment that keeps its vectors."""
    while not isinstance(env, VectorReward):
        env = env.env  # type: ignore[attr-defined]
    return env
