"""One look for all figures, and what each writes: OUT.png, OUT.svg or OUT.pdf, and OUT.csv, the
numbers of exactly what is shown.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from lightning_rl.core.lines import say
from lightning_rl.core.outputs import File, Out, owned_numbers, owned_picture, picture_metadata
from lightning_rl.lab.tables import csv_text

# Okabe and Ito's colours, which all readers can distinguish; grey and black are for published
# curves.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#7F7F7F")
REFERENCE_COLOURS = ("black", "#7F7F7F", "#8C564B", "#CC79A7")
MARKERS = dict(zip(COLOURS, "os^Dv*PX", strict=True))
"""A second cue beside a colour, for lines that lie on each other."""
WIDEST = 10.8
"""Inches: of 1,080 pixels."""

plt.rcParams.update(
    {
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "legend.fontsize": 9,
        "legend.framealpha": 0.8,
        "figure.constrained_layout.use": True,
        "savefig.dpi": 150,
        "pdf.fonttype": 42,  # journals refuse type 3
        "svg.hashsalt": "lightning_rl",
        "svg.fonttype": "none",
        "text.parse_math": False,  # names of users may hold dollar signs
    }
)


@dataclass(frozen=True)
class Page:
    """Where a figure goes.

    formats: of the pictures, of png, svg and pdf.
    width: in inches; None: as wide as the data make it.
    captioned: title and caption are drawn, not printed.
    """

    formats: Sequence[str] = ("png", "svg")
    width: float | None = None
    captioned: bool = True

    @property
    def is_narrow(self) -> bool:
        """Whether panels stand below each other, as in a column of a paper."""
        return self.width is not None and self.width < _NARROW


_NARROW = 5.0
_SMALL: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.markersize": 4,
}
_page = Page()


@contextmanager
def on_page(page: Page) -> Iterator[None]:
    """Figures that are drawn inside go there; of a given width they have the letters of a paper."""
    global _page
    before = _page
    _page = page
    try:
        with plt.rc_context(_SMALL if page.width else {}):
            yield
    finally:
        _page = before


def panels(
    count: int,
    size: tuple[float, float] = (7.2, 4.4),
    columns: int | None = None,
    legend: int = 0,
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels; what they leave of the grid's last row is left out.

    Pages show pictures 800 pixels wide, so no figure is so wide that its letters could not be read
    there.

    Args:
        size: of a panel that is alone, in inches; those of several are smaller.
        columns: at most; None: two, or three where that fills the grid better.
        legend: lines that ``shared_legend`` takes below the panels, where these leave it no place
            in the grid.
        shared: sharex and sharey of the panels.
    """
    columns = _columns(count) if columns is None else min(count, columns)
    if _page.is_narrow:
        columns = 1
    rows = math.ceil(count / columns)
    shrink = {1: 1.0, 2: 0.75}.get(columns, 0.7)
    width, height = min(size[0] * columns * shrink, WIDEST), size[1] * shrink
    if _page.width:
        height *= (_page.width / width) ** 0.7  # letters stay as they are
        width = _page.width
    heights = [height] * rows
    if legend and rows * columns == count:
        heights.append(0.25 * legend)
    figure, grid = plt.subplots(
        len(heights),
        columns,
        figsize=(width, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        **shared,
    )
    for axes in grid.flat[count:]:
        axes.remove()
    return figure, list(grid.flat[:count])


def _columns(count: int) -> int:
    return 3 if count in (3, 5, 6, 9) else min(count, 2)


def has_free_place(panels: Sequence[Axes]) -> bool:
    """Whether the last row of the grid has one."""
    grid = panels[0].get_gridspec()
    assert grid is not None
    return len(panels) % grid.ncols != 0


def fitting(points: float, width: float) -> float:
    """The size of letters in a picture drawn for ``width`` inches, smaller where it is narrower."""
    return points if _page.width is None else points * min(1.0, _page.width / width)


def colour(index: int) -> str:
    """The colour of the ``index``-th group."""
    return COLOURS[index % len(COLOURS)]


def cue(colour: str, values: Any) -> dict[str, Any]:
    """The few markers of a line, one at least, in other places than those of other colours; nan
    is no point.
    """
    points = np.flatnonzero(np.isfinite(values))
    apart = max(len(points) // (3 * len(MARKERS)), 1)
    places = points[list(MARKERS).index(colour) * apart :: len(MARKERS) * apart]
    if not len(places):
        places = points[-1:]
    return {"marker": MARKERS[colour], "markersize": 6, "markevery": places.tolist()}


def marker(values: Any) -> str | None:
    """A dot for a line of one point, which would not be seen; nan is no point."""
    return "o" if np.isfinite(values).sum() == 1 else None


def points(colour: str, values: Any, marked: bool) -> dict[str, Any]:
    """The markers of a line: those of ``cue`` where it is ``marked``, else that of ``marker``."""
    return cue(colour, values) if marked else {"marker": marker(values)}


def banded_line(
    axes: Axes,
    x: Any,
    middle: Any,
    low: Any,
    high: Any,
    colour: str,
    alpha: float = 0.15,
    step: Any = None,
    banded: bool = True,
    **line: Any,
) -> None:
    """A line and, if ``banded``, the band around it. step: ``post`` for steps that hold up to
    the next x.
    """
    axes.plot(x, middle, color=colour, drawstyle=f"steps-{step}" if step else None, **line)
    if banded:  # a band that is not seen would stretch the axis
        axes.fill_between(x, low, high, color=colour, alpha=alpha, step=step, linewidth=0)


def interval_dot(axes: Axes, row: Any, place: float, colour: str) -> None:
    """A dot at ``row.mean`` with its interval, ``row.low`` to ``row.high``, at a height."""
    axes.errorbar(
        row.mean,
        place,
        xerr=np.nan_to_num([[row.mean - row.low], [row.high - row.mean]]),
        color=colour,
        fmt=MARKERS[colour],
        markersize=7,
        linewidth=2,
        capsize=3,
        zorder=4,
    )


def solved_line(axes: Axes, limit: float) -> None:
    """The return that counts as solved."""
    label = f"solved: {limit:g}"
    axes.axhline(limit, color="grey", linewidth=1, linestyle="-.", label=label)


def big_numbers(axis: Axis) -> None:
    """The numbers of an axis as 10k, 2M and so on."""
    axis.set_major_formatter(EngFormatter(sep=""))


def plain_ticks(axis: Axis) -> None:
    """The numbers of a logarithmic axis in plain text, all with an exponent where the least
    would have one.
    """

    def text(value: float, _: int | None) -> str:
        if axis.get_view_interval()[0] > 1e-5:
            return f"{value:g}"
        short = np.format_float_scientific(value, precision=0, trim="-", exp_digits=1)
        return short.replace("e+", "e")

    axis.set_major_formatter(FuncFormatter(text))
    axis.set_minor_formatter(NullFormatter())


def shared_legend(
    figure: Figure, panels: Sequence[Axes], first: Sequence[str] = (), **how: Any
) -> None:
    """One legend for all panels, in the place of the grid that they leave: that of a panel, or a
    row below all.

    first: labels that stand before the others, in this order.
    """
    found = {}
    for axes in panels:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found[label] = line
    labels = dict.fromkeys([*(label for label in first if label in found), *found])
    lines = [found[label] for label in labels]
    grid = panels[0].get_gridspec()
    assert grid is not None
    below = not has_free_place(panels)
    place = figure.add_subplot(grid[-1, :] if below else grid[len(panels)])
    place.set_axis_off()
    columns = 1 if _page.is_narrow or not below else 3
    place.legend(lines, labels, loc="center", ncols=columns, **how)


def describe(figure: Figure, title: str, caption: str) -> None:
    """The title of the whole figure, and what its lines mean below the panels, in as many lines
    as they take; or both in print. Panels do not repeat the labels of their neighbours.
    """
    _leave_out_repeated_labels(figure)
    if not _page.captioned:
        sentences = [title, caption[:1].upper() + caption[1:]]
        figure.set_label(". ".join(filter(None, sentences)))
        say(f"caption: {figure.get_label()}")
        return
    width = figure.get_figwidth()
    if title:
        figure.suptitle(even_lines(title, int(width * 9.5)), fontsize=12)
    figure.supxlabel(even_lines(caption, int(width * 15)), fontsize=9, color="#444444")


def _leave_out_repeated_labels(figure: Figure) -> None:
    places = {}
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        if spec is not None:
            places[id(axes.get_gridspec()), spec.rowspan.start, spec.colspan.start] = axes
    repeated: list[Axis] = []
    for (grid, row, column), axes in places.items():
        left, below = places.get((grid, row, column - 1)), places.get((grid, row + 1, column))
        if left is not None and left.get_ylabel() == axes.get_ylabel():
            repeated.append(axes.yaxis)
        if below is not None and below.get_xlabel() == axes.get_xlabel():
            repeated.append(axes.xaxis)
    for axis in repeated:
        axis.set_label_text("")


def even_lines(text: str, width: int) -> str:
    """As few lines as ``width`` allows, none much shorter than the others; a number stays with
    what it counts.
    """
    text = re.sub(r"(?<=\d) (?=[a-z%])|(?<=from) (?=\d)", "\xa0", text)

    def lines(width: int) -> list[str]:
        return textwrap.wrap(text, width, break_long_words=False)

    count = len(lines(width))
    narrow = width
    while narrow > 1 and len(lines(narrow - 1)) <= count:
        narrow -= 1
    return "\n".join(lines(narrow)).replace("\xa0", " ")


def stem(out: Path) -> Path:
    """OUT without an extension that the user may have given."""
    return out.with_suffix("") if out.suffix in (".png", ".svg", ".pdf", ".csv") else out


def save(figure: Figure, out: Out, table: pd.DataFrame) -> None:
    """Writes the pictures, e.g. OUT.png and OUT.svg, and OUT.csv, and says so."""
    name, numbers = stem(out.path), csv_text(table)
    csv = Path(f"{name}.csv")
    if out.path.suffix == ".csv":  # OUT was forgotten, and this is the first source
        out.check(csv, lambda path: False)
    width, height = figure.get_size_inches()
    if _page.width and width != _page.width:  # without panels
        figure.set_size_inches(_page.width, height * (_page.width / width) ** 0.7)
    metadata = picture_metadata(numbers)
    if figure.get_label():
        metadata["png"]["Description"] = str(figure.get_label())
    files = []
    for form in _page.formats:
        content = rendered(figure, form, metadata[form])
        files.append(File(Path(f"{name}.{form}"), content, owned_picture))
    beside = [Path(f"{name}.{form}") for form in metadata]
    out.write(File(csv, numbers, owned_numbers(*beside)), *files)
    plt.close(figure)
    *first, last = [*(file.path for file in files), csv]
    say(f"wrote {', '.join(map(str, first))} and {last}")


def png(figure: Figure) -> bytes:
    """The bytes of a PNG of the figure, which is closed."""
    content = rendered(figure, "png")
    plt.close(figure)
    return content


def rendered(figure: Figure, form: str, metadata: Mapping[str, str | None] | None = None) -> bytes:
    """The figure as the bytes of a PNG, SVG or PDF."""
    content = io.BytesIO()
    figure.savefig(content, format=form, metadata=metadata)
    return small_png(content.getvalue()) if form == "png" else content.getvalue()


def small_png(content: bytes) -> bytes:
    """A PNG in 128 colours of its own, a quarter as large: figures have few. What it says of
    itself stays.
    """
    picture = Image.open(io.BytesIO(content))
    said = PngInfo()
    for key, text in picture.info.items():
        if isinstance(text, str):
            said.add_text(str(key), text)
    small = io.BytesIO()
    # The default, MEDIANCUT, mixes colours of small parts with others; without k-means, pale shades
    # get a tint.
    palette = picture.convert("RGB").quantize(
        128, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
    )
    palette.save(small, "PNG", optimize=True, pnginfo=said, dpi=picture.info.get("dpi"))
    return small.getvalue()
