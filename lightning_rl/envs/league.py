"""Synthetic environments of others as proxies of ours: the checkpoints of synthetic-gymnax 0.0.1
(Liesen et al. 2024, arXiv 2406.12589).

Its episodes have one step: a network of ``[obs, action]`` gives the reward, another one of standard
normal numbers the start state; see ``synthetic_environment.py`` of that package. In the form of
``SyntheticNet`` the head ``done`` says 1 everywhere, and ``state``, which nobody sees, 0.
"""

from __future__ import annotations

import importlib.util
import io
import pickle
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import read_bytes
from lightning_rl.core.gamenames import same_game
from lightning_rl.core.limits import PROXY_BYTES, shorten, unknown
from lightning_rl.core.types import FloatArray
from lightning_rl.envs.proxies import Proxy, SyntheticProxy, proxy_path, read_proxy

LEAGUE = "synthetic-gymnax:"
"""What the names of its proxies begin with here."""

CHECKPOINTS = {
    "Acrobot-v1": ("acrobot", "acrobot"),
    "CartPole-v1": ("cartpole", "cartpole"),
    "MountainCar-v0": ("mountaincar", "MountainCar-v0"),
    "MountainCarContinuous-v0": ("continuous_mountaincar", "mountaincar-continuous"),
    "Pendulum-v1": ("pendulum", "pendulum"),
    "halfcheetah": ("halfcheetah", "halfcheetah"),
    "hopper": ("hopper", "Hopper-v5"),
    "humanoidstandup": ("humanoidstandup", "HumanoidStandup-v5"),
    "swimmer": ("swimmer", "Swimmer-v5"),
    "walker2d": ("walker2d", "Walker2d-v5"),
}
"""By its own names: the folder, and the task here. Those in small letters are Brax's bodies."""

Net = dict[str, dict[str, FloatArray]]


def find_proxy(
    name: str | Path, gamename: str | None = None
) -> tuple[Proxy, Tensor, dict[str, Any]]:
    """``read_proxy`` of a file, of a shipped proxy or of one of synthetic-gymnax."""
    if isinstance(name, str) and name.startswith(LEAGUE):
        return read_league(name, gamename)
    return read_proxy(proxy_path(name), gamename)


def read_league(name: str, gamename: str | None) -> tuple[SyntheticProxy, Tensor, dict[str, Any]]:
    """``read_proxy`` of ``synthetic-gymnax:NAME``; nothing of the package is imported."""
    own = name.removeprefix(LEAGUE)
    if own not in CHECKPOINTS:
        raise UserError(unknown("environment of synthetic-gymnax", own, CHECKPOINTS))
    folder, game = CHECKPOINTS[own]
    if gamename is not None and not same_game(game, gamename):
        raise UserError(
            f"proxy '{name}' is of gamename '{game}', not of '{gamename}'; use a proxy of the same "
            "task"
        )
    require(f"'{name}'", "synthetic_gymnax")
    package = importlib.util.find_spec("synthetic_gymnax")
    assert package is not None
    assert package.submodule_search_locations is not None
    place = Path(package.submodule_search_locations[0], "checkpoints", folder, "checkpoint.pkl")
    nets = _nets(place)
    reward, start = nets["reward"], nets["initial_state"]
    width, obs_size = start["Dense_1"]["kernel"].shape
    proxy = SyntheticProxy(
        gamename=game, hidden=(width,), activation="relu", horizon=1, latent_size=obs_size
    )
    if obs_size != proxy.spec.obs_size:
        raise UserError(
            f"proxy '{name}' has {obs_size} observations, '{game}' {proxy.spec.obs_size} (it is of "
            "Brax's body); use another"
        )
    return proxy, _params(proxy, reward, start), {}


def _params(proxy: SyntheticProxy, reward: Net, start: Net) -> Tensor:
    """The parameters ``[D]``: actions, which are of the box [-1, 1], stand before observations."""
    net, space = proxy.net, proxy.spec.action_space
    params = torch.zeros(1, net.size)
    blocks = net.split(params)
    net.heads["done"].layers(blocks["done"])[-1].bias.fill_(1)
    for name, its in (("start", start), ("reward", reward)):
        for number, layer in enumerate(net.heads[name].layers(blocks[name])):
            layer.weight[0].copy_(torch.from_numpy(its[f"Dense_{number}"]["kernel"]))
            layer.bias[0, 0].copy_(torch.from_numpy(its[f"Dense_{number}"]["bias"]))
    first = net.heads["reward"].layers(blocks["reward"])[0]
    first.weight.copy_(first.weight.roll(net.action_size, 1))
    if isinstance(space, gymnasium.spaces.Box):
        low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)
        acting = first.weight[0, : net.action_size]
        first.bias.add_((low + high) / 2 @ acting)
        acting.mul_((high - low).unsqueeze(1) / 2)
    return params[0]


def _nets(path: Path) -> dict[str, Net]:
    """The networks of a checkpoint by name; nothing that the file names is imported or run."""
    content = read_bytes(path, "checkpoint", PROXY_BYTES)
    try:
        nets: dict[str, Net] = _Arrays(io.BytesIO(content)).load()["params"]
        for name in ("reward", "initial_state"):
            for layer in ("Dense_0", "Dense_1"):
                for part in ("kernel", "bias"):
                    if not np.isfinite(nets[name][layer][part]).all():
                        raise ValueError(f"{name}, {layer}, {part} is not finite")
        return nets
    except Exception as error:  # whatever foreign bytes make of it
        reason = shorten(" ".join(str(error).split()) or type(error).__name__)
        raise UserError(
            f"checkpoint '{path}' is not one of synthetic-gymnax 0.0.1 ({reason}); install it anew"
        ) from error


class _Inert:
    """Stands in for what a checkpoint names beside its arrays."""

    def __init__(self, *args: Any):
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def _array(_made_by: Any, _args: Any, state: Any, _about: Any) -> FloatArray:
    """An array of JAX, of the state that NumPy gives such: version, shape, dtype, order, bytes."""
    _, shape, _, _, content = state
    return np.frombuffer(content, "<f4").reshape(shape).copy()


class _Arrays(pickle.Unpickler):
    """Reads dictionaries of arrays alone."""

    _known: ClassVar = {
        ("flax.core.frozen_dict", "FrozenDict"): dict,
        ("jax._src.array", "_reconstruct_array"): _array,
        ("numpy.core.multiarray", "_reconstruct"): _Inert,
        ("numpy", "ndarray"): _Inert,
        ("numpy", "dtype"): _Inert,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise ValueError(f"it names {module}.{name}")
        return self._known[module, name]
