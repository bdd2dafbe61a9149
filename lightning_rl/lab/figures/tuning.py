"""A hyper-parameter search: every trial over its budget, and the score against each searched
key.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from lightning_rl.core.outputs import Out
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import LABELS
from lightning_rl.lab.tuning.results import Trial, plain, ranked, read_search, read_trials
from lightning_rl.run.callbacks import BUDGETS


def draw_search(out: Out, order: Sequence[Trial], search: Mapping[str, Any]) -> None:
    """OUT.png, OUT.svg and OUT.csv of trials, best first; search: the search's ``search.yaml``."""
    tune = search["tune"]
    (budget,) = tune["budget"]
    metric = LABELS.get(tune["metric"], tune["metric"])
    scored = [trial for trial in order if trial.reports]
    keys = list(
        dict.fromkeys(key for trial in scored for key in trial.settings)
    )  # one may be no key of another's method
    figure, panels = style.panels(1 + len(keys), (5.6, 4.2))
    for trial in reversed(scored):
        steps, score = zip(*trial.reports, strict=True)
        best = trial is scored[0]
        panels[0].plot(
            steps,
            score,
            color=style.colour(1 if best else 0),
            alpha=1 if best else 0.35,
            marker="o",
            markersize=3,
            linewidth=2 if best else 0.9,
            label=f"best ({trial.name})" if best else None,
        )
    panels[0].set(
        xlabel=BUDGETS[budget], ylabel=metric, title=f"{len(scored)} trials ({tune['algorithm']})"
    )
    panels[0].legend()
    panels[0].locator_params(axis="x", integer=True)
    style.big_numbers(panels[0].xaxis)
    for axes, key in zip(panels[1:], keys, strict=True):
        _scatter(axes, key, scored)
        axes.set_ylabel(metric)
    failed = len(order) - len(scored)
    better = "higher" if tune["mode"] == "max" else "lower"
    text = (
        f"Mean over {style.counted([tune['seeds']])} per trial, {better} is better. Large "
        "points came furthest."
    )
    text += f" {failed} trials without a score are left out." if failed else ""
    style.describe(figure, f"{search['implementation']} on {search['gamename']}", text)
    rows = [
        {
            "trial": trial.name,
            "rank": rank,
            budget: steps,
            "score": score,
            **{k: plain(v) for k, v in trial.settings.items()},
        }
        for rank, trial in enumerate(scored, 1)
        for steps, score in trial.reports
    ]
    style.save(figure, out, pd.DataFrame(rows))


def _scatter(axes: Axes, key: str, scored: Sequence[Trial]) -> None:
    """Score against one key, of the trials that have it: numbers as such, anything else as
    categories.
    """
    scored = [trial for trial in scored if key in trial.settings]
    values = [trial.settings[key] for trial in scored]
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    names = sorted({plain(value) for value in values})
    x = (
        np.array(values, dtype=float)
        if numeric
        else np.array([names.index(plain(value)) for value in values])
    )
    furthest = max(len(trial.reports) for trial in scored)
    size = [36 if len(trial.reports) == furthest else 12 for trial in scored]
    axes.scatter(x, [trial.score for trial in scored], s=size, color=style.colour(0), alpha=0.7)
    axes.scatter(
        x[:1],
        [scored[0].score],
        s=60,
        facecolors="none",
        edgecolors=style.colour(1),
        linewidths=1.8,
    )
    axes.set_title(key)
    if not numeric:
        axes.set_xticks(
            range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor", fontsize=8
        )
    elif x.min() > 0 and x.max() / x.min() > 20:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(
            LogLocator(subs=(1, 2, 5) if x.max() / x.min() < 200 else (1,))
        )
        style.plain_ticks(axes.xaxis)
    else:
        axes.locator_params(axis="x", nbins=4)


def draw(given: argparse.Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    search = read_search(given.folder)
    draw_search(given.out, ranked(read_trials(given.folder), search["tune"]["mode"]), search)
