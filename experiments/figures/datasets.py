"""Synthetic datasets: a panel for each, a row for each pair of a state and the action to take."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.protocols.transitions import component_names
from lightning_rl.core.errors import UserError
from lightning_rl.envs.synthetic_dataset import DatasetProxy
from lightning_rl.lab.figures import style
from lightning_rl.lab.protocols.models import Model, find_models


def pair_table(model: Model) -> pd.DataFrame:
    """One row for each pair: the components of its state, by name, and of its action."""
    assert isinstance(model.proxy, DatasetProxy)
    obs, action = (values[0] for values in model.proxy.net.split(model.params.unsqueeze(0)))
    table = pd.DataFrame(obs.numpy(), columns=component_names(model.proxy.spec))
    if action.ndim == 1 or action.shape[1] == 1:
        return table.assign(action=action.flatten().numpy())
    return table.assign(**{f"action {k + 1}": column for k, column in enumerate(action.T.numpy())})


def draw_pairs(axes: Axes, table: pd.DataFrame, title: str, named: bool) -> None:
    """A cell for each number, its colour the share of the column's largest; named: its columns."""
    values = table.to_numpy(float)
    largest = np.abs(values).max(axis=0)
    shares = values / np.where(largest > 0, largest, 1)
    axes.imshow(shares, cmap="RdBu_r", vmin=-1.6, vmax=1.6, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = f"{value:.3g}" if abs(value) >= 0.1 else f"{value:.1g}"  # as wide as its cell
        shade = "white" if abs(shares[row, column]) > 0.8 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=shade)
    names = table.columns if named else []
    axes.set_xticks(range(len(table.columns)), names, rotation=30, ha="right", fontsize=9)
    axes.set_yticks(range(len(table)), [str(number + 1) for number in range(len(table))])
    axes.set(ylabel="pair", title=title)
    axes.grid(False)


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    models = find_models(given.sources, given.gamename)
    for model in models:
        if not isinstance(model.proxy, DatasetProxy):
            raise UserError(
                f"'{model.name}' is no synthetic dataset, it has no pairs; name runs of SD, or "
                "their files"
            )
    tables = {model.name: pair_table(model) for model in models}
    scale = ""
    if models[0].proxy.spec.continuous:
        scale = " Actions: from -1, the lowest, to 1, the highest."
    alone = len(tables) == 1  # it alone makes room for title, names and caption
    height = (2.3 if alone else 0.6) + 0.25 * max(len(table) for table in tables.values())
    figure, panels = style.panels(len(tables), (7.2, height), columns=1)
    columns = {name: list(table.columns) for name, table in tables.items()}
    lowest = list(tables)[-1]  # names below others would leave gaps
    for axes, (name, table) in zip(panels, tables.items(), strict=True):
        draw_pairs(axes, table, name, name == lowest or columns[name] != columns[lowest])
    gamename = models[0].proxy.gamename
    names = "" if alone else " Names below the last row are those of all columns above."
    style.describe(
        figure,
        given.title or f"All that a policy is taught of {gamename}",
        f"Each row: a state, in the units of the task, and the action to take there.{scale} "
        f"Colours are relative to a column's largest.{names}",
    )
    rows = []
    for name, table in tables.items():
        for pair, row in enumerate(table.to_dict("records"), 1):
            for component, value in row.items():
                rows.append({"proxy": name, "pair": pair, "component": component, "value": value})
    style.save(figure, given.out, pd.DataFrame(rows))
