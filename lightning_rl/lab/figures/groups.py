"""Runs that differ in their seed only, on one grid of bins: what means, intervals and tables are
made of.
"""

from __future__ import annotations

import itertools
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lightning_rl.core.errors import UserError
from lightning_rl.functional.intervals import mean_interval
from lightning_rl.functional.statistics import IQM_RUNS, interquartile_mean
from lightning_rl.lab.figures.registry import AXES
from lightning_rl.lab.figures.runs import read_table, require_key, require_one_run_per_seed
from lightning_rl.lab.scalars import Floats, Skip, print_skipped
from lightning_rl.lab.tables import counted

LABELS = {
    "rollout/return_mean": "training return, actions sampled",
    "eval/return_mean": "evaluation return, actions sampled",
    "eval_greedy/return_mean": "evaluation return, greedy actions",
    "rollout/return_running_mean": "return, mean of the last 100 episodes",
    "rollout/length_mean": "training episode length (steps)",
    "es/best": "fitness of the proxy that is kept",
}
"""What well-known scalars are called on an axis, with units where they are not sums of rewards."""

BINS, FEWEST = 100, 10
"""Bins per figure, about, where ``--bin`` does not say; and of its shortest run, so that the
last tenth of it is a bin.
"""

MOST_BINS = 100_000
"""More than any picture shows, and than memory holds of many runs."""


@dataclass(frozen=True)
class Group:
    """Runs of one environment and method. x ``[K]`` bins' upper edges, of the last one the end of
    the runs; values ``[n, K]``, nan where a run has no data; unit: what x counts.
    """

    label: str
    seeds: list[str]
    x: Floats
    values: Floats
    unit: str = AXES["env_steps"]

    @property
    def name(self) -> str:
        """The label, and how many seeds it has."""
        return f"{self.label}, {counted([len(self.seeds)])}"

    def statistics(self) -> dict[str, tuple[Floats, Floats]]:
        """(x, value) of the mean, its 95 % interval and, of ten runs or more, the interquartile
        mean.

        They end where the shortest run ends: never a mean over fewer seeds.
        """
        whole = np.isfinite(self.values).all(axis=0)
        x, values = self.x[whole], self.values[:, whole]
        if not x.size:
            return {}
        mean, low, high = mean_interval(values)
        found = {"mean": (x, mean), "low": (x, low), "high": (x, high)}
        if len(values) >= IQM_RUNS:
            found["iqm"] = (x, interquartile_mean(values, axis=0))
        return found


def binned(x: Floats, value: Floats, edges: Floats) -> Floats:
    """Means of the values in bins that end at ``edges`` ``[K]``.

    An empty bin between full ones lies on the line between its neighbours; before the first and
    after the last it is nan.
    """
    bins = np.searchsorted(edges, x - 1e-9 * edges[0])
    means = pd.Series(value).groupby(bins).mean().reindex(range(len(edges)))
    return means.interpolate(limit_area="inside").to_numpy()


def nice_width(end: float, shortest: float) -> float:
    """1, 2 or 5 times a power of ten: about ``BINS`` bins up to ``end``, or more, so that the
    shortest run has ``FEWEST``.

    At most a hundred times as many: beside a run of millions of steps, one of a few steps has a
    single bin.
    """
    rough = max(min(end / BINS, shortest / FEWEST), end / BINS / 100)
    power = 10.0 ** np.floor(np.log10(rough))
    return float(power * min((1, 2, 5, 10), key=lambda factor: abs(np.log(factor * power / rough))))


def label_groups(table: pd.DataFrame, keys: Sequence[str] | None) -> pd.DataFrame:
    """``table`` with a column ``group``: the values of ``keys``, where a source has any.

    None: the method, and with it the experiment's name where one method comes from several
    experiments.
    """
    if keys is None:
        several = table.groupby(["gamename", "implementation"])["exp_name"].nunique().max() > 1
        keys = ["implementation", "exp_name"] if several else ["implementation"]
    not_keys = ("run", "seed", "value", "config", "unit", *AXES)
    parts = []
    for key in keys:
        require_key(key, [name for name in table if name not in not_keys])
        text = table[key].astype(str)
        plain = key in ("implementation", "exp_name", "gamename", "preset")
        parts.append(text if plain else f"{key} " + text)
    labels = parts[0].str.cat(parts[1:], sep=", ").str.strip(", ")
    return table.assign(group=labels.replace("", "runs"))


def make_groups(
    table: pd.DataFrame, axis: str, width: float | None
) -> tuple[dict[str, list[Group]], float]:
    """The groups of each environment (as labelled in ``group``), and the bins' width."""
    ends = table.groupby("run")[axis].max().clip(lower=1e-6)
    end = float(table[axis].max())
    width = width or nice_width(float(ends.max()), float(ends.min()))
    # Less than half a bin at the end goes with the one before: a spike would be seen.
    bins = end / width + 0.5
    if bins >= MOST_BINS + 1:
        raise UserError(
            f"--bin {width:g}: {bins:,.0f} bins up to {end:,.9g}, more than {MOST_BINS:,}; use "
            f"{end / MOST_BINS:.9g} or more"
        )
    edges: Floats = width * np.arange(1.0, max(1, int(bins)) + 1)
    edges[-1] = end or width
    games: dict[str, list[Group]] = {}
    for (game, label), group in table.groupby(["gamename", "group"], sort=False):
        seeds = []
        values = []
        for _, run in group.groupby("run", sort=False):
            seeds.append(str(run["seed"].iloc[0]))
            values.append(binned(run[axis].to_numpy(), run["value"].to_numpy(), edges))
        found = Group(str(label), seeds, edges, np.array(values), units_text(group["unit"]))
        games.setdefault(str(game), []).append(found)
    return games, width


def units_text(units: Iterable[str]) -> str:
    """What an axis of several counts."""
    return " or ".join(dict.fromkeys(units))


def all_groups(games: Mapping[str, Sequence[Group]]) -> list[Group]:
    """The groups of all environments."""
    return list(itertools.chain(*games.values()))


def in_common(groups: Sequence[Group]) -> list[Group]:
    """The groups in the bins that every run of all of them has; UserError where there are none."""
    whole = np.logical_and.reduce([np.isfinite(group.values).all(axis=0) for group in groups])
    if not whole.any():
        raise UserError("the runs have no part of the axis in common; compare runs that overlap")
    return [replace(group, x=group.x[whole], values=group.values[:, whole]) for group in groups]


def labelled_runs(
    sources: Sequence[str],
    tag: str,
    axis: str = "env_steps",
    keys: Sequence[str] | None = None,
    skip: Skip = print_skipped,
) -> pd.DataFrame:
    """The table of the runs in the sources with a column ``group``; UserError where a group has
    two runs of one seed.
    """
    table = label_groups(read_table(sources, tag, axis, keys or (), skip), keys)
    require_one_run_per_seed(table)
    return table


def read_runs(given: Namespace) -> pd.DataFrame:
    """``labelled_runs`` as the arguments of a figure say."""
    return labelled_runs(given.sources, given.tag, given.x, given.group)


def read_groups(given: Namespace) -> tuple[dict[str, list[Group]], float]:
    """The groups that the arguments name, by environment, and the bins' width."""
    return make_groups(read_runs(given), given.x, given.bin)
