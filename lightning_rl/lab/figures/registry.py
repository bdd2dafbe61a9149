"""Figures by name: ``lightning-rl figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is a module with its flags (``style.add_sources`` gives the usual ones) and a function ``draw``, which ends with
``style.save``, so that every picture comes with its numbers. A new one is one line here. They are imported when they are drawn.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lightning_rl.core.arguments import Tool, add_force
from lightning_rl.core.outputs import Out


@dataclass(frozen=True)
class Figure(Tool):
    """Overwrites nothing that it reads, nor, without ``--force``, what no figure has written."""

    run: str = "draw"

    def prepare(self, parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], None]:
        draw = super().prepare(parser)
        add_force(parser)

        def draw_protected(arguments: argparse.Namespace) -> None:
            arguments.out = Out(arguments.out, _inputs(arguments), arguments.force)
            draw(arguments)

        return draw_protected


def _inputs(arguments: argparse.Namespace) -> list[Path]:
    """The files that the arguments name, other than OUT."""
    from lightning_rl.lab.figures.runs import split_label

    inputs = []
    for name, value in vars(arguments).items():
        words = value if isinstance(value, list) else [value]
        if name != "out":
            inputs += [split_label(str(word))[0] for word in words if isinstance(word, str | Path)]
    return inputs


def _figure(module: str, summary: str) -> Figure:
    return Figure(summary, f"lightning_rl.lab.figures.{module}")


FIGURES: dict[str, Tool] = {
    "curves": _figure("curves", "learning curves over steps, episodes, updates or wall time, one panel per environment"),
    "profile": _figure("profile", "performance profile: share of runs above every score"),
    "scores": _figure("scores", "final, best, area under curve and steps to a threshold, with intervals"),
    "marks": _figure("marks", "what the curves say at chosen points, beside published ones"),
    "table": _figure("table", "the last values of several scalars, of every run and every experiment"),
    "commands": _figure("commands", "commanded against obtained return or advantage, from sweeps of --eval_command sweep"),
    "generalisation": _figure("generalisation", "learning curves and the area under each, with intervals over seeds"),
    "policy-gradient": _figure("policy_gradient", "policy loss, baseline, entropy loss and mean return over episodes, 2 x 2"),
    "proxy-success": _figure("success", "searches for proxies: fitness, and share of runs solved, over generations"),
    "proxy-transfer": _figure("transfer", "agents trained on proxies: densities of real test returns, training steps"),
    "proxy-histograms": _figure("histograms", "synthetic beside real transitions: next observations, rewards, ends"),
    "reward-curves": _figure("reward_curves", "learning curves of agents with learned rewards, a panel for each agent"),
    "grid-rewards": _figure("grid_rewards", "reward networks in a grid world: rewards as triangles per action, visits of agents"),
    "step-sizes": _figure("step_sizes", "searches for proxies: step size and score transform against success"),
    "supervised-model": _figure("supervised", "the supervised baseline: loss of the model, returns and steps of agents on it"),
    "tune": _figure("tuning", "a hyper-parameter search: score over budget, and against each searched key"),
}  # fmt: skip
