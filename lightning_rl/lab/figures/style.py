"""One look for all figures, and what each writes: OUT.png, OUT.svg and OUT.csv, the numbers of exactly what is shown."""

from __future__ import annotations

import argparse
import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display needed

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter

from lightning_rl.core.arguments import checked_path
from lightning_rl.core.outputs import File, Out, owned_numbers, owned_picture, picture_metadata
from lightning_rl.lab.tables import csv_text

# Okabe and Ito's colours, which all readers can distinguish; grey and black are for published curves.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#7F7F7F")
REFERENCE_COLOURS = ("black", "#7F7F7F", "#8C564B", "#CC79A7")

plt.rcParams.update(
    {
        "axes.prop_cycle": cycler(color=COLOURS), "axes.grid": True, "grid.alpha": 0.3,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
        "legend.fontsize": 8.5, "legend.framealpha": 0.8, "figure.constrained_layout.use": True,
        "savefig.dpi": 130, "svg.hashsalt": "lightning_rl", "svg.fonttype": "none",
        "text.parse_math": False,  # names of users may hold dollar signs
    }
)  # fmt: skip


def panels(count: int, size: tuple[float, float] = (7.2, 4.4)) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels in a grid of up to three columns; the others of the grid are left out."""
    columns = min(count, 3) if count != 4 else 2
    rows = -(-count // columns)
    shrink = 1.0 if columns == 1 else 0.75
    figure, grid = plt.subplots(rows, columns, figsize=(size[0] * columns * shrink, size[1] * rows * shrink), squeeze=False)
    for axes in grid.flat[count:]:
        axes.remove()
    return figure, list(grid.flat[:count])


def colour(index: int) -> str:
    """The colour of the ``index``-th group."""
    return COLOURS[index % len(COLOURS)]


def marker(values: Any) -> str | None:
    """A dot for a line of one point, which would not be seen; nan is no point."""
    return "o" if np.isfinite(values).sum() == 1 else None


def big_numbers(axis: Axis) -> None:
    """The numbers of an axis as 10k, 2M and so on."""
    axis.set_major_formatter(EngFormatter(sep=""))


def plain_ticks(axis: Axis) -> None:
    """The numbers of a logarithmic axis in plain text."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def shared_legend(figure: Figure, panels: Sequence[Axes], **how: Any) -> None:
    """One legend for all panels."""
    entries = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), **how)


def heading(figure: Figure, text: str) -> None:
    """The title of the whole figure, in as many lines as it takes."""
    figure.suptitle(textwrap.fill(text, int(figure.get_figwidth() * 9.5)), fontsize=12)


def caption(figure: Figure, text: str) -> None:
    """What the lines mean, below the panels."""
    figure.supxlabel(textwrap.fill(text, int(figure.get_figwidth() * 17)), fontsize=8, color="#444444")


def seeds_text(counts: Sequence[int]) -> str:
    """``5 seeds``, ``1 seed`` or ``3 - 5 seeds``."""
    low, high = min(counts), max(counts)
    return f"{low} seed{'s' * (low != 1)}" if low == high else f"{low} - {high} seeds"


def stem(out: Path) -> Path:
    """OUT without an extension that the user may have given."""
    return out.with_suffix("") if out.suffix in (".png", ".svg", ".csv") else out


def save(figure: Figure, out: Out, table: pd.DataFrame) -> None:
    """Writes OUT.png, OUT.svg and OUT.csv and says so."""
    name, numbers = stem(out.path), csv_text(table)
    png, svg, csv = (Path(f"{name}.{ending}") for ending in ("png", "svg", "csv"))
    if out.path.suffix == ".csv":  # OUT was forgotten, and this is the first source
        out.check(csv, lambda path: False)
    metadata = picture_metadata(numbers)
    out.write(
        File(csv, numbers, owned_numbers(png)),
        File(png, rendered(figure, "png", metadata["png"]), owned_picture),
        File(svg, rendered(figure, "svg", metadata["svg"]), owned_picture),
    )
    plt.close(figure)
    print(f"wrote {png}, {svg} and {csv}")


def png(figure: Figure) -> bytes:
    """The bytes of a PNG of the figure, which is closed."""
    content = rendered(figure, "png", None)
    plt.close(figure)
    return content


def rendered(figure: Figure, form: str, metadata: Mapping[str, str | None] | None) -> bytes:
    """The figure as the bytes of a PNG or SVG."""
    content = io.BytesIO()
    figure.savefig(content, format=form, metadata=metadata)
    return content.getvalue()


def add_out(parser: argparse.ArgumentParser, written: str = "written as OUT.png, OUT.svg and OUT.csv") -> None:
    """The argument OUT."""
    parser.add_argument("out", type=checked_path, metavar="OUT", help=written)


def add_sources(parser: argparse.ArgumentParser, written: str = "written as OUT.png, OUT.svg and OUT.csv") -> None:
    """OUT and what is drawn."""
    add_out(parser, written)
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="run directory, folder above run directories, or results CSV[:LABEL]"
    )
    parser.add_argument("--title", default="", help="above the figure")
