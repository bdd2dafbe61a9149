"""One number per run, four ways: final, best, area under the curve, steps to a threshold; a table of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lightning_rl.core.arguments import number
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.functional.statistics import IQM_RUNS, interquartile_mean
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import LABELS, Group, add_bin, add_group_arguments, read_groups
from lightning_rl.lab.figures.runs import AXES
from lightning_rl.lab.tables import add_markdown, interval, markdown, put_rows, save_table

FINAL_SHARE = 0.1
"""What counts as the end of a run: the last tenth of its curve."""

SCORES = ("final", "best", "area")


def run_scores(group: Group, threshold: float | None) -> pd.DataFrame:
    """Columns run, final, best, area, to_threshold, reached; one row per run.

    final: mean of the last tenth of the curve; best: of its bins; area: under the curve, by its length, so in units of return;
    to_threshold: end of the first bin at or above the threshold, nan where there is none (reached 0).
    """
    rows = []
    for seed, values in zip(group.seeds, group.values, strict=True):
        present = np.isfinite(values)
        x, y = group.x[present], values[present]
        if not y.size:
            continue
        above = np.flatnonzero(y >= threshold) if threshold is not None else np.array([], dtype=int)
        rows.append(
            {
                "run": f"seed_{seed}",
                "final": float(y[-max(1, round(FINAL_SHARE * y.size)) :].mean()),
                "best": float(y.max()),
                "area": float(y.mean()),
                "to_threshold": float(x[above[0]]) if above.size else float("nan"),
                "reached": float(bool(above.size)) if threshold is not None else float("nan"),
            }
        )
    return pd.DataFrame(rows)


def group_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows mean, iqm (of ten runs or more), low and high (95 % interval of the mean) over the runs of ``run_scores``.

    to_threshold has a mean only if every run reached it: a mean over those that did would flatter.
    """
    values = runs[list(SCORES)].to_numpy(float)
    mean, low, high = mean_interval(values)
    iqm = interquartile_mean(values, axis=0) if len(values) >= IQM_RUNS else np.full_like(mean, np.nan)
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
            part = pd.concat([runs, group_scores(runs)], ignore_index=True)
            for place, (name, value) in enumerate((("gamename", game), ("group", group.label), ("threshold", limit))):
                part.insert(place, name, np.nan if value is None else value)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def summary_rows(table: pd.DataFrame, axis: str) -> list[tuple[str, ...]]:
    """Header and one row per group, for people: mean and its 95 % interval. Columns without any value are left out."""
    header = ("environment", "group", "seeds", "final", "best", "area under curve", f"{AXES[axis].label} to threshold")
    rows: list[tuple[str, ...]] = [header]
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        at = group.set_index("run")
        seeds = sum(str(run).startswith("seed_") for run in group["run"])
        cells = []
        for score in SCORES:
            mean, low, high = at.loc[["mean", "low", "high"], score]
            cells.append(interval(mean, low, high))
        rows.append((str(game), str(label), str(seeds), *cells, _to_threshold(at)))
    filled = [index for index in range(len(header)) if any(row[index] for row in rows[1:])]
    return [tuple(row[index] for index in filled) for row in rows]


def _to_threshold(at: pd.DataFrame) -> str:
    limit, share = float(at["threshold"].iloc[0]), float(at.loc["mean", "reached"])
    if np.isnan(limit):
        return ""
    when = float(at.loc["mean", "to_threshold"])
    exact = ",.0f" if when >= 100 else ".3g"
    return f"{when:{exact}} to {limit:g}" if not np.isnan(when) else f"{share:.0%} of seeds reach {limit:g}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``scores``."""
    style.add_sources(parser, "written as OUT-scores.csv; OUT.csv with the ending stays as it is")
    add_group_arguments(parser)
    add_bin(parser)
    parser.add_argument("--threshold", type=number, metavar="RETURN", help="default: what solves the environment, if known")
    add_markdown(parser)


def draw(arguments: argparse.Namespace) -> None:
    """Prints the table, and writes OUT-scores.csv without ``--markdown``."""
    games, width = read_groups(arguments)
    table = score_table(games, arguments.threshold)
    rows: Sequence[Sequence[str]] = summary_rows(table, arguments.x)
    if arguments.markdown:
        print(markdown(rows))
        return
    path = save_table(arguments.out, table, "scores")
    title = arguments.title or f"{LABELS.get(arguments.tag, arguments.tag)}: mean over seeds and its 95 % interval"
    put_rows(rows, title, f"bins of {width:,.6g}; final: mean of the last tenth of a run")
    print(f"wrote {path}")
