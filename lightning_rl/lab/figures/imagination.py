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
    shown = min(len(seen), _COLUMNS)
    figure = plt.figure(figsize=(style.WIDEST, 5.8))
    above, below = list(figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.2)).flat)
    grid = above.add_gridspec(2, _COLUMNS)
    for row, (name, frames) in enumerate((("real", seen), ("imagined", dreamt))):
        for k, obs in enumerate(frames[:shown]):
            axes = above.add_subplot(grid[row, k])
            axes.imshow(
                draw(obs) if draw else obs.unsqueeze(0),
                vmin=0,
                vmax=1,
                aspect=None if draw else "auto",
            )
            axes.set(
                xticks=[], yticks=[], title=("start" if k == 0 else f"step {k}") if row == 0 else ""
            )
            axes.set_ylabel(name if k == 0 else "")
            axes.grid(visible=False)
            if row == 1:
                axes.set_xlabel(f"{float((obs - seen[k]).abs().mean()):.3f}", fontsize=8)
    table = pd.DataFrame(report["rows"])
    halves = (
        (("bit_error", "unchanged_bit_error"), "error of a bit"),
        (("reward_error", "termination_error"), "error of reward and termination"),
    )
    for axes, (names, label) in zip(below.subplots(1, 2), halves, strict=True):
        for index, name in enumerate(names):
            axes.plot(
                table["step"],
                table[name],
                marker="o",
                color=style.colour(index),
                label=name.replace("_", " "),
            )
        axes.set(xlabel="imagined step", ylabel=label, ylim=(0, None))
        axes.legend()
    text = "Above: one roll-out; below each imagined picture the mean absolute error of its bits. "
    text += (
        f"Curves: mean absolute errors of {report['episodes']} roll-outs; unchanged: of a "
        "model in which nothing happens."
    )
    style.describe(
        figure,
        f"{report['implementation']} on {report['gamename']} after {report['env_steps']:,} steps",
        text,
    )
    style.save(figure, out, table)
