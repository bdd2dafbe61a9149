"""Learned proxies of tasks: the environments that agents train on, and the files that hold them. As
Gymnasium: ``proxy_env``.

A file holds plain data only: what kind of proxy, of which task, its sizes, its parameters, and how
it was made.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast, get_args

import gymnasium
import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.checks import user_path
from lightning_rl.core.config import without_retired
from lightning_rl.core.contents import (
    FLAG,
    PLAIN_DICT,
    MismatchError,
    Rule,
    check,
    check_alike,
    check_tensors,
    count,
    either,
    list_of,
    maybe,
    number,
    text,
    word,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_plain, write_plain
from lightning_rl.core.gamenames import same_game
from lightning_rl.core.limits import LAYERS, NAME_BYTES, PROXY_BYTES, WIDTH, did_you_mean
from lightning_rl.envs.adapters import func_env
from lightning_rl.envs.batch import EnvBatch, FuncBatch
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.one_step import OneStepEnv, OneStepNet
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.envs.synthetic import DoneKind, StartStates, SyntheticEnv, SyntheticNet
from lightning_rl.gym import SHIPPED
from lightning_rl.nets.members import ACTIVATIONS, ActivationName

FORMAT = "lightning_rl proxy 1"
NETWORK_SETTINGS: Mapping[str, Rule] = {
    "gamename": text(NAME_BYTES),
    "hidden": list_of(count(1, WIDTH), LAYERS),
    "activation": word(*ACTIVATIONS),
}
_SCORE = either(number(), Rule(lambda score: score == -math.inf, "-inf"))
_ABOUT = {  # what is used of it
    "score": maybe(_SCORE),
    "config": maybe(PLAIN_DICT),
    "seed": maybe(count()),
    "curve": maybe(list_of(_SCORE)),
}
_FILE = {
    "format": word(FORMAT),
    "kind": text(NAME_BYTES),
    "settings": PLAIN_DICT,
    "params": Rule(lambda params: isinstance(params, Tensor), "a tensor"),
    "about": PLAIN_DICT,
}
_STARTS = 256  # start states drawn from a task that only Gymnasium has


class Evolvable(Protocol):
    """What the parameters of a proxy are: ``size`` columns ``D`` of a block ``[N, D]``."""

    @property
    def size(self) -> int: ...
    def init(self, generators: Sequence[torch.Generator]) -> Tensor: ...
    def evolved(self) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class Proxy(ABC):
    """A kind of proxy for a task: everything but the parameters. real_dynamics: whether agents
    on it play the real task.
    """

    kind: ClassVar[str]  # the name that files carry
    settings: ClassVar[Mapping[str, Rule]]  # what they may be in a file
    real_dynamics: ClassVar[bool] = False

    gamename: str

    @property
    def spec(self) -> EnvSpec:
        return env_spec(self.gamename)

    @property
    @abstractmethod
    def net(self) -> Evolvable:
        """What the parameters of the proxy are: ``init`` gives fresh ones, ``evolved`` says
        which columns change.
        """

    @abstractmethod
    def batch(
        self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1
    ) -> EnvBatch:
        """One proxy per member, params ``[N, D]``, for agents with discount gamma."""


@dataclass(frozen=True, kw_only=True)
class SyntheticProxy(Proxy):
    """A synthetic environment.

    horizon: steps after which an episode is cut. cap_ends: that cut is a termination. latent_size:
    see ``SyntheticNet``.
    done: see ``SyntheticEnv``; with done ``always`` the horizon is one step.
    """

    kind: ClassVar[str] = "SE"
    settings: ClassVar = {
        **NETWORK_SETTINGS,
        "latent_size": count(0, WIDTH),
        "horizon": count(1),
        "cap_ends": FLAG,
        "done": word(*get_args(DoneKind)),
    }

    hidden: tuple[int, ...]
    activation: ActivationName
    horizon: int
    latent_size: int = 0
    cap_ends: bool = False
    done: DoneKind = "raw"

    @property
    def net(self) -> SyntheticNet:
        kind = OneStepNet if self.done == "always" else SyntheticNet
        return kind(
            self.spec.obs_size,
            self.spec.action_size,
            self.hidden,
            self.activation,
            self.latent_size,
        )

    def env(self, params: Tensor) -> SyntheticEnv:
        """The environments of params ``[N, D]``."""
        kind = OneStepEnv if self.done == "always" else SyntheticEnv
        return kind(self.net, params, start_task(self.spec), self.spec.one_hot, self.done)

    def batch(
        self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1
    ) -> EnvBatch:
        envs = FuncBatch(self.env(params), self.horizon, seeds, repeat)
        envs.cap_ends = self.cap_ends
        return envs


@functools.cache
def start_task(spec: EnvSpec) -> FuncEnv:
    """The task as a function, or at least its start states."""
    task = func_env(spec)
    if task is not None:
        return task
    env = rollout_env(spec)
    starts = np.stack([env.reset(seed=k)[0] for k in range(_STARTS)]).astype(np.float32)
    env.close()
    box = cast(gymnasium.spaces.Box, env.observation_space)
    low, high = tuple(box.low.tolist()), tuple(box.high.tolist())
    return StartStates(torch.from_numpy(starts), spec.action_size, spec.continuous, low, high)


def save_proxy(path: Path, proxy: Proxy, params: Tensor, about: Mapping[str, Any]) -> None:
    """Writes a proxy with params ``[D]``; about: plain data on how it was made."""
    settings = dataclasses.asdict(proxy)
    content = {
        "format": FORMAT,
        "kind": proxy.kind,
        "settings": {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()},
        "params": params.detach().cpu().clone(),
        "about": dict(about),
    }
    write_plain(path, content)


def kinds() -> dict[str, type[Proxy]]:
    """The kinds of proxies by the name that files carry."""
    from lightning_rl.envs.reward_network import RewardProxy  # which are built on this
    from lightning_rl.envs.synthetic_dataset import DatasetProxy

    return {kind.kind: kind for kind in (SyntheticProxy, RewardProxy, DatasetProxy)}


def read_proxy(path: Path, gamename: str | None = None) -> tuple[Proxy, Tensor, dict[str, Any]]:
    """(proxy, params ``[D]``, about) of a file. UserError for a file that is damaged, foreign or
    not of ``gamename``.
    """
    content = read_plain(
        path, "proxy file", did_you_mean(str(path), shipped(), "shipped ones are"), PROXY_BYTES
    )
    try:
        check(content, _FILE)
        check({"kind": content["kind"]}, {"kind": word(*kinds())})
        known = {key: value for key, value in content["about"].items() if key in _ABOUT}
        check(known, _ABOUT, "about")
        kind, params = kinds()[content["kind"]], content["params"]
        settings = without_retired(content["settings"], kind.settings)
        check(settings, kind.settings, "settings")
        if "hidden" in settings:
            settings["hidden"] = tuple(settings["hidden"])
        proxy = kind(**settings)
        check_alike(params, torch.empty(proxy.net.size, device="meta"), "params")
        check_tensors(params, "params")
    except MismatchError as error:
        raise UserError(
            f"'{path}' is not a proxy file of this version: {error}; use another"
        ) from error
    except UserError as error:  # its task is not known here, or gives no info
        raise UserError(f"proxy '{path}': {error}") from error
    if gamename is not None and not same_game(proxy.gamename, gamename):
        raise UserError(
            f"proxy '{path}' is of gamename '{proxy.gamename}', not of '{gamename}'; use a proxy "
            "of the same task"
        )
    return proxy, params, dict(content["about"])


def shipped() -> list[str]:
    """Names of the proxies in the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.pt"))


def proxy_path(name: str | Path) -> Path:
    """The file of a shipped proxy's name, or the path itself."""
    if isinstance(name, str) and name in shipped():
        return SHIPPED / f"{name}.pt"
    return user_path(
        "proxy",
        name,
        "give the path of a proxy.pt, or the name of a proxy of the package, e.g. 'SE-CartPole-v0'",
    )
