"""Settings by implementation that make a run take a second, and which implementations go with
which environments.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from lightning_rl.core.catalogue import aliases, canonical
from lightning_rl.core.extras import is_installed
from lightning_rl.core.gamenames import GAMES as NAMED
from lightning_rl.envs.grids import GRID_WORLDS
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.registry import IMPLEMENTATIONS

_EVERY = {
    "hidden": [8, 8],
    "chunk_size": 2,
    "batch_size": 16,
    "eval_interval": 2,
    "eval_episodes": 2,
    "checkpoint_interval": 2,
}
_UDRL = {
    "learning_starts": 4,
    "num_episodes_per_iter": 4,
    "num_updates_per_iter": 3,
    "batch_size": 16,
    "replay_size": 10,
    "last_few": 3,
}
_RCP = {
    "learning_starts": 4,
    "steps_per_iter": 60,
    "num_updates_per_iter": 3,
    "batch_size": 16,
    "window_steps": 200,
}
SMALL_CRITIC = {"num_critic_updates_per_iter": 2, "critic_hidden": [8]}
_POLICY_GRADIENT = {"num_episodes_per_iter": 4}
_AGENT = {"steps_per_epoch": 40}
_INNER = {"train_episodes": 2, "rollout_steps": 16, "batch_size": 16, "epochs": 1, "hidden": [8]}
_BILEVEL = {
    "agent": {"PPO": _INNER},
    "population": 2,
    "center_agents": 2,
    "test_episodes": 1,
    "max_train_steps": 40,
    "eval_agents": 2,
    "hidden": [8],
    "strategy": "published",
}
_MODEL_BASED = {
    "steps_per_epoch": 10,
    "learning_starts": 10,
    "replay_size": 100,
    "target_interval": 5,
    "batch_size": 8,
}
_IMAGINATION = {**_MODEL_BASED, "rollout_length": 3, "batch_size": 4}
TINY: dict[str, dict[str, Any]] = {
    "UDRL": _UDRL,
    "RCP-R": _RCP,
    "RCP-A": {**_RCP, **SMALL_CRITIC},
    "PCN": {
        "learning_starts": 4,
        "num_episodes_per_iter": 4,
        "num_updates_per_iter": 3,
        "replay_size": 10,
    },
    **dict.fromkeys(("QL", "SARSA"), _AGENT),
    "DDQN": {**_AGENT, "replay_size": 200},
    "DuelingDDQN": {**_AGENT, "replay_size": 200, "feature_size": 8},
    **{
        name: {**_AGENT, "replay_size": 200, "learning_starts": 1}
        for name in ("TD3", "TD3-discrete")
    },
    "SE": {**_BILEVEL, "stop_rule": "plateau", "proxy_horizon": 20},
    "MBRL": {
        "data_agents": 2,
        "data_steps": 30,
        "max_train_steps": 40,
        "eval_agents": 2,
        "vary": False,
        "hidden": [8],
    },
    "SD": {
        **{
            key: value for key, value in _BILEVEL.items() if key not in ("agent", "max_train_steps")
        },
        "num_updates": 4,
    },
    "RN": {**_BILEVEL, "stop_rule": "solved", "reward": "additive"},
    "ER": _MODEL_BASED,
    **dict.fromkeys(("perfect-model", "simple-model", "gaussian-latent"), _IMAGINATION),
    "categorical-latent": {**_IMAGINATION, "variables": 4, "classes": 4},
    "PPO": {**_AGENT, "rollout_steps": 32, "epochs": 2},
    **dict.fromkeys(aliases().values(), _POLICY_GRADIENT),
}
"""Settings by implementation that make a run take a second."""


def tiny_flags(implementation: str = "UDRL", **extra: Any) -> list[str]:
    """--set flags that make a run take a second."""
    return [
        f"--set={key}={value}" for key, value in {**tiny_settings(implementation), **extra}.items()
    ]


def tiny_settings(implementation: str) -> dict[str, Any]:
    name = canonical(implementation)
    known = {field.name for field in dataclasses.fields(IMPLEMENTATIONS[name].Config)}
    return {key: value for key, value in {**_EVERY, **TINY.get(name, {})}.items() if key in known}


_PACKAGES = {"takecover": "vizdoom", "pong": "ale_py", "freeway": "ale_py"}
# Every environment whose package is there.
PLAYABLE = [name for name in NAMED if is_installed(_PACKAGES.get(name, "gymnasium"))]
# Of those, one grid world for all that differ in their drawing only, and the toy for all games of
# images, whose episodes take long.
GAMES = [
    name
    for name in PLAYABLE
    if name == "cliff" or (name not in GRID_WORLDS and name not in _PACKAGES)
]


def fitting(
    names: Iterable[str] = IMPLEMENTATIONS, games: Iterable[str] = GAMES
) -> list[tuple[str, str]]:
    """(implementation, gamename) that go together."""
    return [(n, g) for n in names for g in games if why_not(n, g) is None]


def why_not(name: str, gamename: str) -> str | None:
    """Why an implementation cannot be used on an environment."""
    method, spec = IMPLEMENTATIONS[name], env_spec(gamename)
    return method.Config.why_unfit(spec) or method.why_unsupported(spec)


def covering() -> list[tuple[str, str]]:
    """Every environment and every implementation once: a sample of ``fitting`` that takes half a
    minute, not ten.
    """
    pairs = [("UDRL", game) for game in GAMES]
    for number, name in enumerate(IMPLEMENTATIONS):
        games = [game for _, game in fitting([name])]
        pairs.append((name, games[number % len(games)]))
    return list(dict.fromkeys(pairs))
