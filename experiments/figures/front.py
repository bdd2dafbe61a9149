"""Pareto fronts side by side: what was commanded, and what each seed obtained."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.csv_files import read_csv
from lightning_rl.lab.figures.front import draw_pair
from lightning_rl.lab.figures.runs import split_label

_COMMANDED = "commanded_"


def objectives(path: Path, table: pd.DataFrame) -> tuple[str, str]:
    """The names of both objectives of a sweep; UserError where there are not two."""
    names = [name.removeprefix(_COMMANDED) for name in table if name.startswith(_COMMANDED)]
    found = [name for name in names if name in table]  # not the horizon
    if len(found) != 2:
        raise UserError(
            f"'{path}' has {len(found)} objectives with what was commanded of each, expected 2; "
            "give the sweep.csv of such a policy, or the CSV of a claim of one"
        )
    return found[0], found[1]


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv; a panel for each source."""
    figure, panels = style.panels(len(given.sources), (6.4, 4.8))
    tables = []
    for axes, source in zip(panels, given.sources, strict=True):
        name, label = split_label(source)
        table = read_csv(Path(name))
        draw_pair(axes, table, *objectives(Path(name), table))
        axes.set_title(label or Path(name).stem)
        tables.append(table.assign(source=label or name))
    panels[0].legend(loc="best")
    style.describe(
        figure, given.title, "of each command that a seed found, the mean of what it obtained"
    )
    style.save(figure, given.out, pd.concat(tables, ignore_index=True))
