"""Figures by name: ``lightning-rl figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is an entry of ``FIGURES``: one line about it, the function that draws it, and its flags. The function ends with
``style.save``, so that every picture comes with its numbers. Its module is imported when it is drawn, not for ``--help``.
"""

from __future__ import annotations

import argparse

from lightning_rl.core.arguments import Argument, Tool, argument, checked_path, count, figure_path, force, number, positive
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
    "best", "upper left", "upper center", "upper right", "center left", "center", "center right", "right", "lower left",
    "lower center", "lower right",
)  # fmt: skip
"""Places of a legend."""


class Figure(Tool):
    """Overwrites nothing that it reads, nor, without ``--force``, what no figure has written."""

    def call(self, given: argparse.Namespace) -> None:
        from lightning_rl.lab.figures.runs import split_label

        inputs = []
        for name in ("sources", "reference", "folder"):
            value = getattr(given, name, [])
            inputs += [split_label(str(word))[0] for word in (value if isinstance(value, list) else [value])]
        given.out = Out(given.out, inputs, given.force)
        super().call(given)


def _figure(draw: str, summary: str, *arguments: Argument) -> Figure:
    return Figure(summary, f"lightning_rl.lab.figures.{draw}", (*arguments, force()))


def _out(written: str) -> Argument:
    return argument("out", f"written as {written}; a name without a folder in figures/", type=figure_path, metavar="OUT")


def _table(name: str) -> Argument:
    return _out(f"OUT-{name}.csv; OUT.csv with the ending stays as it is")


_PICTURE = _out("OUT.png, OUT.svg and OUT.csv")
_SOURCES = (
    argument("sources", "run directory, folder above run directories, or results CSV[:LABEL]", nargs="+", metavar="SOURCE"),
    argument("--title", "above the figure", default=""),
)
_BASICS = (_PICTURE, *_SOURCES)
_TAG = argument("--tag", "scalar (default rollout/return_mean)", default="rollout/return_mean")
_GREEDY = argument("--tag", "scalar (default eval_greedy/return_mean)", default="eval_greedy/return_mean")
_AXIS_AND_GROUPS = (
    argument("--x", "horizontal axis (default env_steps)", choices=tuple(AXES), default="env_steps"),
    argument(
        "--group", "runs of one group differ in their seed only: implementation, gamename, exp_name, preset or any key of the "
        "config; repeatable (default: implementation, and exp_name if several)", action="append", metavar="KEY",
    ),
)  # fmt: skip
_BIN = argument("--bin", "average over this much of the axis (default: a hundredth)", type=positive, metavar="X")
BINNED = (_TAG, *_AXIS_AND_GROUPS, _BIN)
"""Which scalar, over what, of which groups."""

SCORE = argument("--score", "which number of a run (default final)", choices=SCORES, default="final")
_MARKDOWN = argument("--markdown", "print a table for a README instead of writing OUT", action="store_true")
_REFERENCE = argument(
    "--reference", "published curve with columns of the axis and value; repeatable",
    action="append", default=[], metavar="CSV[:LABEL]",
)  # fmt: skip
_LOW = argument("--low", "lower end of the vertical axis", type=number, metavar="RETURN")
_SOLVED = argument("--threshold", "solved above it (default: what solves the task)", type=number, metavar="FITNESS")


def _threshold(meaning: str) -> Argument:
    return argument("--threshold", meaning, type=number, metavar="RETURN")


FIGURES: dict[str, Tool] = {
    "curves": _figure(
        "curves:draw", "learning curves over steps, episodes, updates or wall time, one panel per environment",
        *_BASICS, *BINNED, _REFERENCE,
        argument("--ylabel", "of the vertical axis, with its unit (default: that of the scalar)", default=""),
        argument("--legend", f"{', '.join(LEGENDS)} (default: best)", choices=LEGENDS, default="best", metavar="PLACE"),
        _LOW,
    ),
    "profile": _figure("scores:draw_profile", "performance profile: share of runs above every score", *_BASICS, *BINNED, SCORE),
    "scores": _figure(
        "scores:show_scores", "final, best, area under curve and steps to a threshold, with intervals",
        _table("scores"), *_SOURCES, *BINNED, _threshold("default: what solves the environment, if known"), _MARKDOWN,
    ),
    "marks": _figure(
        "scores:show_marks", "what the curves say at chosen points, beside published ones",
        _table("marks"), *_SOURCES,
        argument("--at", "points of the axis", type=number, nargs="+", required=True, metavar="X"),
        argument("--window", "average over so much around each", type=positive, required=True, metavar="WIDTH"),
        _TAG, *_AXIS_AND_GROUPS, _REFERENCE, _MARKDOWN,
    ),
    "table": _figure(
        "table:show", "the last values of several scalars, of every run and every experiment",
        _table("table"),
        argument("sources", "run directory, or folder above some", type=checked_path, nargs="+", metavar="SOURCE"),
        argument("--tag", "scalar; repeatable (default eval/return_mean, eval_greedy/return_mean)", action="append"),
        argument("--last", "how many values (20)", type=count, default=20, metavar="N"),
        argument("--until", "only up to here", type=number, default=float("inf"), metavar="STEPS"),
    ),
    "commands": _figure(
        "commands:draw", "commanded against obtained return or advantage, from lightning-rl eval CKPT --command sweep", *_BASICS,
        argument("--reference", "published sweep, in black; repeatable", action="append", default=[], metavar="CSV"),
    ),
    "obedience": _figure(
        "commands:draw_obedience", "asked against obtained return, a panel for each source: a sweep, or a claim's CSV of several",
        *_BASICS,
    ),
    "generalisation": _figure(
        "curves:draw_with_areas", "learning curves and the area under each, with intervals over seeds",
        *_BASICS, _GREEDY, *_AXIS_AND_GROUPS, _BIN,
        argument(
            "--line", "return to draw across, e.g. 1.6:random; repeatable", action="append", default=[], metavar="VALUE:LABEL"
        ),
    ),
    "phase": _figure(
        "phase:draw", "how far methods are ahead of another, over the size of an environment and the steps",
        *_BASICS, _GREEDY, *_AXIS_AND_GROUPS[1:], _BIN,
        argument("--baseline", "the group that the others are compared with (default ER)", default="ER", metavar="NAME"),
        argument("--method", "only this one beside it; repeatable (default: all)", action="append", metavar="NAME"),
        argument("--until", "only up to here", type=number, default=float("inf"), metavar="STEPS"),
    ),
    "policy-gradient": _figure(
        "policy_gradient:draw", "policy loss, baseline, entropy loss and mean return over episodes, 2 x 2",
        *_BASICS,
        argument("--reference", "dashed; repeatable", type=checked_path, action="append", default=[], metavar="CSV"),
        argument("--every", "thin out to one point per so many (1: all)", type=count, default=1, metavar="EPISODES"),
        _threshold("drawn across the returns"),
    ),
    "proxy-success": _figure(
        "searches:draw_success", "searches for proxies: fitness, and share of runs solved, over generations",
        *_BASICS,
        argument("--group", "as of curves, e.g. score_transform; repeatable", action="append", metavar="KEY"),
        _SOLVED,
        argument("--until", "generations to show (default: all)", type=count, metavar="N"),
    ),
    "proxy-transfer": _figure(
        "transfer:draw", "agents trained on proxies: share of real test returns at or above each, means", *_BASICS, _MARKDOWN
    ),
    "proxy-histograms": _figure(
        "histograms:draw", "synthetic beside real transitions: next observations, rewards, ends",
        *_BASICS, argument("--proxy", "of this one alone (default: all in the sources together)", metavar="NAME"),
    ),
    "synthetic-dataset": _figure(
        "datasets:draw", "the state-action pairs of synthetic datasets",
        _PICTURE,
        argument("sources", "proxy file, name of a shipped one, run directory, or folder above some", nargs="+", metavar="PROXY"),
        argument("--gamename", "only proxies of this task (default: that of the first)", metavar="NAME"),
        argument("--title", "above the figure", default=""),
    ),
    "reward-curves": _figure(
        "reward_networks:draw_curves", "learning curves of agents with learned rewards, a panel for each agent",
        *_BASICS, _threshold("drawn across (default: what solves the task)"),
        _LOW, _MARKDOWN,
    ),
    "grid-rewards": _figure(
        "reward_networks:draw_grid", "reward networks in a grid world: rewards as triangles per action, visits of agents",
        *_BASICS,
        argument("--each", "a scale for each board, lowest to highest, as in the paper's Figure 10", action="store_true"),
        argument("--above", "leave out lower rewards; the paper's simplified variant: -50", type=number, metavar="REWARD"),
    ),
    "step-sizes": _figure(
        "searches:draw_step_sizes", "searches for proxies: step size and score transform against success", *_BASICS, _SOLVED
    ),
    "supervised-model": _figure(
        "transfer:draw_supervised", "the supervised baseline: loss of the model, returns and steps of agents on it", *_BASICS
    ),
    "tune": _figure(
        "tuning:draw", "a hyper-parameter search: score over budget, and against each searched key",
        _PICTURE, argument("folder", "the tune/ folder of a search, running or done", type=checked_path, metavar="TUNE_DIR"),
    ),
}  # fmt: skip
