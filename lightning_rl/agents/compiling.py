"""When the updates of an agent are compiled; else torch makes them."""

from __future__ import annotations

from typing import Any

from lightning_rl.agents.base import Agent
from lightning_rl.agents.replay import MemberReplay
from lightning_rl.core.checks import has_numba
from lightning_rl.core.parts import is_ours, overridden

_OF_ACTING = {"actions", "act", "explore", "greedy", "play", "random"}
"""What no update asks for, so that an agent may have its own."""


def may_compile(agent: Agent, net: Any, base: type[Agent]) -> bool:
    """Whether updates of ``net`` are those of the class ``base``, which are compiled."""
    memory = agent.memory()
    return (
        agent.cfg.kernels == "numba"
        and agent.cfg.curiosity == "none"
        and agent.device.type == "cpu"
        and is_ours(type(net))
        and net.compilable
        and (memory is None or type(memory) is MemberReplay)
        and overridden(type(agent), base) <= _OF_ACTING
        and has_numba()
    )
