"""Figures by name: ``python -m lightning_rl.figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is a ``Tool``: its flags (``style.add_sources`` gives the usual ones) and a function that draws; it ends with
``style.save``, so that every picture comes with its numbers. A new one is one line here.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from lightning_rl.arguments import Tool
from lightning_rl.figures import (
    commands,
    curves,
    generalisation,
    grid_rewards,
    histograms,
    marks,
    policy_gradient,
    reward_curves,
    scores,
    step_sizes,
    success,
    supervised,
    table,
    transfer,
    tuning,
)  # fmt: skip
from lightning_rl.figures.runs import split_label
from lightning_rl.figures.style import stem
from lightning_rl.types import UserError


def _sparing_sources(tool: Tool) -> Tool:
    """The tool, which refuses to overwrite the CSV that it reads."""

    def draw(arguments: argparse.Namespace) -> None:
        written = Path(f"{stem(arguments.out)}.csv").resolve()
        if any(split_label(str(source))[0].resolve() == written for source in getattr(arguments, "sources", ())):
            raise UserError(f"'{arguments.out}' would overwrite its source '{written.name}'; choose another OUT")
        tool.run(arguments)

    return dataclasses.replace(tool, run=draw)


_FIGURES = {
    "curves": curves.CURVES,
    "profile": scores.PROFILE,
    "scores": scores.SCORES_TOOL,
    "marks": marks.MARKS,
    "table": table.TABLE,
    "commands": commands.COMMANDS,
    "generalisation": generalisation.GENERALISATION,
    "policy-gradient": policy_gradient.POLICY_GRADIENT,
    "proxy-success": success.SUCCESS,
    "proxy-transfer": transfer.TRANSFER,
    "proxy-histograms": histograms.HISTOGRAMS,
    "reward-curves": reward_curves.REWARD_CURVES,
    "grid-rewards": grid_rewards.GRID_REWARDS,
    "step-sizes": step_sizes.STEP_SIZES,
    "supervised-model": supervised.SUPERVISED,
    "tune": tuning.TUNE,
}

FIGURES: dict[str, Tool] = {name: _sparing_sources(tool) for name, tool in _FIGURES.items()}
