"""Environments in batched torch as Gymnasium has them: one at a time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch

from lightning_rl.core.checks import check_render_mode
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State
from lightning_rl.envs.spaces import OwnEnv, StepOutcome, checked_action, finite_box


class FuncGymEnv(OwnEnv):
    """A ``FuncEnv`` as Gymnasium has environments; time limits come from ``max_episode_steps``
    at registration, as for all.
    """

    state: State

    def __init__(self, env: FuncEnv, render_mode: str | None = None):
        self.env, self.render_mode = env, render_mode
        if env.drawable:
            self.metadata = {"render_modes": ["rgb_array"], "render_fps": 4}
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.observation_space = finite_box(env.obs_low, env.obs_high)
        self.action_space = gymnasium.spaces.Discrete(env.action_size)
        if env.continuous:
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (env.action_size,), np.float32)

    def _noise(self, size: int) -> torch.Tensor:
        return torch.from_numpy(self.np_random.random(size, dtype=np.float32))

    def begin(self) -> Array:
        self.state = self.env.reset(self._noise(self.env.reset_noise_size))
        return self.env.observe(self.state).numpy().copy()

    def step(self, action: Any) -> StepOutcome:
        self.require_begun()
        act = torch.as_tensor(checked_action(self.action_space, action))
        step = self.env.step(self.state, act, self._noise(self.env.step_noise_size))
        self.state = step.state
        info = {} if step.continuation is None else {"continuation": float(step.continuation)}
        return step.obs.numpy().copy(), float(step.reward), bool(step.terminated), False, info

    def render(self) -> Array:
        """A picture of the state, uint8 ``[height, width, 3]``."""
        self.require_begun()
        return self.env.draw(self.env.observe(self.state))
