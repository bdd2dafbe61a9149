"""Learned proxies as Gymnasium environments.

Importing this module registers the proxies that ship with the package as ``lightning_rl/<file name>``, so that
``gymnasium.make("lightning_rl.envs.proxy_env:lightning_rl/SE-CartPole-v0")`` makes one anywhere.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import torch
from torch import Tensor

from lightning_rl.envs.func_env import FuncGymEnv
from lightning_rl.envs.gym import Env, SparseReturn
from lightning_rl.envs.proxies import DatasetProxy, Proxy, RewardProxy, SyntheticProxy, proxy_path, read_proxy, shipped
from lightning_rl.envs.spaces import flattened
from lightning_rl.envs.spec import plain_env


class LimitTerminates(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The time limit is a termination: nothing is to be expected after it."""

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated or truncated, False, info


class LearnedReward(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """The real task with the reward of a network; ``info["real_reward"]`` is the task's own."""

    def __init__(self, env: Env, proxy: RewardProxy, params: Tensor):
        gymnasium.utils.RecordConstructorArgs.__init__(self, proxy=proxy, params=params)
        gymnasium.Wrapper.__init__(self, env)
        self.proxy, self.net, self.info_keys, self.params = proxy, proxy.net, proxy.info_keys, params.unsqueeze(0)
        self._obs: Any = None

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self._obs, info = self.env.reset(**kwargs)
        return self._obs, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        values = torch.tensor([[float(info[key]) for key in self.info_keys]])
        before, after = (torch.from_numpy(flattened(self.observation_space, x)).unsqueeze(0) for x in (self._obs, obs))
        real = torch.tensor([float(reward)])
        learned = self.net.reward(self.params, real, before, after, values, self.proxy.gamma)
        self._obs = obs
        return obs, float(learned), terminated, truncated, {**info, "real_reward": float(reward)}


@functools.singledispatch
def proxy_env(proxy: Proxy, params: Tensor) -> Env:
    """One proxy, params ``[D]``, with the spaces of the task."""
    raise TypeError(f"{proxy} is no kind of proxy; expected a SyntheticProxy, RewardProxy or DatasetProxy")


@proxy_env.register(SyntheticProxy)
@proxy_env.register(DatasetProxy)
def _(proxy: SyntheticProxy | DatasetProxy, params: Tensor) -> Env:
    env: Env = gymnasium.wrappers.TimeLimit(FuncGymEnv(proxy.env(params.unsqueeze(0))), proxy.horizon)
    if proxy.cap_ends:
        env = LimitTerminates(env)
    task = plain_env(proxy.spec)
    task.close()
    if isinstance(task.action_space, gymnasium.spaces.Box):
        env = gymnasium.wrappers.RescaleAction(env, task.action_space.low, task.action_space.high)
    return env


@proxy_env.register
def _(proxy: RewardProxy, params: Tensor) -> Env:
    task: Env = gymnasium.wrappers.TimeLimit(plain_env(proxy.spec), proxy.spec.horizon)
    return LearnedReward(SparseReturn(task) if proxy.spec.sparse else task, proxy, params)


def load_proxy(path: str | Path, gamename: str | None = None) -> Env:
    """Makes a learned proxy into a Gymnasium environment with the actions of its task, and observations of the same size.

    Those of a reward network are the task's own; what a synthetic environment predicts keeps to no bounds.

    Args:
        path: a ``proxy.pt`` file, or the name of a shipped proxy, e.g. ``SE-CartPole-v0``.
        gamename: the task that the proxy must be of; None: any.

    Returns:
        The environment. ``env.unwrapped.about`` is a dictionary on how the proxy was made; of reward networks,
        ``info["real_reward"]`` of a step is the task's own reward; of synthetic datasets, which are played pair by pair,
        ``env.unwrapped.pairs`` are the states ``[K, O]`` and the actions ``[K]`` or ``[K, A]``.

    Raises:
        UserError: the file is missing, damaged, hostile (nothing in it is run), or of another task.
    """
    proxy, params, about = read_proxy(proxy_path(path), gamename)
    env = proxy_env(proxy, params)
    env.unwrapped.about = about  # type: ignore[attr-defined]
    if isinstance(proxy, DatasetProxy):
        env.unwrapped.pairs = tuple(each[0].numpy() for each in proxy.net.split(params[None]))  # type: ignore[attr-defined]
    return env


def _make_shipped(name: str) -> Env:
    return load_proxy(name)


for _name in shipped():
    gymnasium.register(f"lightning_rl/{_name}", f"{__name__}:_make_shipped", kwargs={"name": _name}, disable_env_checker=True)
