"""Learned proxies as things: made into batches for agents here, Gymnasium environments for everybody else, and small files.

A file holds plain data alone: what kind of proxy, of which task, its sizes, its parameters, and how it came about. Importing this
module registers the proxies that ship with the package as ``lightning_rl/<file name>``, e.g. ``lightning_rl/SE-CartPole-v0``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsFloat, get_args

import gymnasium
import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.contents import Count, Flag, ListOf, MismatchError, Number, OneOf, Optional, Plain, TensorOf, Text, check
from lightning_rl.core.files import read_plain, write_plain
from lightning_rl.core.gamenames import base_name
from lightning_rl.core.limits import LAYERS, NAME_BYTES, PROXY_BYTES, WIDTH
from lightning_rl.core.types import UserError
from lightning_rl.envs.adapters import func_env
from lightning_rl.envs.batch import EnvBatch, FuncBatch, GymBatch
from lightning_rl.envs.envpool import EnvPoolBatch
from lightning_rl.envs.func_env import FuncEnv, FuncGymEnv
from lightning_rl.envs.gym import Env, make_env
from lightning_rl.envs.reward_network import INFO_KEYS, RewardBatch, RewardEnv, RewardNet
from lightning_rl.envs.spaces import flattened
from lightning_rl.envs.spec import EnvSpec, env_spec, plain_env
from lightning_rl.envs.synthetic import DoneKind, StartStates, SyntheticEnv, SyntheticNet
from lightning_rl.functional.reward_shaping import REWARD_FORMS
from lightning_rl.nets.activations import ACTIVATIONS

FORMAT = "lightning_rl proxy 1"
SHIPPED = Path(__file__).resolve().parent.parent / "proxies"
_SHARED = {
    "gamename": Text(NAME_BYTES), "hidden": ListOf(Count(1, WIDTH), high=LAYERS), "activation": OneOf(tuple(ACTIVATIONS)),
}  # fmt: skip
_ABOUT = {"score": Optional(OneOf((-math.inf, Number()))), "config": Optional(Plain(mapping=True))}  # that is read
_PARAMS = TensorOf(torch.float32, ("parameters",))
_STARTS = 256  # start states drawn from a task that only Gymnasium has


SIMULATORS: dict[str, Callable[[EnvSpec, Sequence[int]], EnvBatch]] = {
    "serial": GymBatch,
    "processes": functools.partial(GymBatch, processes=True),
    "envpool": EnvPoolBatch,
}
"""Ways to play a task that is not in batched torch; ``processes`` plays the same as ``serial``."""


def make_envs(spec: EnvSpec, seeds: Sequence[int], simulator: str = "serial") -> EnvBatch:
    """The real task, one environment per seed: in batched torch where there is such a one, else by the simulator."""
    env = func_env(spec)
    return SIMULATORS[simulator](spec, seeds) if env is None else FuncBatch(env, spec.horizon, seeds, spec.repeat)


class Proxy(ABC):
    """A kind of proxy for a task: everything but the parameters."""

    gamename: str

    @staticmethod
    @abstractmethod
    def settings_layout() -> dict[str, Any]:
        """What the settings in a file may look like."""

    @property
    def spec(self) -> EnvSpec:
        return env_spec(self.gamename)

    @property
    @abstractmethod
    def net(self) -> SyntheticNet | RewardNet:
        """The architecture whose parameters are the proxy."""

    @abstractmethod
    def batch(self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1) -> EnvBatch:
        """One proxy per member, params ``[N, D]``, for agents with discount gamma."""

    @abstractmethod
    def gym(self, params: Tensor) -> Env:
        """One proxy, params ``[D]``, with the spaces of the task."""


@dataclass(frozen=True)
class SyntheticProxy(Proxy):
    """horizon: steps after which an episode is cut. cap_ends: that cut is a termination. reencode, done: see ``SyntheticEnv``."""

    gamename: str
    hidden: tuple[int, ...]
    activation: Any
    latent_size: int
    horizon: int
    cap_ends: bool
    reencode: bool
    done: DoneKind

    @staticmethod
    def settings_layout() -> dict[str, Any]:
        return {
            **_SHARED, "latent_size": Count(0, WIDTH), "horizon": Count(1), "cap_ends": Flag(), "reencode": Flag(),
            "done": OneOf(get_args(DoneKind)),
        }  # fmt: skip

    @property
    def net(self) -> SyntheticNet:
        return SyntheticNet(self.spec.obs_size, self.spec.action_size, self.hidden, self.activation, self.latent_size)

    def env(self, params: Tensor) -> SyntheticEnv:
        """The environments of params ``[N, D]``."""
        one_hot = self.spec.one_hot and self.spec.obs_size > 1  # a bandit's constant may be anything
        return SyntheticEnv(self.net, params, _start_task(self.gamename), one_hot, self.reencode, self.done)

    def batch(self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1) -> EnvBatch:
        del gamma
        return FuncBatch(self.env(params), self.horizon, seeds, repeat)

    def gym(self, params: Tensor) -> Env:
        env: Env = gymnasium.wrappers.TimeLimit(FuncGymEnv(self.env(params.unsqueeze(0))), self.horizon)
        if self.cap_ends:
            env = CapEnds(env)
        task = plain_env(self.spec)
        task.close()
        if isinstance(task.action_space, gymnasium.spaces.Box):
            env = gymnasium.wrappers.RescaleAction(env, task.action_space.low, task.action_space.high)
        return env


@dataclass(frozen=True)
class RewardProxy(Proxy):
    """form: a name of ``REWARD_FORMS``. gamma: of the agents that it was evolved with, for potentials in the Gymnasium form."""

    gamename: str
    hidden: tuple[int, ...]
    activation: Any
    form: str
    gamma: float

    @staticmethod
    def settings_layout() -> dict[str, Any]:
        return {**_SHARED, "form": OneOf(tuple(REWARD_FORMS)), "gamma": Number(0.0, 1.0)}

    @property
    def net(self) -> RewardNet:
        keys = INFO_KEYS.get(self.spec.family, ())
        net = RewardNet(self.spec.obs_size, len(keys), self.form, self.hidden, self.activation)
        if net.rule.info and not keys:
            raise UserError(f"reward '{self.form}' needs the info of the task, but '{self.gamename}' gives none; use a form "
                            f"without info, or one of: {', '.join(INFO_KEYS)}")  # fmt: skip
        return net

    def batch(self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1) -> EnvBatch:
        task = func_env(self.spec)
        if task is not None:
            return FuncBatch(RewardEnv(self.net, params, task, gamma), self.spec.horizon, seeds, repeat)
        if repeat > 1:
            raise UserError(f"action_repeat {repeat}: reward networks on '{self.gamename}' see single steps only; use 1")
        keys = INFO_KEYS.get(self.spec.family, ()) if self.net.rule.info else ()
        return RewardBatch(self.net, params, GymBatch(self.spec, seeds, info_keys=keys), gamma)

    def gym(self, params: Tensor) -> Env:
        keys = INFO_KEYS.get(self.spec.family, ()) if self.net.rule.info else ()
        return LearnedReward(gymnasium.wrappers.TimeLimit(plain_env(self.spec), self.spec.horizon), self, params, keys)


class CapEnds(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The time limit is a termination: nothing is to be expected after it."""

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated or truncated, False, info


class LearnedReward(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """The real task with the reward of a network; ``info["real_reward"]`` is the task's own."""

    def __init__(self, env: Env, proxy: RewardProxy, params: Tensor, info_keys: Sequence[str]):
        gymnasium.utils.RecordConstructorArgs.__init__(self, proxy=proxy, params=params, info_keys=info_keys)
        gymnasium.Wrapper.__init__(self, env)
        self.proxy, self.params, self.info_keys = proxy, params.unsqueeze(0), tuple(info_keys)
        self._obs: Any = None

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self._obs, info = self.env.reset(**kwargs)
        return self._obs, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        told = torch.tensor([[float(info[key]) for key in self.info_keys]]) if self.info_keys else None
        before, after = (torch.from_numpy(flattened(self.observation_space, x)).unsqueeze(0) for x in (self._obs, obs))
        real = torch.tensor([float(reward)])
        learned = self.proxy.net.reward(self.params, real, before, after, told, self.proxy.gamma)
        self._obs = obs
        return obs, float(learned), terminated, truncated, {**info, "real_reward": float(reward)}


PROXIES: dict[str, type[SyntheticProxy] | type[RewardProxy]] = {"SE": SyntheticProxy, "RN": RewardProxy}
"""Kinds of proxies by the name that files carry."""


@functools.cache
def _start_task(gamename: str) -> FuncEnv:
    """The task as a function, or at least its start states."""
    spec = env_spec(gamename)
    task = func_env(spec)
    if task is not None:
        return task
    env = make_env(spec)
    starts = torch.stack([torch.as_tensor(np.asarray(env.reset(seed=k)[0], np.float32)) for k in range(_STARTS)])
    env.close()
    return StartStates(starts, spec.action_size, spec.continuous)


def save_proxy(path: Path, proxy: SyntheticProxy | RewardProxy, params: Tensor, about: Mapping[str, Any]) -> None:
    """Writes a proxy with params ``[D]``; about: plain data on where it comes from."""
    (kind,) = (name for name, cls in PROXIES.items() if type(proxy) is cls)
    settings = {key: list(v) if isinstance(v, tuple) else v for key, v in dataclasses.asdict(proxy).items()}
    content = {"format": FORMAT, "kind": kind, "settings": settings, "params": params.detach().clone(), "about": dict(about)}
    write_plain(path, content)


def read_proxy(path: Path, gamename: str | None = None) -> tuple[SyntheticProxy | RewardProxy, Tensor, dict[str, Any]]:
    """(proxy, params ``[D]``, about) of a file. UserError for a file that is damaged, foreign or not of ``gamename``."""
    content = read_plain(path, "proxy file", f"shipped ones are: {', '.join(shipped())}", PROXY_BYTES)
    try:
        check(content, {"format": FORMAT, "kind": OneOf(tuple(PROXIES)), "settings": Plain(mapping=True), "params": _PARAMS,
                        "about": Plain(mapping=True)})  # fmt: skip
        known = {key: value for key, value in content["about"].items() if key in _ABOUT}
        check(known, _ABOUT, "about")
        check(content["settings"], PROXIES[content["kind"]].settings_layout(), "settings")
        given = content["settings"].items()
        settings: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given}
        proxy, params = PROXIES[content["kind"]](**settings), content["params"]
        if len(params) != proxy.net.size:
            raise MismatchError(f"params: {len(params):,} numbers, but a network of its settings has {proxy.net.size:,}")
    except MismatchError as error:
        raise UserError(f"'{path}' is not a proxy file of this version: {error}; use another") from error
    if gamename is not None and base_name(proxy.gamename) != base_name(gamename):
        raise UserError(f"proxy '{path}' is of gamename '{proxy.gamename}', not of '{gamename}'; use a proxy of the same task")
    return proxy, params, dict(content["about"])


def shipped() -> list[str]:
    """Names of the proxies in the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.pt"))


def proxy_path(name: str | Path) -> Path:
    """The file of a shipped proxy's name, or the path itself."""
    return SHIPPED / f"{name}.pt" if str(name) in shipped() else Path(name)


def load_proxy(path: str | Path, gamename: str | None = None) -> Env:
    """A learned proxy as a Gymnasium environment with the spaces of its task.

    path: a file, or the name of a shipped proxy. gamename: the task that it must be of, if given. ``env.unwrapped.about`` tells
    where it comes from. UserError for a missing, damaged, hostile (nothing in it is run) or unfit file.
    """
    proxy, params, about = read_proxy(proxy_path(path), gamename)
    env = proxy.gym(params)
    env.unwrapped.about = about  # type: ignore[attr-defined]
    return env


def _make_shipped(name: str) -> Env:
    return load_proxy(name)


for _name in shipped():
    gymnasium.register(f"lightning_rl/{_name}", f"{__name__}:_make_shipped", kwargs={"name": _name}, disable_env_checker=True)
