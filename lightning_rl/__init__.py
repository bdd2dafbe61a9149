"""Reinforcement-learning research on PyTorch Lightning.

Importing this package changes nothing in the process and loads nothing heavy: its names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lightning_rl.core.gamenames import register_env
    from lightning_rl.envs.gym import make_env
    from lightning_rl.envs.proxy_env import load_proxy
    from lightning_rl.lab.evaluate import evaluate

_PLACES = {
    "evaluate": "lab.evaluate",
    "load_proxy": "envs.proxy_env",
    "make_env": "envs.gym",
    "register_env": "core.gamenames",
}
"""The public names, and the modules that have them."""

__all__ = ["__version__", "evaluate", "load_proxy", "make_env", "register_env"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
