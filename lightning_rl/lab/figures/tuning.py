"""A hyper-parameter search: every trial over its budget, and the score against each searched
key.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from lightning_rl.core.errors import UserError
from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import LABELS
from lightning_rl.lab.tables import counted
from lightning_rl.lab.tuning.results import Trial, plain, ranked, read_search, read_trials
from lightning_rl.run.callbacks import BUDGETS


def draw_search(out: Out, order: Sequence[Trial], search: Mapping[str, Any]) -> None:
    """OUT.png, OUT.svg and OUT.csv of trials, best first; search: the search's ``search.yaml``."""
    tune = search["tune"]
    (budget,) = tune["budget"]
    metric = LABELS.get(tune["metric"], tune["metric"])
    scored = [trial for trial in order if trial.reports]
    if not scored:
        raise UserError("no trial has a score yet; wait for the first report of one")
    # A key may be none of another trial's method.
    keys = list(dict.fromkeys(key for trial in scored for key in trial.settings))
    figure, (over_budget, *others) = style.panels(1 + len(keys), (5.6, 4.2), legend=1)
    best: dict[str, Any] = {
        "color": style.colour(1),
        "linewidth": 2,
        "label": f"best ({scored[0].name})",
    }
    other: dict[str, Any] = {
        "color": style.colour(0),
        "linewidth": 0.9,
        "alpha": 0.35,
        "label": "another trial",
    }
    for trial in reversed(scored):
        look = best if trial is scored[0] else other
        over_budget.plot(*zip(*trial.reports, strict=True), marker="o", markersize=3, **look)
    over_budget.set_title(f"{len(scored)} trials ({tune['algorithm']})")
    over_budget.set(xlabel=BUDGETS[budget], ylabel=metric)
    over_budget.locator_params(axis="x", integer=True)
    style.big_numbers(over_budget.xaxis)
    for axes, key in zip(others, keys, strict=True):
        _scatter(axes, key, [trial for trial in scored if key in trial.settings])
        axes.set(title=key, ylabel=metric)
    style.shared_legend(figure, [over_budget, *others], first=[best["label"]])
    failed = len(order) - len(scored)
    better = "higher" if tune["mode"] == "max" else "lower"
    seeds = counted([tune["seeds"]])
    text = f"Mean over {seeds} per trial, {better} is better. Large points came furthest."
    if failed:
        text += f" {failed} trials without a score are left out."
    style.describe(figure, f"{search['implementation']} on {search['gamename']}", text)
    rows = []
    for rank, trial in enumerate(scored, 1):
        settings = {key: plain(value) for key, value in trial.settings.items()}
        for steps, score in trial.reports:
            row = {"trial": trial.name, "rank": rank, budget: steps, "score": score}
            rows.append(row | settings)
    style.save(figure, out, pd.DataFrame(rows))


def _scatter(axes: Axes, key: str, scored: Sequence[Trial]) -> None:
    """Score of the trials against one key: numbers as such, anything else as categories."""
    values = [trial.settings[key] for trial in scored]
    names = sorted({plain(value) for value in values})
    numeric = all(type(value) in (int, float) for value in values)
    x = np.array(values if numeric else [names.index(plain(value)) for value in values])
    scores = [trial.score for trial in scored]
    furthest = max(len(trial.reports) for trial in scored)
    size = [36 if len(trial.reports) == furthest else 12 for trial in scored]
    axes.scatter(x, scores, s=size, color=style.colour(0), alpha=0.7)
    ring = axes.scatter(x[:1], scores[:1], s=60, linewidths=1.8)
    ring.set(facecolors="none", edgecolors=style.colour(1))
    if not numeric:
        slanted: dict[str, Any] = {
            "rotation": 30,
            "ha": "right",
            "rotation_mode": "anchor",
            "fontsize": 8,
        }
        axes.set_xticks(range(len(names)), names, **slanted)
    elif x.min() > 0 and x.max() / x.min() > 20:
        axes.set_xscale("log")
        few_decades = x.max() / x.min() < 200
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few_decades else (1,)))
        style.plain_ticks(axes.xaxis)
    else:
        axes.locator_params(axis="x", nbins=4)


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    search = read_search(given.folder)
    draw_search(given.out, ranked(read_trials(given.folder), search["tune"]["mode"]), search)
