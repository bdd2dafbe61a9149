"""Trained agents that come with the package: ``trained/agents.yaml`` says what they are, a small
checkpoint holds each.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import nearest, shorten
from lightning_rl.core.yaml_files import parse_yaml

SHIPPED = Path(__file__).resolve().parent.parent / "trained"
INDEX = SHIPPED / "agents.yaml"


@dataclass(frozen=True)
class ShippedAgent:
    """A row of ``agents.yaml``.

    score, sd: mean return, and standard deviation, of ``episodes`` episodes with the agent's own
    command.
    mode: of these episodes: actions are ``sampled``, or the best (``greedy``).
    commands: lowest and highest value of what it can be asked for, by name.
    made: the commands that make it again; claim: the claim of ``results/claims.yaml`` among whose
    runs it is, or None.
    """

    implementation: str
    gamename: str
    seed: int
    score: float
    sd: float
    episodes: int
    made: str
    claim: str | None = None
    mode: str = "sampled"
    commands: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@functools.cache
def shipped_agents() -> dict[str, ShippedAgent]:
    """The agents by name."""
    rows = parse_yaml(INDEX.read_text(), f"'{INDEX}' is damaged", trusted=True)
    return {name: ShippedAgent(**row) for name, row in rows.items()}


def shipped_checkpoint(name: str) -> Path:
    """The checkpoint of the agent of this name; UserError for an unknown one."""
    if name in shipped_agents():
        return SHIPPED / f"{name}.ckpt"
    near = None if "/" in name else nearest(name, shipped_agents())
    other = "give the path of one, or of a run directory, or a name of lightning-rl agents"
    remedy = f"did you mean '{near}'?" if near else other
    raise UserError(f"checkpoint '{shorten(name)}' does not exist; {remedy}")


def is_shipped(checkpoint: Path) -> bool:
    """Whether a checkpoint lies in the package, where nothing may be written."""
    return checkpoint.parent == SHIPPED


def results_folder(checkpoint: Path) -> Path:
    """Where the results of playing a checkpoint go: beside it, of an agent of the package below
    the working directory.
    """
    if is_shipped(checkpoint):
        return Path("exp_dir") / "agents" / checkpoint.stem
    return checkpoint.parent
