"""Figures by name: ``lightning-rl figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is an entry of ``FIGURES``: one line about it, the function that draws it, and its flags.
The function ends with ``style.save``, so that every picture comes with its numbers. Its module is
imported when it is drawn, not for ``--help``.
"""

from __future__ import annotations

import argparse

from lightning_rl.core.arguments import (
    Argument,
    Tool,
    argument,
    checked_path,
    count,
    figure_path,
    force,
    gamename,
    number,
    positive,
)
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


_PICTURE = _out("OUT.png, OUT.svg and OUT.csv")
_SOURCES = (
    argument(
        "sources",
        "run directory, folder that holds some, or results CSV[:LABEL]",
        nargs="+",
        metavar="SOURCE",
    ),
    argument("--title", "title above the figure", default=""),
)
_BASICS = (_PICTURE, *_SOURCES)
_TAG = argument("--tag", "scalar (default rollout/return_mean)", default="rollout/return_mean")
_GREEDY = argument(
    "--tag", "scalar (default eval_greedy/return_mean)", default="eval_greedy/return_mean"
)
_AXIS_AND_GROUPS = (
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
_BIN = argument(
    "--bin",
    "width of the bins of the x axis that values are averaged over (default: a hundredth of it, at "
    "most a tenth of the "
    "shortest run)",
    type=positive,
    metavar="X",
)
BINNED = (_TAG, *_AXIS_AND_GROUPS, _BIN)
"""Which scalar, over what, of which groups."""

SCORE = argument(
    "--score",
    "score of a run: its final value, its best, or the mean over its curve (default final)",
    choices=SCORES,
    default="final",
)
_MARKDOWN = argument(
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
_LOW = argument(
    "--low",
    "lower end of the vertical axis (default: from the data)",
    type=number,
    metavar="RETURN",
)
_SOLVED = argument(
    "--threshold",
    "fitness above which a search counts as solved (default: the task's solved return; needed for "
    "RN)",
    type=number,
    metavar="FITNESS",
)


def _threshold(meaning: str) -> Argument:
    return argument("--threshold", meaning, type=number, metavar="RETURN")


FIGURES: dict[str, Tool] = {
    "curves": _figure(
        "curves:draw",
        "learning curves over steps, episodes, updates or wall time, one panel per environment",
        *_BASICS,
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
        _LOW,
    ),
    "profile": _figure(
        "scores:draw_profile",
        "performance profile: share of runs above every score",
        *_BASICS,
        *BINNED,
        SCORE,
    ),
    "scores": _figure(
        "scores:show_scores",
        "final, best, area under curve and steps to a threshold, with intervals",
        _table("scores"),
        *_SOURCES,
        *BINNED,
        _threshold("return for the steps to a threshold (default: the solved return)"),
        _MARKDOWN,
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
        *_AXIS_AND_GROUPS,
        _REFERENCE,
        _MARKDOWN,
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
        *_BASICS,
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
        *_BASICS,
    ),
    "generalisation": _figure(
        "curves:draw_with_areas",
        "learning curves and the area under each, with intervals over seeds",
        *_BASICS,
        _GREEDY,
        *_AXIS_AND_GROUPS,
        _BIN,
        argument(
            "--line",
            "draw a horizontal line at this return with this label, e.g. 1.6:random; repeatable",
            action="append",
            default=[],
            metavar="VALUE:LABEL",
        ),
    ),
    "phase": _figure(
        "phase:draw",
        "difference of mean returns between methods and a baseline, by size of the environment and "
        "steps",
        *_BASICS,
        _GREEDY,
        *_AXIS_AND_GROUPS[1:],
        _BIN,
        argument(
            "--baseline",
            "the group that the others are compared with (default ER)",
            default="ER",
            metavar="NAME",
        ),
        argument(
            "--method",
            "compare only this group with it; repeatable (default: all)",
            action="append",
            metavar="NAME",
        ),
        argument(
            "--until",
            "ignore values after so many environment steps",
            type=number,
            default=float("inf"),
            metavar="STEPS",
        ),
    ),
    "policy-gradient": _figure(
        "policy_gradient:draw",
        "policy loss, baseline, entropy loss and mean return over episodes, 2 x 2",
        *_BASICS,
        argument(
            "--reference",
            "published curves, drawn dashed; repeatable",
            type=checked_path,
            action="append",
            default=[],
            metavar="CSV",
        ),
        argument(
            "--every",
            "draw one point per so many episodes (default 1: all)",
            type=count,
            default=1,
            metavar="EPISODES",
        ),
        _threshold("return to mark with a horizontal line"),
    ),
    "proxy-success": _figure(
        "searches:draw_success",
        "searches for proxies: fitness, and share of runs solved, over generations",
        *_BASICS,
        argument(
            "--group",
            "as for curves, e.g. score_transform; repeatable",
            action="append",
            metavar="KEY",
        ),
        _SOLVED,
        argument("--until", "how many generations to show (default: all)", type=count, metavar="N"),
    ),
    "proxy-transfer": _figure(
        "transfer:draw",
        "agents trained on proxies: share of their returns on the real task at or above each "
        "value, and means",
        *_BASICS,
        _MARKDOWN,
    ),
    "proxy-histograms": _figure(
        "histograms:draw",
        "histograms of synthetic and real transitions: next observations, rewards, ends of "
        "episodes",
        *_BASICS,
        argument(
            "--proxy", "draw only this proxy (default: all in the sources together)", metavar="NAME"
        ),
    ),
    "synthetic-dataset": _figure(
        "datasets:draw",
        "the state-action pairs of synthetic datasets",
        _PICTURE,
        argument(
            "sources",
            "proxy file, name of a shipped proxy, run directory, or folder of such",
            nargs="+",
            metavar="PROXY",
        ),
        argument(
            "--gamename",
            "use only proxies of this task (default: the task of the first)",
            type=gamename,
            metavar="NAME",
        ),
        argument("--title", "title above the figure", default=""),
    ),
    "reward-curves": _figure(
        "reward_networks:draw_curves",
        "learning curves of agents with learned rewards, a panel for each agent",
        *_BASICS,
        _threshold("return to mark with a horizontal line (default: the task's solved return)"),
        _LOW,
        _MARKDOWN,
    ),
    "grid-rewards": _figure(
        "reward_networks:draw_grid",
        "reward networks in a grid world: reward of each action as a triangle, visits of agents",
        *_BASICS,
        argument(
            "--each",
            "own colour scale for each board, lowest to highest reward, as in the paper's Figure "
            "10",
            action="store_true",
        ),
        argument(
            "--above",
            "leave out rewards up to this one; -50 gives the paper's simplified variant",
            type=number,
            metavar="REWARD",
        ),
    ),
    "step-sizes": _figure(
        "searches:draw_step_sizes",
        "searches for proxies: success by step size and score transform",
        *_BASICS,
        _SOLVED,
    ),
    "supervised-model": _figure(
        "transfer:draw_supervised",
        "the supervised baseline MBRL: loss of the model, returns and steps of agents on it",
        *_BASICS,
    ),
    "tune": _figure(
        "tuning:draw",
        "a hyper-parameter search: score over the budget, and by value of each searched key",
        _PICTURE,
        argument(
            "folder",
            "the tune/ folder of a search, running or done",
            type=checked_path,
            metavar="TUNE_DIR",
        ),
    ),
}
