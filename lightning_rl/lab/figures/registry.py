"""Figures by name: ``lightning-rl figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is an entry of ``FIGURES``: one line about it, the function that draws it, and its flags.
The function ends with ``style.save``, so that every picture comes with its numbers. Its module is
imported when it is drawn, not for ``--help``.
"""

from __future__ import annotations

import argparse

from lightning_rl.core.arguments import Argument, Tool, argument, force
from lightning_rl.core.kinds import checked_path, count, figure_path, number, positive
from lightning_rl.core.outputs import Out

AXES = {
    "env_steps": "environment steps",
    "episodes": "training episodes",
    "updates": "gradient updates",
    "wall_time": "wall time (hours)",
}
"""Horizontal axes and their labels."""

SCORES = ("final", "best", "area")
"""Numbers of a run."""

LEGENDS = (
    "best",
    "upper left",
    "upper center",
    "upper right",
    "center left",
    "center",
    "center right",
    "right",
    "lower left",
    "lower center",
    "lower right",
)
"""Places of a legend."""


class Figure(Tool):
    """Overwrites nothing that it reads, nor, without ``--force``, what no figure has written."""

    def call(self, given: argparse.Namespace) -> None:
        from lightning_rl.lab.figures.runs import split_label

        inputs = []
        for name in ("sources", "reference", "folder"):
            value = getattr(given, name, [])
            inputs += [
                split_label(str(word))[0]
                for word in (value if isinstance(value, list) else [value])
            ]
        given.out = Out(given.out, inputs, given.force)
        super().call(given)


def _figure(draw: str, summary: str, *arguments: Argument) -> Figure:
    return Figure(summary, f"lightning_rl.lab.figures.{draw}", (*arguments, force()))


def _out(written: str) -> Argument:
    return argument(
        "out",
        f"writes {written}; a name without a folder means figures/NAME",
        type=figure_path,
        metavar="OUT",
    )


def _table(name: str) -> Argument:
    return _out(f"OUT-{name}.csv, or OUT.csv where the name has that ending")


PICTURE = _out("OUT.png, OUT.svg and OUT.csv")
_SOURCES = (
    argument(
        "sources",
        "run directory, folder that holds some, or results CSV[:LABEL]",
        nargs="+",
        metavar="SOURCE",
    ),
    argument("--title", "title above the figure", default=""),
)
BASICS = (PICTURE, *_SOURCES)
_TAG = argument("--tag", "scalar (default rollout/return_mean)", default="rollout/return_mean")
GREEDY_TAG = argument(
    "--tag", "scalar (default eval_greedy/return_mean)", default="eval_greedy/return_mean"
)
AXIS_AND_GROUPS = (
    argument(
        "--x", "horizontal axis (default env_steps)", choices=tuple(AXES), default="env_steps"
    ),
    argument(
        "--group",
        "key by which runs are grouped, so that those of a group differ only in their seed: "
        "implementation, gamename, "
        "exp_name, preset or any config key; repeatable (default: implementation, and exp_name if "
        "several)",
        action="append",
        metavar="KEY",
    ),
)
BIN_WIDTH = argument(
    "--bin",
    "width of the bins of the x axis that values are averaged over (default: a hundredth of it, at "
    "most a tenth of the "
    "shortest run)",
    type=positive,
    metavar="X",
)
BINNED = (_TAG, *AXIS_AND_GROUPS, BIN_WIDTH)
"""Which scalar, over what, of which groups."""

SCORE = argument(
    "--score",
    "score of a run: its final value, its best, or the mean over its curve (default final)",
    choices=SCORES,
    default="final",
)
MARKDOWN = argument(
    "--markdown", "print a table for a README instead of writing OUT", action="store_true"
)
_REFERENCE = argument(
    "--reference",
    "published curve to draw beside: a CSV with a column named like the x axis and a column value; "
    "repeatable",
    action="append",
    default=[],
    metavar="CSV[:LABEL]",
)
LOW = argument(
    "--low",
    "lower end of the vertical axis (default: from the data)",
    type=number,
    metavar="RETURN",
)


def threshold(meaning: str) -> Argument:
    """``--threshold``, a return."""
    return argument("--threshold", meaning, type=number, metavar="RETURN")


FIGURES: dict[str, Tool] = {
    "curves": _figure(
        "curves:draw",
        "learning curves over steps, episodes, updates or wall time, one panel per environment",
        *BASICS,
        *BINNED,
        _REFERENCE,
        argument(
            "--ylabel",
            "label of the vertical axis, with its unit (default: that of the scalar)",
            default="",
        ),
        argument(
            "--legend",
            f"place of the legend: {', '.join(LEGENDS)} (default: best)",
            choices=LEGENDS,
            default="best",
            metavar="PLACE",
        ),
        LOW,
    ),
    "profile": _figure(
        "scores:draw_profile",
        "performance profile: share of runs above every score",
        *BASICS,
        *BINNED,
        SCORE,
    ),
    "scores": _figure(
        "scores:show_scores",
        "final, best, area under curve and steps to a threshold, with intervals",
        _table("scores"),
        *_SOURCES,
        *BINNED,
        threshold("return for the steps to a threshold (default: the solved return)"),
        MARKDOWN,
    ),
    "marks": _figure(
        "scores:show_marks",
        "values of the curves at chosen points of the x axis, beside published ones",
        _table("marks"),
        *_SOURCES,
        argument(
            "--at", "points of the x axis", type=number, nargs="+", required=True, metavar="X"
        ),
        argument(
            "--window",
            "width of the x axis around each point that is averaged over",
            type=positive,
            required=True,
            metavar="WIDTH",
        ),
        _TAG,
        *AXIS_AND_GROUPS,
        _REFERENCE,
        MARKDOWN,
    ),
    "table": _figure(
        "table:show",
        "mean of the last values of several scalars, for every run and every experiment",
        _table("table"),
        argument(
            "sources",
            "run directory, or folder that holds some",
            type=checked_path,
            nargs="+",
            metavar="SOURCE",
        ),
        argument(
            "--tag",
            "scalar; repeatable (default eval/return_mean, eval_greedy/return_mean)",
            action="append",
        ),
        argument(
            "--last",
            "how many of the last values are averaged (default 20)",
            type=count,
            default=20,
            metavar="N",
        ),
        argument(
            "--until",
            "ignore values after so many environment steps",
            type=number,
            default=float("inf"),
            metavar="STEPS",
        ),
    ),
    "commands": _figure(
        "commands:draw",
        "obtained return against the commanded return or advantage, from eval CKPT --command sweep",
        *BASICS,
        argument(
            "--reference",
            "published sweep, drawn in black; repeatable",
            action="append",
            default=[],
            metavar="CSV",
        ),
    ),
    "obedience": _figure(
        "commands:draw_obedience",
        "obtained against commanded return, a panel for each source: a sweep, or a claim's CSV",
        *BASICS,
    ),
    "generalisation": _figure(
        "curves:draw_with_areas",
        "learning curves and the area under each, with intervals over seeds",
        *BASICS,
        GREEDY_TAG,
        *AXIS_AND_GROUPS,
        BIN_WIDTH,
        argument(
            "--line",
            "draw a horizontal line at this return with this label, e.g. 1.6:random; repeatable",
            action="append",
            default=[],
            metavar="VALUE:LABEL",
        ),
    ),
    "tune": _figure(
        "tuning:draw",
        "a hyper-parameter search: score over the budget, and by value of each searched key",
        PICTURE,
        argument(
            "folder",
            "the tune/ folder of a search, running or done",
            type=checked_path,
            metavar="TUNE_DIR",
        ),
    ),
}
