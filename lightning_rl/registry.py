"""Implementations by name. Adding a method of an existing family is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lightning_rl.methods.base import Evaluation, Experience, Method, MethodConfig
from lightning_rl.methods.upside_down import UDRL, UDRLConfig, make_loaders
from lightning_rl.types import UserError


@dataclass(frozen=True)
class Implementation:
    """A method, the schema of its YAML, and what makes its training and evaluation data."""

    method: type[Method]
    config: type[MethodConfig]
    make_loaders: Callable[[Any, int], tuple[Experience, Evaluation]]
    summary: str


IMPLEMENTATIONS: dict[str, Implementation] = {
    "UDRL": Implementation(UDRL, UDRLConfig, make_loaders, "Upside-Down RL: supervised learning of commanded returns"),
}

PLANNED = (
    *("RCP-R", "RCP-A"),
    *("REINFORCE", "REINFORCE-baseline", "REINFORCE-entropy", "REINFORCE-combined", "AAC", "vpg", "bpg", "epg", "cpg", "aac"),
    *("QL", "SARSA", "DDQN", "DuelingDDQN", "TD3", "TD3-discrete", "PPO", "SE", "RN", "MBRL"),
    *("ER", "perfect-model", "simple-model", "categorical-latent", "gaussian-latent"),
)
"""Names that are reserved for methods still to be built."""


def implementation(name: str) -> Implementation:
    """The implementation called ``name``; UserError for an unknown one."""
    if name in IMPLEMENTATIONS:
        return IMPLEMENTATIONS[name]
    choice = f"choose one of: {', '.join(IMPLEMENTATIONS)}"
    state = "is not yet available" if name in PLANNED else "is unknown"
    raise UserError(f"implementation '{name}' {state}; {choice}")
