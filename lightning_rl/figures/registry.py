"""Figures by name: ``python -m lightning_rl.figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is a ``Tool``: its flags (``style.add_sources`` gives the usual ones) and a function that draws; it ends with
``style.save``, so that every picture comes with its numbers. A new one is one line here.
"""

from __future__ import annotations

from lightning_rl.arguments import Tool
from lightning_rl.figures import commands, curves, generalisation, marks, policy_gradient, scores, table, tuning

FIGURES: dict[str, Tool] = {
    "curves": curves.CURVES,
    "profile": scores.PROFILE,
    "scores": scores.SCORES_TOOL,
    "marks": marks.MARKS,
    "table": table.TABLE,
    "commands": commands.COMMANDS,
    "generalisation": generalisation.GENERALISATION,
    "policy-gradient": policy_gradient.POLICY_GRADIENT,
    "tune": tuning.TUNE,
}
