"""Environments that have a compiled twin, see ``fused_classic``."""

from __future__ import annotations

from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Acrobot, Pendulum
from lightning_rl.envs.func_env import FuncEnv

TWINS: tuple[type[FuncEnv], ...] = (CartPole, Acrobot, Pendulum)
