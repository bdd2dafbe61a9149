"""Gymnasium environments, made from an ``EnvSpec``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from lightning_rl.core.checks import truth
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.modules import allow
from lightning_rl.core.seeding import kept_generators
from lightning_rl.core.types import Array
from lightning_rl.envs.checked import CheckedEnv
from lightning_rl.envs.images import FrameEnv, StackFrames, only_image
from lightning_rl.envs.spaces import (
    STEPS,
    Env,
    OwnAction,
    ResetOutcome,
    StepOutcome,
    Wrapper,
    acting_space,
)
from lightning_rl.envs.spec import EnvSpec, env_spec, plain_env, takes_render_mode
from lightning_rl.envs.vector_reward import VectorReward

MASK = "action_mask"
"""Where ``info`` says which actions may be taken, see ``envs.action_masks``."""


class SparseReturn(Wrapper, RecordConstructorArgs):
    """Pays nothing until the last step of the episode, which carries the sum of all rewards.

    It must wrap the time limit, so that a truncated episode is paid too.
    """

    def __init__(self, env: Env):
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._sum = 0.0

    def reset(self, **kwargs: Any) -> ResetOutcome:
        self._sum = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> StepOutcome:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._sum += float(reward)
        return obs, self._sum if terminated or truncated else 0.0, terminated, truncated, info


def doubled(log: Array) -> Array:
    """A log ``[T, ..]`` with room for twice as many steps."""
    return np.concatenate([log, np.zeros_like(log)])


class RepeatAction(Wrapper, RecordConstructorArgs):
    """Takes each action ``repeat`` times, rewards summed, until the episode ends; ``info``
    counts the steps.
    """

    def __init__(self, env: Env, repeat: int = 1):
        RecordConstructorArgs.__init__(self, repeat=repeat)
        super().__init__(env)
        self.repeat = repeat

    def step(self, action: Any) -> StepOutcome:
        total, over, count, steps = 0.0, False, 0, 0
        while count < self.repeat and not over:
            obs, reward, terminated, truncated, info = self.env.step(action)
            total, over, count = total + float(reward), terminated or truncated, count + 1
            counted = info.get(STEPS)
            steps += counted if type(counted) is int else 1
        return obs, total, terminated, truncated, {**info, STEPS: steps}


def make_env(game: str | EnvSpec, render: bool = False) -> Env:
    """The environment of a gamename, with its own action space; ``LoadedAgent.act`` gives its
    actions.

    Observations are vectors: Discrete ones become one-hot, others are flattened; or images
    ``[C, height, width]`` of bytes, the newest frames together. Episodes are truncated at the
    horizon.

    Args:
        game: A gamename, see ``env_spec``, or the facts of an environment.
        render: ``env.render()`` gives RGB pictures; no display is needed.

    Returns:
        The environment. What its code does wrong is raised as a ``UserError`` with the file and
        line of that code.

    Raises:
        UserError: The gamename is unknown, or the environment cannot be made.
    """
    allow(game)
    spec = game if isinstance(game, EnvSpec) else env_spec(game)
    return stacked(_seen(_task(spec, truth("render", render)), spec), spec)


def rollout_env(
    spec: EnvSpec, render: bool = False, around: Callable[[Env], Env] | None = None
) -> Env:
    """The environment of ``make_env`` as roll-outs play in it: with the actions of policies, of
    ``acting_space``, and single frames. around: a wrapper of the environment as Gymnasium makes it.
    """
    env = _task(spec, render, around)
    own = env.action_space
    if spec.continuous or own != acting_space(own):  # policies may leave the box
        env = gymnasium.wrappers.TransformAction(env, OwnAction(own), acting_space(own))
    return _seen(env, spec)


def _task(spec: EnvSpec, render: bool, around: Callable[[Env], Env] | None = None) -> Env:
    env = plain_env(spec, render_mode="rgb_array") if render else plain_env(spec)
    if around is not None:
        env = around(env)
    if spec.objectives:
        env = VectorReward(env, len(spec.objectives))
    if spec.images is not None:
        env = only_image(env)
    if spec.action_space is not None and env.action_space != spec.action_space:
        now = f"its actions are {shown(env.action_space)} now, {shown(spec.action_space)} before"
        raise UserError(
            f"gamename '{spec.gamename}' has become another environment: {now}; load the agent, or "
            "train, again"
        )
    return CheckedEnv(env, spec.gamename, spec.horizon)


def _seen(env: Env, spec: EnvSpec) -> Env:
    """The environment with the rewards and the frames that the facts ask for."""
    if spec.repeat > 1:
        env = RepeatAction(env, spec.repeat)
    if spec.sparse:
        env = SparseReturn(env)
    if spec.masked:
        from lightning_rl.envs.action_masks import MaskedObs

        env = MaskedObs(env, spec.gamename)
    return env if spec.frames is None else FrameEnv(env, spec.frames)


def stacked(env: Env, spec: EnvSpec) -> Env:
    """An environment of single frames with observations as policies see them."""
    return env if spec.frames is None else StackFrames(env, spec.frames)


def gives_masks(spec: EnvSpec) -> bool:
    """Whether the first ``info`` of an environment has a mask of its discrete actions."""
    if spec.continuous or spec.frames is not None:
        return False
    env = make_env(spec)
    try:
        with kept_generators():
            return MASK in env.reset(seed=0)[1]
    finally:
        env.close()


def can_film(spec: EnvSpec) -> bool:
    """Whether the environment gives RGB pictures."""
    env = make_env(spec)
    env.close()
    modes = env.metadata.get("render_modes", ())
    listed = isinstance(modes, list | tuple | set)
    return listed and "rgb_array" in modes and takes_render_mode(spec.env)
