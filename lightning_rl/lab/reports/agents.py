"""``lightning-rl agents``: the trained agents that come with the package."""

from __future__ import annotations

from argparse import Namespace

from lightning_rl.core.limits import within
from lightning_rl.core.lines import three_digits
from lightning_rl.functional.intervals import student_quantile
from lightning_rl.lab.tables import put_rows
from lightning_rl.run.shipped import ShippedAgent, shipped_agents


def show(arguments: Namespace) -> None:
    """Prints a row for each agent, and how each was made."""
    agents = shipped_agents()
    rows = [("name", "environment", "mean return", "commands", "seed")]
    made = []
    for name, each in agents.items():
        rows.append((name, each.gamename, score(each), commands(each), str(each.seed)))
        claim = f" (claim {each.claim})" if each.claim else ""
        made.append(f"{name}: {each.made}{claim}")
    asked_for_returns = [name for name, each in agents.items() if "return" in each.commands]
    example = (asked_for_returns or list(agents))[0]
    end = "\n".join(["Made by:", *made, f"See one: lightning-rl play {example}"])
    put_rows(rows, "Trained agents, with 95 % intervals over episodes", end=end)


def score(agent: ShippedAgent) -> str:
    """The mean return and half of its interval, and which actions it is of where they are not
    sampled.
    """
    half = student_quantile(agent.episodes - 1) * agent.sd / agent.episodes**0.5
    interval = f"{three_digits(agent.score)} ± {three_digits(half)}"
    return interval if agent.mode == "sampled" else f"{interval}, {agent.mode}"


def commands(agent: ShippedAgent) -> str:
    """What the agent can be asked for."""
    limits = [f"{name} {within(*limits)}" for name, limits in agent.commands.items()]
    return ", ".join(limits) or "none"
