"""Trained proxies on disk: which there are, and what each is."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import same_game
from lightning_rl.envs.league import LEAGUE, find_proxy
from lightning_rl.envs.proxies import Proxy, proxy_path, read_proxy, shipped
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.scalars import attempt

REAL = "real"
"""``trained_on`` of agents that train on the real task with its own reward."""


class Model(NamedTuple):
    """A trained proxy. name: of the file, or of the run. trained_on: what kind it is, in words.
    score: of its search.

    seed, generations: of the search as well; nan: its file does not say.
    """

    name: str
    trained_on: str
    proxy: Proxy
    params: Tensor
    score: float
    seed: float = float("nan")
    generations: float = float("nan")

    def about(self) -> dict[str, str]:
        """What a row says of the proxy."""
        about = {"gamename": self.proxy.gamename, "trained_on": self.trained_on, "proxy": self.name}
        return {**about, "proxy_hash": content_hash(self.proxy, self.params)}


def content_hash(proxy: Proxy, params: Tensor) -> str:
    """Twelve hexadecimal digits that tell proxies apart: of what they are, not of a file's name or
    of how they were made.

    Without what was added later where it is off: a proxy keeps the hash that rows about it have.
    """
    settings = {
        key: value
        for key, value in dataclasses.asdict(proxy).items()
        if key != "scale_states" or value
    }
    about = f"{proxy.kind} {sorted(settings.items())}".encode()
    return hashlib.sha256(about + params.detach().numpy().tobytes()).hexdigest()[:12]


def kind_of(proxy: Proxy, about: Mapping[str, Any]) -> str:
    """What rows call a proxy.

    ``SE`` or ``SD``, with ``varied`` or ``fixed`` (hyper-parameters in its evolution); ``MBRL``;
    the form of a learned reward.
    """
    if isinstance(proxy, RewardProxy):
        return REAL if proxy.form == "native" else proxy.form
    config = about.get("config") or {}
    if "data_agents" in config:
        return "MBRL, published form" if config.get("published") else "MBRL"
    return f"{proxy.kind}, {'varied' if config.get('vary') else 'fixed'}"


def find_models(sources: Sequence[str], gamename: str | None = None) -> list[Model]:
    """The proxies of files, run directories, folders above these, and of shipped names; all of one
    task.

    In a folder, files that cannot be read or are of another task than ``gamename`` are named and
    left out. UserError for such a file that was asked for, where two have one name, where tasks
    differ, and where there is none.
    """
    found = all_models(sources, gamename)
    for model in found:
        if not same_game(model.proxy.gamename, found[0].proxy.gamename):
            one, other = found[0], model
            raise UserError(
                f"'{other.name}' is of gamename '{other.proxy.gamename}', '{one.name}' of "
                f"'{one.proxy.gamename}'; "
                f"choose with --gamename {one.proxy.gamename}"
            )
    name, times = next(iter(Counter(model.name for model in found).most_common(1)), ("", 0))
    if times > 1:
        raise UserError(
            f"two proxies are called '{name}'; rename a file, or name one of their folders"
        )
    return found


def all_models(sources: Sequence[str], gamename: str | None = None) -> list[Model]:
    """``find_models``, of whatever tasks and names."""
    found: list[Model] = []
    for source in sources:
        if source.startswith(LEAGUE):
            proxy, params, _ = find_proxy(source, gamename)
            found.append(Model(source, LEAGUE.removesuffix(":"), proxy, params, float("nan")))
            continue
        path = proxy_path(source)
        if not path.is_dir():
            found.append(_read_model(path, gamename))
            continue
        files = sorted(path.rglob("*.pt"))
        if not files:
            raise UserError(
                f"no proxy (a .pt file) is at or below '{path}'; name a run directory of SE, RN, "
                "SD or MBRL, a file, "
                f"or one of: {', '.join(shipped())}"
            )
        for file in files:
            found += attempt(file, _read_model, file, gamename)
    if sources and not found:
        raise UserError(
            f"no proxy can be used among {', '.join(sources)}; the lines above say why, name others"
        )
    return found


def _read_model(file: Path, gamename: str | None) -> Model:
    proxy, params, about = read_proxy(file, gamename)
    said = {key: float(about.get(key, "nan")) for key in ("score", "seed")}
    generations = float(len(about["curve"])) if "curve" in about else float("nan")
    return Model(_name(file), kind_of(proxy, about), proxy, params, **said, generations=generations)


def _name(file: Path) -> str:
    """``exp_name-implementation-seed_n`` of a run's ``proxy.pt``, else the file's."""
    folders = file.resolve().parts
    return "-".join(folders[-4:-1]) if file.name == "proxy.pt" and len(folders) > 4 else file.stem


def best_of_each(models: Sequence[Model], count: int | None) -> list[Model]:
    """Of each kind the ``count`` with the highest score of their search, those without one last;
    None: all.
    """
    kinds: dict[str, list[Model]] = {}
    for model in sorted(models, key=lambda each: (math.isnan(each.score), -each.score)):
        kinds.setdefault(model.trained_on, []).append(model)
    order = dict.fromkeys(model.trained_on for model in models)
    return [model for kind in order for model in kinds[kind][:count]]


def real_task(gamename: str) -> Model:
    """The real task with its own reward, as if it were a proxy."""
    env_spec(gamename)
    proxy = RewardProxy(gamename=gamename, hidden=(1,), activation="relu", form="native", gamma=0.9)
    return Model(REAL, REAL, proxy, torch.zeros(proxy.net.size), float("nan"))
