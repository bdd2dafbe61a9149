"""Reinforcement-learning research on PyTorch Lightning.

Importing this package changes nothing in the process and loads nothing heavy: its names are
imported when they are first used.
"""

import importlib
import sys

__version__ = "0.2.0"

TYPE_CHECKING = False  # that of ``typing`` would be imported from wherever this package is
if TYPE_CHECKING:
    from typing import Any

    from lightning_rl.core.gamenames import register_env
    from lightning_rl.core.types import Episode
    from lightning_rl.envs.gym import make_env
    from lightning_rl.envs.proxy_env import load_proxy
    from lightning_rl.lab.evaluate import evaluate
    from lightning_rl.methods.agents import (
        DDQN,
        PPO,
        QL,
        SARSA,
        TD3,
        DuelingDDQN,
        TD3Discrete,
    )
    from lightning_rl.methods.model_based import ModelBased
    from lightning_rl.methods.own_agents import register_agent
    from lightning_rl.methods.policy_gradient import PolicyGradient
    from lightning_rl.methods.proxy_search import SE
    from lightning_rl.methods.registry import register_method
    from lightning_rl.methods.reward_network import RN
    from lightning_rl.methods.supervised_model import MBRL
    from lightning_rl.methods.synthetic_dataset import SD
    from lightning_rl.methods.upside_down import RCPA, RCPR, UDRL
    from lightning_rl.methods.upside_down.commands import Command, register_command
    from lightning_rl.methods.upside_down.targets import Target, register_target
    from lightning_rl.methods.upside_down.weightings import Weighting, register_weighting
    from lightning_rl.run.acting import LoadedAgent, load
    from lightning_rl.run.datasets import load_dataset
    from lightning_rl.run.train import Run, train

_NAMES = {
    "run.train": ("train", "Run"),
    "run.acting": ("load", "LoadedAgent"),
    "lab.evaluate": ("evaluate",),
    "envs.gym": ("make_env",),
    "core.gamenames": ("register_env",),
    "core.types": ("Episode",),
    "run.datasets": ("load_dataset",),
    "methods.registry": ("register_method",),
    "envs.proxy_env": ("load_proxy",),
    "methods.upside_down": ("UDRL", "RCPR", "RCPA"),
    "methods.upside_down.commands": ("Command", "register_command"),
    "methods.upside_down.weightings": ("Weighting", "register_weighting"),
    "methods.upside_down.targets": ("Target", "register_target"),
    "methods.policy_gradient": ("PolicyGradient",),
    "methods.agents": (
        "QL",
        "SARSA",
        "DDQN",
        "DuelingDDQN",
        "TD3",
        "TD3Discrete",
        "PPO",
    ),
    "methods.own_agents": ("register_agent",),
    "methods.model_based": ("ModelBased",),
    "methods.proxy_search": ("SE",),
    "methods.reward_network": ("RN",),
    "methods.synthetic_dataset": ("SD",),
    "methods.supervised_model": ("MBRL",),
}
"""The public names, by the modules that have them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "DDQN",
    "MBRL",
    "PPO",
    "QL",
    "RCPA",
    "RCPR",
    "RN",
    "SARSA",
    "SD",
    "SE",
    "TD3",
    "UDRL",
    "Command",
    "DuelingDDQN",
    "Episode",
    "LoadedAgent",
    "ModelBased",
    "PolicyGradient",
    "Run",
    "TD3Discrete",
    "Target",
    "Weighting",
    "__version__",
    "evaluate",
    "load",
    "load_dataset",
    "load_proxy",
    "make_env",
    "register_agent",
    "register_command",
    "register_env",
    "register_method",
    "register_target",
    "register_weighting",
    "train",
]


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        # name and obj: so that Python names the nearest right one
        raise AttributeError(
            f"module '{__name__}' has no attribute '{name}'", name=name, obj=sys.modules[__name__]
        )
    from lightning_rl.core.modules import readable_ranks

    with readable_ranks():
        value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
