"""Gymnasium environments, made from an ``EnvSpec``."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from lightning_rl.core.types import Array
from lightning_rl.envs.checked import CheckedEnv
from lightning_rl.envs.spec import EnvSpec, env_spec, plain_env, takes_render_mode

Env = gymnasium.Env[Any, Any]
STEPS = "lightning_rl/steps"
"""Where ``info`` says how many steps a repeated action took: a name that no environment has for something of its own."""


class SparseReturn(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays nothing until the last step of the episode, which carries the sum of all rewards.

    It must wrap the time limit, so that a truncated episode is paid too.
    """

    def __init__(self, env: Env):
        super().__init__(env)
        self._sum = 0.0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self._sum = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._sum += float(reward)
        return obs, self._sum if terminated or truncated else 0.0, terminated, truncated, info


def doubled(log: Array, axis: int) -> Array:
    """A log with room for twice as many steps, which are along ``axis``."""
    return np.concatenate([log, np.zeros_like(log)], axis=axis)


class RepeatAction(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes each action ``repeat`` times, rewards summed, until the episode ends; ``info`` counts the steps."""

    def __init__(self, env: Env, repeat: int):
        super().__init__(env)
        self.repeat = repeat

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        total, over, count, steps = 0.0, False, 0, 0
        while count < self.repeat and not over:
            obs, reward, terminated, truncated, info = self.env.step(action)
            total, over, count = total + float(reward), terminated or truncated, count + 1
            steps += info.get(STEPS, 1)
        return obs, total, terminated, truncated, {**info, STEPS: steps}


def make_env(game: str | EnvSpec, render: bool = False) -> Env:
    """The environment of a gamename, as roll-outs play in it.

    Observations are vectors: Discrete ones become one-hot, others are flattened. Discrete actions count from 0; continuous
    ones are rescaled so that the box is [-1, 1], and clipped to it. Episodes are truncated at the horizon.

    Args:
        game: A gamename, see ``env_spec``, or the facts of an environment.
        render: ``env.render()`` gives RGB pictures; no display is needed.

    Returns:
        The environment. What its code does wrong is raised as a ``UserError`` with the file and line of that code.

    Raises:
        UserError: The gamename is unknown, or the environment cannot be made.
    """
    spec = env_spec(game) if isinstance(game, str) else game
    env = plain_env(spec, **({"render_mode": "rgb_array"} if render else {}))
    env = CheckedEnv(env, spec.gamename, spec.horizon)
    start = int(getattr(env.action_space, "start", 0))
    if start:
        env = gymnasium.wrappers.TransformAction(env, lambda action: action + start, gymnasium.spaces.Discrete(spec.action_size))
    if spec.continuous:
        env = gymnasium.wrappers.ClipAction(_rescaled(env))
    if spec.repeat > 1:
        env = RepeatAction(env, spec.repeat)
    return SparseReturn(env) if spec.sparse else env


def _rescaled(env: Env) -> Env:
    """The environment with a box of actions of [-1, 1].

    Where its own box does not contain what is rescaled, as the edges are rounded or its numbers are of another type, actions
    are clipped to it and cast.
    """
    box: Any = env.action_space
    scaled = gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1))
    if all(box.contains(scaled.action(np.full(box.shape, edge, np.float32))) for edge in (-1, 1)):
        return scaled
    within = gymnasium.wrappers.TransformAction(env, lambda action: np.clip(action, box.low, box.high).astype(box.dtype), box)
    return gymnasium.wrappers.RescaleAction(within, np.float32(-1), np.float32(1))


def with_bounds(env: Env, spec: EnvSpec) -> Env:
    """An environment of ``make_env`` whose action space has the bounds [-1, 1]; as it clips, ``ClipAction`` gave it none."""
    env.action_space = gymnasium.spaces.Box(-1, 1, (spec.action_size,), np.float32)
    return env


def can_film(spec: EnvSpec) -> bool:
    """Whether the environment gives RGB pictures."""
    env = make_env(spec)
    env.close()
    return "rgb_array" in env.metadata.get("render_modes", ()) and takes_render_mode(spec.env)
