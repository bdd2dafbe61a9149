"""The environments in batched torch, and how to get a batch of any."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lightning_rl.envs.batch import EnvBatch, FuncBatch
from lightning_rl.envs.buttongrid import ButtonGrid
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.chance import Gamble, NoisyRoom
from lightning_rl.envs.checked import CheckedFunc
from lightning_rl.envs.classic import Acrobot, MountainCarContinuous, Pendulum
from lightning_rl.envs.func_env import FuncEnv, is_func_env
from lightning_rl.envs.func_gym import FuncGymEnv
from lightning_rl.envs.grids import GRID_WORLDS, Bandit
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.envs.spec import EnvSpec

FUNC_ENVS: dict[str, Callable[..., FuncEnv]] = {
    "cartpole": CartPole,
    "cartpole-v0": CartPole,
    "acrobot": Acrobot,
    "mountaincar-continuous": MountainCarContinuous,
    "pendulum": Pendulum,
    **GRID_WORLDS,
    "bandit10": functools.partial(Bandit, 10),
    "bandit20": functools.partial(Bandit, 20),
    "gamble": Gamble,
    "noisyroom": NoisyRoom,
    "procmaze": ProcMaze,
    "buttongrid": ButtonGrid,
    "panflute": PanFlute,
}
"""Environments in batched torch by gamename."""


def func_env(spec: EnvSpec) -> FuncEnv | None:
    """The environment of ``spec`` in batched torch; None if there is no such form, and for
    ``sparse`` rewards.
    """
    own = is_func_env(spec.env)
    make: Any = spec.env if own else FUNC_ENVS.get(spec.family)
    if make is None or spec.sparse:
        return None
    env = make(**dict(spec.kwargs))
    return CheckedFunc(env, spec.gamename) if own else env


def make_envs(spec: EnvSpec, seeds: Sequence[int], simulator: str = "serial") -> EnvBatch:
    """The real task, one environment per seed: in batched torch where there is such a one, else
    one of Gymnasium's. simulator: ``serial``, or ``processes``, which plays the same.
    """
    env = func_env(spec)
    if env is None:
        return GymBatch(spec, seeds, processes=simulator == "processes")
    return FuncBatch(env, spec.horizon, seeds, spec.repeat)


def make_func_env(gamename: str, render_mode: str | None = None, **kwargs: Any) -> FuncGymEnv:
    """The environment of ``FUNC_ENVS`` called ``gamename``, for ``lightning_rl.gym``; kwargs:
    its sizes.
    """
    return FuncGymEnv(FUNC_ENVS[gamename](**kwargs), render_mode)
