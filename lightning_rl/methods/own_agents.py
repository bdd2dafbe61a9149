"""Agents from outside of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from lightning_rl.agents.base import Agent, AgentConfig, RegisteredAgent
from lightning_rl.agents.registry import AGENTS
from lightning_rl.core.checks import checked_name
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shorten, shown
from lightning_rl.methods.agents import agent_method

AgentClass = TypeVar("AgentClass", bound=type[Agent])


def register_agent(
    name: str, config: type[AgentConfig], configs: Path | str | Mapping[str, Any]
) -> Callable[[AgentClass], AgentClass]:
    """A decorator that makes a class of agents known.

    As a method of its own and as an agent that judges proxies.

    Args:
        name: of the implementation.
        config: the schema of its values, a pydantic dataclass.
        configs: a file of configs, or its content, see ``register_method``; ``extends: DDQN`` takes
            over the values of DDQN.

    Returns:
        The decorator, which gives back the class as it is.

    Raises:
        UserError: a name that is taken, or that ``configs`` does not have.
    """

    checked_name("register_agent", name, "'my-agent'")
    if not (isinstance(config, type) and is_dataclass(config)):
        raise UserError(
            f"register_agent('{shorten(name)}'): config {shown(config)} is no schema; give a "
            "pydantic dataclass"
        )

    def register(agent: AgentClass) -> AgentClass:
        if not (isinstance(agent, type) and issubclass(agent, Agent)):
            raise UserError(
                f"register_agent('{shorten(name)}') decorates a class of lightning_rl's Agent, not "
                f"{shown(agent)}"
            )
        kind = RegisteredAgent(config, agent)
        agent_method(name, kind, configs)
        AGENTS[name] = kind
        return agent

    return register
