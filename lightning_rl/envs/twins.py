"""Environments that have a compiled twin, see ``fused_classic``."""

from __future__ import annotations

from lightning_rl.envs.batch import EnvBatch, FuncBatch
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Acrobot, Pendulum
from lightning_rl.envs.func_env import FuncEnv

TWINS: tuple[type[FuncEnv], ...] = (CartPole, Acrobot, Pendulum)


def has_twin(envs: EnvBatch) -> bool:
    """Whether compiled loops can play these environments."""
    return (
        type(envs) is FuncBatch
        and type(envs.env) in TWINS
        and envs.repeat == 1
        and not envs.cap_ends
    )
