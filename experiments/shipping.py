"""Makes a run an agent of the package: its small checkpoint, and its row in ``agents.yaml``.

``python -m experiments.shipping NAME RUN_DIR [--claim ID] [--no-calibration]`` calibrates the run's
checkpoint where its policy takes commands and is not calibrated, and plays it; a name that is there
is replaced.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from lightning_rl.core.arguments import Parser
from lightning_rl.core.files import write_plain, write_text
from lightning_rl.core.kinds import checked_path
from lightning_rl.core.lines import say
from lightning_rl.core.yaml_files import read_yaml
from lightning_rl.lab.calibration import calibrate_checkpoint
from lightning_rl.lab.evaluate import evaluate
from lightning_rl.run.acting import load
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.loading import ACTING_ONLY
from lightning_rl.run.shipped import INDEX, SHIPPED, ShippedAgent, shipped_agents
from lightning_rl.run.state import checkpoint_at

EPISODES = 200


def acting_checkpoint(path: Path) -> dict[str, Any]:
    """The part of a checkpoint that acting needs: without optimizers, episodes, and networks
    that only training uses.
    """
    checkpoint = read_checkpoint(path)
    about = {key: checkpoint[key] for key in ("epoch", "hyper_parameters")}
    copies = {name: value.clone() for name, value in load(path).method.acting_weights().items()}
    return {**about, "state_dict": copies, ACTING_ONLY: True}


def ship(name: str, path: Path, claim: str | None, calibrates: bool = True) -> ShippedAgent:
    """Adds the agent of a run directory, or of a checkpoint in one, to the package; its row."""
    checkpoint = checkpoint_at(path)
    made = f"lightning-rl reproduce {claim}" if claim else command_of(checkpoint.parent)
    with tempfile.TemporaryDirectory() as folder:  # nothing of the run changes
        acting = Path(folder) / f"{name}.ckpt"
        write_plain(acting, acting_checkpoint(checkpoint))
        method = load(acting).method
        if calibrates and method.command_limits() is not None:
            if method.calibrated() is None:
                calibrate_checkpoint(acting, num_workers=0)
                method = load(acting).method
            made += ", then lightning-rl eval --calibrate"
        played = evaluate(method, EPISODES)[method.action_mode]
        write_plain(SHIPPED / acting.name, acting_checkpoint(acting))
    limits = method.command_limits()
    ranges = {}
    if limits is not None:
        ranges[method.command_names[0]] = limits
    calibration = method.calibrated()
    if calibration is not None and calibration.limits is not None:
        ranges["return"] = calibration.limits
    return ShippedAgent(
        method.implementation,
        method.gamename,
        method.seed,
        round(played["return"]["mean"], 2),
        round(float(np.std(played["returns"], ddof=1)), 2),
        EPISODES,
        made,
        claim,
        method.action_mode,
        {key: _rounded_within(*limits) for key, limits in ranges.items()},
    )


def _rounded_within(low: float, high: float) -> tuple[float, float]:
    return math.ceil(100 * low) / 100, math.floor(100 * high) / 100


def command_of(run_dir: Path) -> str:
    """The command that a run was started with, whatever program and folder it was started in."""
    words = str(read_yaml(run_dir / "config.yaml")["command"]).split()[1:]
    flags = re.sub(
        r" ?--(exp_name|logdir|num_workers|resume)(=\S*| [^-]\S*)?",
        "",
        " ".join(words).removeprefix("train "),
    )
    return f"lightning-rl train {flags.strip()}"


def main() -> None:
    """The command line of the module."""
    parser = Parser(description="make a run's policy an agent of the package")
    parser.add_argument("name", help="of the agent, e.g. RCP-A-lunarlander")
    parser.add_argument("path", help="run directory or checkpoint", type=checked_path)
    parser.add_argument("--claim", help="of results/claims.yaml, whose runs it is of")
    parser.add_argument("--no-calibration", help="ship it as it is", action="store_true")
    given: Namespace = parser.parse_args()
    row = ship(given.name, given.path, given.claim, not given.no_calibration)
    rows = {**shipped_agents(), given.name: row}
    content = {name: dataclasses.asdict(each) for name, each in rows.items()}
    for each in content.values():
        each["commands"] = {name: list(limits) for name, limits in each["commands"].items()}
    write_text(INDEX, yaml.safe_dump(content, sort_keys=False, width=120))
    say(f"{given.name}: {row}")


if __name__ == "__main__":
    main()
