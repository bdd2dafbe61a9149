"""Gymnasium ids of the environments that this package adds, and of its learned proxies.

After ``import lightning_rl.gym`` there are ``gymnasium.make("lightning_rl/ProcMaze-v0")`` and, of
each proxy, ``gymnasium.make("lightning_rl/SE-CartPole-v0")``;
``gymnasium.make("lightning_rl.gym:lightning_rl/ProcMaze-v0")`` imports this itself. Nothing but
Gymnasium is loaded before an environment is made.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import gymnasium
from gymnasium.envs.registration import EnvSpec

from lightning_rl.core.extras import require
from lightning_rl.core.gamenames import (
    ATARI_IDS,
    BUILT_IN,
    GAMES,
    OWN_CLASSES,
    OWN_IDS,
    unknown_gamename,
)

SHIPPED = Path(__file__).resolve().parent / "proxies"
"""The files of the proxies."""


def registered(env: str) -> EnvSpec:
    """Gymnasium's registry entry of an id, after its module is imported where it is a
    ``module:Id-v0``, or the package of Atari's games; UserError for an unknown one.
    """
    name = env.rpartition(":")[2]
    if name.startswith(ATARI_IDS):
        require(f"'{name}'", "ale_py")
        ale = importlib.import_module("ale_py")  # registers its ids
        ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise unknown_gamename(env, gymnasium.registry) from error


for _name, _game in GAMES.items():
    if _name in BUILT_IN and str(_game.env).startswith(OWN_IDS):
        _made_by, _kwargs = "lightning_rl.envs.adapters:make_func_env", {"gamename": _name}
        if _name in OWN_CLASSES:
            _made_by, _kwargs = OWN_CLASSES[_name], {}
        gymnasium.register(
            str(_game.env),
            _made_by,
            _game.solved_return,
            max_episode_steps=_game.horizon,
            kwargs=_kwargs,
        )
for _path in SHIPPED.glob("*.pt"):
    gymnasium.register(
        f"{OWN_IDS}{_path.stem}",
        "lightning_rl.envs.proxy_env:load_proxy",
        disable_env_checker=True,
        kwargs={"path": _path.stem},
    )
