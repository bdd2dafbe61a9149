"""Any ``FuncEnv`` as a Gymnasium environment, alone or vectorised.

Importing this module registers the environments of ``FUNC_ENVS`` that Gymnasium lacks as ``lightning_rl/<gamename>-v0``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lightning_rl.core.types import Array, FloatArray
from lightning_rl.envs.buttongrid import ButtonGrid
from lightning_rl.envs.classic import Acrobot, CartPole, MountainCarContinuous, Pendulum
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.grids import GRID_WORLDS, Bandit
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
    "procmaze": ProcMaze,
    "buttongrid": ButtonGrid,
    "panflute": PanFlute,
}
"""Environments in batched torch by gamename."""


def func_env(spec: EnvSpec) -> FuncEnv | None:
    """The environment of ``spec`` in batched torch, if there is such a one."""
    make = FUNC_ENVS.get(spec.family)
    return None if make is None else make(**dict(spec.kwargs))


def observation_space(env: FuncEnv) -> gymnasium.spaces.Box:
    """The box that the observations stay in."""
    low, high = (np.array(bound, dtype=np.float32) for bound in (env.obs_low, env.obs_high))
    return gymnasium.spaces.Box(low, high, dtype=np.float32)


def action_space(env: FuncEnv) -> gymnasium.Space[Any]:
    """Discrete, or the box [-1, 1]."""
    if env.continuous:
        return gymnasium.spaces.Box(-1.0, 1.0, (env.action_size,), np.float32)
    return gymnasium.spaces.Discrete(env.action_size)


class FuncGymEnv(gymnasium.Env[Any, Any]):
    """One environment; time limits come from ``max_episode_steps`` at registration, as for every Gymnasium environment."""

    def __init__(self, env: FuncEnv, render_mode: str | None = None):
        self.env, self.render_mode = env, render_mode
        if env.drawable:
            self.metadata = {"render_modes": ["rgb_array"], "render_fps": 4}
        self.observation_space, self.action_space = observation_space(env), action_space(env)
        self.state = torch.empty(0)

    def _noise(self, size: int) -> torch.Tensor:
        return torch.from_numpy(self.np_random.random(size, dtype=np.float32))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[FloatArray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.env.reset(self._noise(self.env.reset_noise_size))
        return self.env.observe(self.state).numpy().copy(), {}

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        step = self.env.step(self.state, torch.as_tensor(action), self._noise(self.env.step_noise_size))
        self.state = step.state
        info = {} if step.continuation is None else {"continuation": float(step.continuation)}
        return step.obs.numpy().copy(), float(step.reward), bool(step.terminated), False, info

    def render(self) -> Array:
        """A picture of the state, uint8 ``[height, width, 3]``."""
        return self.env.draw(self.env.observe(self.state))


class FuncVectorEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` environments stepped as one batch; an ended episode is reset by the next step (Gymnasium's default)."""

    def __init__(self, env: FuncEnv, num_envs: int, max_episode_steps: int):
        self.env, self.num_envs, self.max_episode_steps = env, num_envs, max_episode_steps
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space, self.single_action_space = observation_space(env), action_space(env)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.state, self.length = torch.empty(0), torch.zeros(num_envs, dtype=torch.int64)
        self._ended = torch.zeros(num_envs, dtype=torch.bool)

    def _noise(self, size: int) -> torch.Tensor:
        return torch.from_numpy(self.np_random.random((self.num_envs, size), dtype=np.float32))

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """All environments start anew; one seed for the batch, whose noise is drawn together."""
        if isinstance(seed, list):
            raise ValueError("the noise of a FuncVectorEnv is drawn for the batch; seed it with one integer")
        super().reset(seed=seed)
        self.state = self.env.reset(self._noise(self.env.reset_noise_size))
        self.length.zero_()
        self._ended.zero_()
        return self.env.observe(self.state).numpy().copy(), {}

    def step(self, actions: Any) -> tuple[FloatArray, Array, Array, Array, dict[str, Any]]:
        ended = self._ended
        step = self.env.step(self.state, torch.as_tensor(actions), self._noise(self.env.step_noise_size))
        fresh = self.env.reset(self._noise(self.env.reset_noise_size))
        self.state = torch.where(ended.unsqueeze(-1), fresh, step.state)
        self.length = torch.where(ended, 0, self.length + 1)
        terminated = step.terminated & ~ended
        truncated = (self.length >= self.max_episode_steps) & ~terminated
        self._ended = terminated | truncated
        reward = torch.where(ended, 0.0, step.reward).double()
        return self.env.observe(self.state).numpy().copy(), reward.numpy(), terminated.numpy(), truncated.numpy(), {}


def make_func_env(gamename: str, render_mode: str | None = None, **kwargs: Any) -> FuncGymEnv:
    """The environment of ``FUNC_ENVS`` called ``gamename``, for Gymnasium's registry; kwargs: its sizes."""
    return FuncGymEnv(FUNC_ENVS[gamename](**kwargs), render_mode)


for _name in (*GRID_WORLDS, "bandit10", "bandit20"):
    gymnasium.register(f"lightning_rl/{_name}-v0", f"{__name__}:make_func_env", kwargs={"gamename": _name})
for _class in (ProcMaze, ButtonGrid, PanFlute):
    _name = _class.__name__
    gymnasium.register(f"lightning_rl/{_name}-v0", f"{__name__}:make_func_env", kwargs={"gamename": _name.lower()})
