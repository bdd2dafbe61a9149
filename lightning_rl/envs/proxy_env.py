"""Learned proxies as Gymnasium environments; ``lightning_rl.gym`` has the ids of those that ship
with the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec as GymSpec
from torch import Tensor

from lightning_rl.core.checks import (
    NOT_RESET,
    check_render_mode,
    checked_gamename,
    episode_seed,
    reset_options,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import OWN_IDS, folder_name
from lightning_rl.core.modules import allow
from lightning_rl.core.types import Array, FloatArray
from lightning_rl.envs.alone import AloneOneStep, AlonePairs, AloneReward, AloneSynthetic
from lightning_rl.envs.gym import SparseReturn
from lightning_rl.envs.league import find_proxy
from lightning_rl.envs.one_step import OneStepEnv
from lightning_rl.envs.pictures import BLUE, picture
from lightning_rl.envs.proxies import Proxy, SyntheticProxy, shipped
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spaces import (
    Env,
    OwnEnv,
    ResetOutcome,
    StepOutcome,
    checked_action,
    finite_box,
    flat_space,
    flattened,
    is_vector,
)
from lightning_rl.envs.spec import OwnHorizon, plain_env, takes_render_mode
from lightning_rl.envs.synthetic import SyntheticEnv
from lightning_rl.envs.synthetic_dataset import DatasetEnv, DatasetProxy
from lightning_rl.functional.scaling import units

_ROWS = 8  # of a picture


class SyntheticGymEnv(OwnEnv, OwnHorizon):
    """A synthetic environment, or a dataset pair by pair, with the actions of its task.

    A picture has a bar for each number of the observation, as high as that lies in the task's
    bounds.
    """

    # As Gymnasium declares it.
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    about: dict[str, Any]
    pairs: tuple[Array, ...]
    _state: FloatArray

    def __init__(
        self, proxy: SyntheticProxy | DatasetProxy, params: Tensor, render_mode: str | None = None
    ):
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.proxy, self.horizon, self.render_mode = proxy, proxy.horizon, render_mode
        env, spec = proxy.env(params.unsqueeze(0)), proxy.spec
        self.observation_space = finite_box(env.obs_low, env.obs_high)
        assert spec.action_space is not None
        assert spec.observation_space is not None
        self.action_space = space = spec.action_space
        if isinstance(space, gymnasium.spaces.Box):
            self._scale = np.asarray(2 / (space.high - space.low), np.float32)
        self._alone, self._noise_size = _alone(env), env.reset_noise_size
        bounds = flat_space(spec.observation_space)
        self._units = [each.numpy() for each in units(bounds.low.tolist(), bounds.high.tolist())]

    def begin(self) -> FloatArray:
        noise = self.np_random.random(self._noise_size, dtype=np.float32)
        self._state, self._length = self._alone.reset(noise), 0
        return self._obs(self._state)

    def step(self, action: Any) -> StepOutcome:
        self.require_begun()
        step = self._alone.step(self._state, self._acted(checked_action(self.action_space, action)))
        self._state, self._length = step.state, self._length + 1
        cut = self._length >= self.horizon
        info = {} if step.continuation is None else {"continuation": step.continuation}
        terminated, truncated = step.terminated, cut
        if self.proxy.cap_ends:
            terminated, truncated = step.terminated or cut, False
        return self._obs(step.state), step.reward, terminated, truncated, info

    def _obs(self, state: FloatArray) -> FloatArray:
        return self._alone.observe(state).copy()

    def _acted(self, action: Any) -> Any:
        """An action of the task as the proxy takes it."""
        space: Any = self.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            return action - int(space.start)
        return np.asarray((action - space.low) * self._scale - 1, np.float32)

    def render(self) -> Array:
        """A picture of the observation, uint8 ``[height, width, 3]``."""
        self.require_begun()
        center, unit = self._units
        heights = _ROWS * ((self._alone.observe(self._state) - center) / unit + 1) / 2
        filled = torch.from_numpy(heights - np.arange(_ROWS)[::-1, None])
        return picture((filled, BLUE))


def _alone(env: SyntheticEnv | DatasetEnv) -> AloneSynthetic | AlonePairs:
    if isinstance(env, DatasetEnv):
        return AlonePairs(env)
    return AloneOneStep(env) if isinstance(env, OneStepEnv) else AloneSynthetic(env)


class RewardGymEnv(Env, OwnHorizon):
    """The real task with the reward of a network; ``info["real_reward"]`` is the task's own."""

    about: dict[str, Any]

    def __init__(self, proxy: RewardProxy, params: Tensor, render_mode: str | None = None):
        spec, plain = proxy.spec, plain_env(proxy.spec)
        drawn = plain.metadata["render_modes"] if takes_render_mode(spec.env) else ()
        check_render_mode(render_mode, drawn)
        if render_mode is not None:
            plain = plain_env(spec, render_mode=render_mode)
        task: Env = gymnasium.wrappers.TimeLimit(plain, spec.horizon)
        self.task = SparseReturn(task) if spec.sparse else task
        self.metadata, self.horizon, self.render_mode = plain.metadata, spec.horizon, render_mode
        space: Any = self.task.observation_space
        self.observation_space, self.action_space = space, self.task.action_space
        if is_vector(space) and space.dtype == np.float32:
            self.observation_space = finite_box(space.low, space.high)
        self._keys, self._reward = proxy.info_keys, AloneReward(proxy.net, params, proxy.gamma)
        self._seen: FloatArray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> ResetOutcome:
        seed, options = episode_seed(seed), reset_options(options)
        super().reset(seed=seed)
        obs, info = self.task.reset(seed=seed, options=options)
        self._seen = self._vector(obs)
        return obs, info

    def step(self, action: Any) -> StepOutcome:
        if self._seen is None:
            raise UserError(NOT_RESET)
        obs, reward, terminated, truncated, info = self.task.step(
            checked_action(self.action_space, action)
        )
        before, self._seen = self._seen, self._vector(obs)
        values = np.array([float(info[key]) for key in self._keys], dtype=np.float32)
        learned = self._reward(float(reward), before, self._seen, values)
        return obs, learned, terminated, truncated, {**info, "real_reward": float(reward)}

    def _vector(self, obs: Any) -> FloatArray:
        if is_vector(self.observation_space):
            return np.array(obs, np.float32)
        return flattened(self.observation_space, obs)

    def render(self) -> Any:
        return self.task.render()

    def close(self) -> None:
        self.task.close()


def proxy_env(
    proxy: Proxy, params: Tensor, render_mode: str | None = None
) -> SyntheticGymEnv | RewardGymEnv:
    """One proxy, params ``[D]``, with the actions of the task."""
    if isinstance(proxy, RewardProxy):
        return RewardGymEnv(proxy, params, render_mode)
    assert isinstance(proxy, SyntheticProxy | DatasetProxy)
    return SyntheticGymEnv(proxy, params, render_mode)


def load_proxy(
    path: str | Path, gamename: str | None = None, render_mode: str | None = None
) -> Env:
    """Makes a learned proxy into a Gymnasium environment with the actions of its task, and
    observations of the same size.

    Those of a reward network are the task's own; what a synthetic environment predicts keeps to no
    bounds.

    Args:
        path: a ``proxy.pt`` file, the name of a shipped proxy, e.g. ``SE-CartPole-v0``, or
            ``synthetic-gymnax:NAME``, an environment of that package.
        gamename: the task that the proxy must be of; None: any.
        render_mode: ``"rgb_array"`` for pictures: of reward networks those of the task, else bars
            that show the observation.

    Returns:
        The environment. ``env.unwrapped.about`` is a dictionary on how the proxy was made; of
        reward networks, ``info["real_reward"]`` of a step is the task's own reward; of synthetic
        datasets, which are played pair by pair, ``env.unwrapped.pairs`` are the states ``[K, O]``
        and the actions ``[K]`` or ``[K, A]``.

    Raises:
        UserError: the file is missing, damaged, hostile (nothing in it is run), or of another task.
    """
    allow(gamename)
    task = None if gamename is None else checked_gamename(gamename)
    proxy, params, about = find_proxy(path, task)
    name = str(path)
    env = proxy_env(proxy, params, render_mode)
    env.about = about
    if isinstance(proxy, DatasetProxy):
        assert isinstance(env, SyntheticGymEnv)
        env.pairs = tuple(each[0].numpy() for each in proxy.net.split(params[None]))
    known = name if name in shipped() else f"{proxy.kind}-{folder_name(proxy.gamename)}"
    given = {"path": name}
    if gamename is not None:
        given["gamename"] = gamename
    env.spec = GymSpec(
        f"{OWN_IDS}{known}",
        f"{__name__}:load_proxy",
        order_enforce=False,
        disable_env_checker=True,
        kwargs=given,
    )
    return env
