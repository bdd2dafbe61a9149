"""One number per run, four ways: final, best, area under the curve, steps to a threshold; a table of them, and their profile."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from rich.table import Table

from lightning_rl.core.arguments import number
from lightning_rl.core.console import put
from lightning_rl.envs.spec import ENV_SPECS
from lightning_rl.functional.bootstrap import above, bootstrap_interval, iqm, mean
from lightning_rl.lab.figures import style
from lightning_rl.lab.figures.groups import LABELS, Group, add_group_arguments, read_groups
from lightning_rl.lab.figures.runs import AXES

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
    """Rows mean, iqm, low and high (95 % bootstrap of the mean) over the runs of ``run_scores``.

    to_threshold has a mean only if every run reached it: a mean over those that did would flatter.
    """
    values = runs[list(SCORES)].to_numpy(float)
    low, high = bootstrap_interval([values], mean)
    rows = {"mean": mean(values, axis=0), "iqm": iqm(values, axis=0), "low": low, "high": high}
    table = pd.DataFrame([{"run": name, **dict(zip(SCORES, row, strict=True))} for name, row in rows.items()])
    every = runs["to_threshold"].notna().all()
    table["to_threshold"] = [runs["to_threshold"].mean() if every else np.nan, *[np.nan] * 3]
    table["reached"] = [runs["reached"].mean(), *[np.nan] * 3]
    return table


def threshold_of(game: str, asked: float | None) -> float | None:
    """The threshold that was asked for, else the environment's solved return."""
    return asked if asked is not None or game not in ENV_SPECS else ENV_SPECS[game].solved_return


def score_table(games: dict[str, list[Group]], threshold: float | None) -> pd.DataFrame:
    """All runs and groups: gamename, group, threshold and the columns of ``run_scores``."""
    parts = []
    for game, groups in games.items():
        limit = threshold_of(game, threshold)
        for group in groups:
            runs = run_scores(group, limit)
            both = pd.concat([runs, group_scores(runs)], ignore_index=True)
            parts.append(both.assign(gamename=game, group=group.label, threshold=np.nan if limit is None else limit))
    first = ["gamename", "group", "threshold"]
    table = pd.concat(parts, ignore_index=True)
    return table[[*first, *(name for name in table if name not in first)]]


def summary_rows(table: pd.DataFrame, axis: str) -> list[tuple[str, ...]]:
    """Header and one row per group, for people: mean and its 95 % interval."""
    rows: list[tuple[str, ...]] = [
        ("environment", "group", "seeds", "final", "best", "area under curve", f"{AXES[axis].label} to threshold")
    ]
    for (game, label), own in table.groupby(["gamename", "group"], sort=False):
        at = own.set_index("run")
        seeds = sum(str(run).startswith("seed_") for run in own["run"])
        cells = (interval(*(float(at.loc[name, score]) for name in ("mean", "low", "high"))) for score in SCORES)
        rows.append((str(game), str(label), str(seeds), *cells, _to_threshold(at)))
    return _without_empty_columns(rows)


def _without_empty_columns(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    kept = [index for index in range(len(rows[0])) if any(row[index] for row in rows[1:])]
    return [tuple(row[index] for index in kept) for row in rows]


def interval(value: float, low: float, high: float) -> str:
    """A mean and its interval; without the interval where there is none."""
    return f"{value:.1f}" if np.isnan(low) else f"{value:.1f} [{low:.1f}, {high:.1f}]"


def _to_threshold(at: pd.DataFrame) -> str:
    limit, share = float(at["threshold"].iloc[0]), float(at.loc["mean", "reached"])
    if np.isnan(limit):
        return ""
    when = float(at.loc["mean", "to_threshold"])
    exact = ",.0f" if when >= 100 else ".3g"
    return f"{when:{exact}} to {limit:g}" if not np.isnan(when) else f"{share:.0%} of seeds reach {limit:g}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table for a README."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``scores``."""
    style.add_sources(parser, "written as OUT-scores.csv; OUT.csv with the ending stays as it is")
    add_group_arguments(parser)
    add_threshold(parser)
    parser.add_argument("--markdown", action="store_true", help="print a table for a README instead of writing OUT")


def add_threshold(parser: argparse.ArgumentParser) -> None:
    """``--threshold``."""
    parser.add_argument("--threshold", type=number, metavar="RETURN", help="default: what solves the environment, if known")


def draw(arguments: argparse.Namespace) -> None:
    """The table that the arguments ask for."""
    games, width = read_groups(arguments)
    table = score_table(games, arguments.threshold)
    rows = summary_rows(table, arguments.x)
    if arguments.markdown:
        print(markdown(rows))
        return
    path = style.save_table(arguments.out, table, "scores")
    title = arguments.title or f"{LABELS.get(arguments.tag, arguments.tag)}: mean over seeds and its 95 % interval"
    shown = Table(*rows[0], title=title, caption=f"bins of {width:,.6g}; final: mean of the last tenth of a run")
    for row in rows[1:]:
        shown.add_row(*row)
    put(shown)
    print(f"wrote {path}")


def profiles(game: str, groups: Sequence[Group], score: str) -> pd.DataFrame:
    """gamename, group, threshold, share of runs above it, and the 95 % interval of that share (low, high)."""
    scores = {group.label: run_scores(group, None)[score].to_numpy(float) for group in groups}
    everything = np.concatenate(list(scores.values()))
    margin = 0.05 * (np.ptp(everything) or 1.0)
    thresholds = np.linspace(everything.min() - margin, everything.max() + margin, 101)
    parts = []
    for label, values in scores.items():
        indicators = above(values, thresholds)
        low, high = bootstrap_interval([indicators], mean)
        columns = {"threshold": thresholds, "share": mean(indicators, axis=0), "low": low, "high": high}
        parts.append(pd.DataFrame({"gamename": game, "group": label, **columns}))
    return pd.concat(parts, ignore_index=True)


def draw_profile(arguments: argparse.Namespace) -> None:
    """The performance profile: for every score, the share of runs above it."""
    games, _ = read_groups(arguments)
    figure, panels = style.panels(len(games))
    parts = []
    for axes, (game, groups) in zip(panels, games.items(), strict=True):
        parts.append(profiles(game, groups, arguments.score))
        for index, group in enumerate(groups):
            own = parts[-1][parts[-1]["group"] == group.label]
            label = f"{group.label}, {style.seeds_text([len(group.seeds)])}"
            axes.step(own["threshold"], own["share"], where="post", color=style.colour(index), linewidth=1.8, label=label)
            band = (own["threshold"], own["low"], own["high"])
            axes.fill_between(*band, step="post", color=style.colour(index), alpha=0.18, linewidth=0)
        xlabel = f"{arguments.score}: {LABELS.get(arguments.tag, arguments.tag)}"
        axes.set(xlabel=xlabel, ylabel="share of runs above", ylim=(-0.03, 1.03))
        axes.set_title(game if len(games) > 1 or not arguments.title else "")
        axes.legend(loc="best")
    style.heading(figure, arguments.title)
    counts = [len(group.seeds) for groups in games.values() for group in groups]
    style.caption(figure, f"{style.seeds_text(counts)} per group; band: 95 % bootstrap interval over seeds.")
    style.save(figure, arguments.out, pd.concat(parts, ignore_index=True))


def add_profile_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``profile``."""
    style.add_sources(parser)
    add_group_arguments(parser)
    parser.add_argument("--score", choices=SCORES, default="final", help="which number of a run (default final)")
