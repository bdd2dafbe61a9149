"""One look for all figures, and what each writes: OUT.png, OUT.svg and OUT.csv, the numbers of exactly what is shown."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
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
from PIL import Image
from PIL.PngImagePlugin import PngInfo

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
        "savefig.dpi": 100, "svg.hashsalt": "lightning_rl", "svg.fonttype": "none",
        "text.parse_math": False,  # names of users may hold dollar signs
    }
)  # fmt: skip


def panels(count: int, size: tuple[float, float] = (7.2, 4.4), columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels in a grid of so many columns, by default up to three; the rest is left out."""
    columns = columns or (min(count, 3) if count != 4 else 2)
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


def banded_line(
    axes: Axes, x: Any, middle: Any, low: Any, high: Any, colour: str, alpha: float = 0.15, step: Any = None, **line: Any
) -> None:
    """A line and the band around it. step: ``post`` for steps that hold up to the next x."""
    axes.plot(x, middle, color=colour, drawstyle=f"steps-{step}" if step else None, **line)
    axes.fill_between(x, low, high, color=colour, alpha=alpha, step=step, linewidth=0)


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


def describe(figure: Figure, title: str, caption: str) -> None:
    """The title of the whole figure, and what its lines mean below the panels, in as many lines as they take."""
    width = figure.get_figwidth()
    if title:
        figure.suptitle(even_lines(title, int(width * 9.5)), fontsize=12)
    figure.supxlabel(even_lines(caption, int(width * 17)), fontsize=8, color="#444444")


def even_lines(text: str, width: int) -> str:
    """As few lines as ``width`` allows, none much shorter than the others."""
    count = len(textwrap.wrap(text, width))
    widths = range(max(len(text) // max(count, 1), 1), width + 1)
    return textwrap.fill(text, next(each for each in widths if len(textwrap.wrap(text, each)) <= count))


def counted(counts: Iterable[int], what: str = "seed") -> str:
    """``5 seeds``, ``1 seed`` or ``3 - 5 seeds``."""
    counts = list(counts)
    low, high = min(counts), max(counts)
    return f"{low} {what}{'s' * (low != 1)}" if low == high else f"{low} - {high} {what}s"


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
    content = rendered(figure, "png")
    plt.close(figure)
    return content


def rendered(figure: Figure, form: str, metadata: Mapping[str, str | None] | None = None) -> bytes:
    """The figure as the bytes of a PNG or SVG."""
    content = io.BytesIO()
    figure.savefig(content, format=form, metadata=metadata)
    return small_png(content.getvalue()) if form == "png" else content.getvalue()


def small_png(content: bytes) -> bytes:
    """A PNG in 256 colours of its own, a third as large: figures have few. What it says of itself stays."""
    picture = Image.open(io.BytesIO(content))
    said = PngInfo()
    for key, text in picture.info.items():
        if isinstance(text, str):
            said.add_text(str(key), text)
    small = io.BytesIO()
    # The default, MEDIANCUT, mixes colours of small parts with others; without k-means, pale shades get a tint.
    palette = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    palette.save(small, "PNG", optimize=True, pnginfo=said, dpi=picture.info.get("dpi"))
    return small.getvalue()
