"""A real roll-out, the imagined one for the same actions, and the error of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from torch import Tensor

from lightning_rl.core.outputs import Out
from lightning_rl.core.types import Array
from lightning_rl.lab.figures import style

_COLUMNS = 11  # a roll-out of ten steps and its start
_ERRORS = {
    "error of a bit": ("bit_error", "unchanged_bit_error"),
    "error of reward and termination": ("reward_error", "termination_error"),
}


def draw_imagination(
    out: Out,
    report: Mapping[str, Any],
    draw: Callable[[Tensor], Array] | None,
    seen: Sequence[Tensor],
    dreamt: Sequence[Tensor],
) -> None:
    """``OUT.png``, ``OUT.svg`` and ``OUT.csv``. draw: from an observation ``[O]`` to a picture;
    None: a strip of its bits.
    """
    figure = plt.figure(figsize=(style.WIDEST, 5.8))
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.2)).flat
    grid = above.add_gridspec(2, _COLUMNS)
    for k, (real, imagined) in enumerate(zip(seen[:_COLUMNS], dreamt, strict=False)):
        upper, lower = (above.add_subplot(grid[row, k]) for row in (0, 1))
        for axes, obs in ((upper, real), (lower, imagined)):
            if draw is None:
                axes.imshow(obs.unsqueeze(0), vmin=0, vmax=1, aspect="auto")
            else:
                axes.imshow(draw(obs), vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
        upper.set_title(f"step {k}" if k else "start")
        error = float((imagined - real).abs().mean())
        lower.set_xlabel(f"{error:.3f}", fontsize=8)
        if k == 0:
            upper.set_ylabel("real")
            lower.set_ylabel("imagined")
    table = pd.DataFrame(report["rows"])
    for axes, (label, names) in zip(below.subplots(1, 2), _ERRORS.items(), strict=True):
        for index, name in enumerate(names):
            words = name.replace("_", " ")
            colour = style.colour(index)
            axes.plot(table["step"], table[name], marker="o", color=colour, label=words)
        axes.set(xlabel="imagined step", ylabel=label, ylim=(0, None))
        axes.legend()
    style.describe(
        figure,
        f"{report['implementation']} on {report['gamename']} after {report['env_steps']:,} steps",
        "Above: one roll-out; below each imagined picture the mean absolute error of its bits. "
        f"Curves: mean absolute errors of {report['episodes']} roll-outs; unchanged: of a model in "
        "which nothing happens.",
    )
    style.save(figure, out, table)
