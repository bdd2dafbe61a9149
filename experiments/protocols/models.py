"""Which trained proxies a protocol judges."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import torch

from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import same_game
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.lab.reports.proxies import REAL, Model, all_models

PROXY_KEY = ("trained_on", "proxy", "proxy_hash", "agent", "protocol", "agents", "seed")
"""The columns that say what was done with which proxy: its name alone may stand for another one
later.
"""


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


def best_of_each(models: Sequence[Model], count: int | None) -> list[Model]:
    """Of each kind the ``count`` with the highest score of their search, those without one last;
    None: all.
    """
    kinds: dict[str, list[Model]] = {}
    for model in sorted(
        models, key=lambda model: math.inf if math.isnan(model.score) else -model.score
    ):
        kinds.setdefault(model.trained_on, []).append(model)
    order = dict.fromkeys(model.trained_on for model in models)
    return [model for kind in order for model in kinds[kind][:count]]


def real_task(gamename: str) -> Model:
    """The real task with its own reward, as if it were a proxy."""
    env_spec(gamename)
    proxy = RewardProxy(gamename=gamename, hidden=(1,), activation="relu", form="native", gamma=0.9)
    return Model(REAL, REAL, proxy, torch.zeros(proxy.net.size), float("nan"))
