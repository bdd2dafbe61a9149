"""Figures by name: ``lightning-rl figures NAME ...`` and ``trainer.py --figure NAME ...``.

A figure is an entry of ``FIGURES``: one line about it, the function that draws it, and its flags.
The function ends with ``style.save``, so that every picture comes with its numbers. Its module is
imported when it is drawn, not for ``--help``.
"""

from __future__ import annotations

from argparse import Namespace

from lightning_rl.core.arguments import Argument, Tool, argument, force, repeated, switch
from lightning_rl.core.errors import UserError
from lightning_rl.core.kinds import checked_path, figure_path, inches, number, positive
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

    def call(self, given: Namespace) -> None:
        from lightning_rl.lab.figures.runs import split_label

        if given.out.is_dir():
            raise UserError(
                f"'{given.out}' is a folder; the first path is OUT, a new name "
                "('figure.png'), and sources come after it"
            )
        inputs = []
        for name in ("sources", "reference", "folder"):
            value = getattr(given, name, [])
            inputs += [
                split_label(str(word))[0]
                for word in (value if isinstance(value, list) else [value])
            ]
        given.out = Out(given.out, inputs, given.force)
        if not hasattr(given, "formats"):  # a table
            super().call(given)
            return
        from lightning_rl.lab.figures.style import Page, on_page

        formats = tuple(given.formats or DEFAULT_FORMATS)
        with on_page(Page(formats, given.width, not given.no_caption)):
            super().call(given)


def figure(draw: str, summary: str, *arguments: Argument) -> Figure:
    """A figure, or a table, that the function ``draw`` makes."""
    page = PAGE if PICTURE in arguments else ()
    return Figure(summary, draw, (*arguments, *page, force()))


def _figure(draw: str, summary: str, *arguments: Argument) -> Figure:
    return figure(f"lightning_rl.lab.figures.{draw}", summary, *arguments)


def _out(written: str) -> Argument:
    return argument(
        "out",
        f"writes {written}; a name without a folder means figures/NAME",
        figure_path,
        metavar="OUT",
    )


def table_out(name: str) -> Argument:
    """``OUT`` of a command that writes a table."""
    return _out(f"OUT-{name}.csv, or OUT.csv where the name has that ending")


PICTURE = _out("OUT.png, OUT.svg and OUT.csv")
FORMATS = ("png", "svg", "pdf")
DEFAULT_FORMATS = ("png", "svg")
PAGE = (
    argument(
        "--format",
        "of the picture; repeatable (default: png and svg)",
        dest="formats",
        action="append",
        choices=FORMATS,
    ),
    argument(
        "--width",
        "of the picture, e.g. 3.25 for a column of a paper (default: from the data)",
        inches,
    ),
    switch(
        "--no-caption",
        "print title and caption instead of drawing them, for the text that the picture stands in",
    ),
)
"""Where a picture goes."""
TITLE = argument("--title", "title above the figure", default="")
SOURCES = (
    argument(
        "sources",
        "run directory, folder that holds some, or results CSV[:LABEL]",
        nargs="+",
        metavar="SOURCE",
    ),
    TITLE,
)
BASICS = (PICTURE, *SOURCES)
TAG = argument("--tag", "scalar (default rollout/return_mean)", default="rollout/return_mean")
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
    positive,
    metavar="X",
)
BINNED = (TAG, *AXIS_AND_GROUPS, BIN_WIDTH)
"""Which scalar, over what, of which groups."""

SCORE = argument(
    "--score",
    "score of a run: its final value, its best, or the mean over its curve (default final)",
    choices=SCORES,
    default="final",
)
MARKDOWN = switch("--markdown", "print a table for a README instead of writing OUT")
REFERENCE = repeated(
    "--reference",
    "published curve to draw beside: a CSV with a column named like the x axis and a column value; "
    "repeatable",
    "CSV[:LABEL]",
)
LOW = argument(
    "--low", "lower end of the vertical axis (default: from the data)", number, metavar="RETURN"
)


def threshold(meaning: str) -> Argument:
    """``--threshold``, a return."""
    return argument("--threshold", meaning, number, metavar="RETURN")


FIGURES: dict[str, Tool] = {
    "curves": _figure(
        "curves:draw",
        "learning curves over steps, episodes, updates or wall time, one panel per environment",
        *BASICS,
        *BINNED,
        REFERENCE,
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
    "scores": _figure(
        "scores:show_scores",
        "final, best, area under curve and steps to a threshold, with intervals",
        table_out("scores"),
        *SOURCES,
        *BINNED,
        threshold("return for the steps to a threshold (default: the solved return)"),
        MARKDOWN,
    ),
    "commands": _figure(
        "commands:draw",
        "obtained return against the commanded return or advantage, from eval CKPT --command sweep",
        *BASICS,
        repeated("--reference", "published sweep, drawn in black; repeatable", "CSV"),
    ),
    "tune": _figure(
        "tuning:draw",
        "a hyper-parameter search: score over the budget, and by value of each searched key",
        PICTURE,
        argument(
            "folder",
            "the tune/ folder of a search, running or done",
            checked_path,
            metavar="TUNE_DIR",
        ),
    ),
}
