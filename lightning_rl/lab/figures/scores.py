"""One number per run, four ways: final, best, area under the curve, steps to a threshold; a table
of them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lightning_rl.core.lines import say
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.functional.statistics import IQM_RUNS, interquartile_mean
from lightning_rl.lab.figures.groups import LABELS, Group, all_groups, read_groups, units_text
from lightning_rl.lab.figures.registry import SCORES
from lightning_rl.lab.tables import Rows, interval, markdown, put_rows, save_table

FAR = 0.9  # of the longest run's length; shorter ones are pointed out
FINAL_SHARE = 0.1
"""What counts as the end of a run: the last tenth of its curve."""


def run_scores(group: Group, threshold: float | None) -> pd.DataFrame:
    """Columns run, final, best, area, to_threshold, reached; one row per run.

    final: mean of the last tenth of the curve; best: of its bins; area: under the curve, by its
    length, so in units of return;
    to_threshold: end of the first bin at or above the threshold, nan where there is none (reached
    0).
    """
    limit = np.inf if threshold is None else threshold
    rows = []
    for seed, values in zip(group.seeds, group.values, strict=True):
        present = np.isfinite(values)
        x, y = group.x[present], values[present]
        if not y.size:
            continue
        last = max(1, round(FINAL_SHARE * y.size))
        reached = x[y >= limit]
        row = {"run": f"seed_{seed}", "final": y[-last:].mean(), "best": y.max(), "area": y.mean()}
        row["to_threshold"] = reached[0] if reached.size else np.nan
        row["reached"] = np.nan if threshold is None else float(reached.size > 0)
        rows.append(row)
    return pd.DataFrame(rows)


def group_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows mean, iqm (of ten runs or more), low and high (95 % interval of the mean) over the runs
    of ``run_scores``.

    to_threshold has a mean only if every run reached it: a mean over those that did would flatter.
    """
    values = runs[list(SCORES)].to_numpy(float)
    mean, low, high = mean_interval(values)
    iqm = np.full_like(mean, np.nan)
    if len(values) >= IQM_RUNS:
        iqm = interquartile_mean(values, axis=0)
    table = pd.DataFrame([mean, iqm, low, high], columns=list(SCORES))
    table.insert(0, "run", ["mean", "iqm", "low", "high"])
    table.loc[0, "to_threshold"] = runs["to_threshold"].mean(skipna=False)
    table.loc[0, "reached"] = runs["reached"].mean()
    return table


def threshold_of(game: str, asked: float | None) -> float | None:
    """The threshold that was asked for, else the environment's solved return."""
    from lightning_rl.envs.spec import solved_return  # and Gymnasium, which nothing else here needs

    return solved_return(game) if asked is None else asked


def score_table(games: dict[str, list[Group]], threshold: float | None) -> pd.DataFrame:
    """All runs and groups: gamename, group, threshold and the columns of ``run_scores``."""
    parts = []
    for game, groups in games.items():
        limit = threshold_of(game, threshold)
        for group in groups:
            runs = run_scores(group, limit)
            part = pd.concat([runs, group_scores(runs)])
            part.insert(0, "gamename", game)
            part.insert(1, "group", group.label)
            part.insert(2, "threshold", np.nan if limit is None else limit)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def summary_rows(table: pd.DataFrame, unit: str) -> Rows:
    """Header and one row per group, for people: mean and its 95 % interval. Columns without any
    value are left out.

    unit: what the x axis counts.
    """
    scores = ("final", "best", "area under curve")
    rows: Rows = [("environment", "group", "seeds", *scores, f"{unit} to threshold")]
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        at = group.set_index("run")
        seeds = str(at.index.str.startswith("seed_").sum())
        cells = (interval(*at.loc[["mean", "low", "high"], score]) for score in SCORES)
        rows.append((str(game), str(label), seeds, *cells, _to_threshold(at)))
    filled = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return list(zip(*filled, strict=True))


def _to_threshold(at: pd.DataFrame) -> str:
    mean = at.loc["mean"]
    limit, when = at["threshold"].iloc[0], mean["to_threshold"]
    if np.isnan(limit):
        return ""
    if np.isnan(when):
        return f"{mean['reached']:.0%} of seeds reach {limit:g}"
    exact = ",.0f" if when >= 100 else ".3g"
    return f"{when:{exact}} to {limit:g}"


def show_scores(given: Namespace) -> None:
    """Prints the table, and writes OUT-scores.csv without ``--markdown``."""
    games, width = read_groups(given)
    every = all_groups(games)
    unit = units_text(group.unit for group in every)
    table = score_table(games, given.threshold)
    what = LABELS.get(given.tag, given.tag)
    title = given.title or f"{what}: mean over seeds and its 95 % interval"
    caption = f"bins of {width:,.6g}; final: mean of the last tenth of a run"
    ends = [group.x[np.isfinite(run)][-1] for group in every for run in group.values]
    if min(ends) < FAR * max(ends):
        lengths = f"{min(ends):,.6g} to {max(ends):,.6g} {unit}"
        caption += f"; runs have {lengths}, each counts as far as it goes"
    show_rows(given, "scores", table, summary_rows(table, unit), title, caption)


def show_rows(
    given: Namespace,
    name: str,
    table: pd.DataFrame,
    rows: Sequence[Sequence[str]],
    title: str,
    caption: str,
) -> None:
    """Prints ``rows``, and writes ``table`` as OUT-name.csv, or prints them as Markdown alone."""
    if given.markdown:
        say(*markdown(rows).split("\n"))
    else:
        path = save_table(given.out, table, name)
        put_rows(rows, title, caption, end=f"wrote {path}")
