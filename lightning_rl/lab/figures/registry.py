"""Figures by name: ``python -m lightning_rl.lab.figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is a ``Tool``: its flags (``style.add_sources`` gives the usual ones) and a function that draws; it ends with
``style.save``, so that every picture comes with its numbers. A new one is one line here.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from lightning_rl.core.arguments import Tool, add_force
from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures import (
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
from lightning_rl.lab.figures.runs import split_label


def _sparing(tool: Tool) -> Tool:
    """The tool, which overwrites nothing that it reads, nor, without ``--force``, what no figure has written."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        tool.add_arguments(parser)
        add_force(parser)

    def draw(arguments: argparse.Namespace) -> None:
        words = [word for value in vars(arguments).values() for word in (value if isinstance(value, list) else [value])]
        inputs = [split_label(str(word))[0] for word in words if isinstance(word, str | Path) and word is not arguments.out]
        arguments.out = Out(arguments.out, inputs, arguments.force)
        tool.run(arguments)

    return dataclasses.replace(tool, add_arguments=add_arguments, run=draw)


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

FIGURES: dict[str, Tool] = {name: _sparing(tool) for name, tool in _FIGURES.items()}
