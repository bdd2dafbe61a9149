"""Synthetic environments beside the real task: histograms of their transitions."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.figures.protocol_csv import numbers, read_protocol
from lightning_rl.core.errors import UserError
from lightning_rl.lab.figures import style

MOST_BINS = 30  # of a component, about
COLUMNS = (
    "gamename",
    "proxy",
    "agent",
    "protocol",
    "agents",
    "sample",
    "component",
    "width",
    "lows",
    "counts",
)


def bins_of(table: pd.DataFrame) -> pd.DataFrame:
    """A row per bin, with ``low`` and ``count``, of a table with a row per histogram."""
    lists = table.assign(low=table["lows"].map(numbers), count=table["counts"].map(numbers))
    uneven = lists[lists["low"].map(len) != lists["count"].map(len)]
    if len(uneven):
        row = uneven.iloc[0]
        lengths = f"{len(row['low'])} lows and {len(row['count'])} counts"
        raise UserError(f"{row['sample']}, {row['component']}: {lengths}; make the CSV again")
    return lists.explode(["low", "count"], ignore_index=True).astype({"low": float, "count": float})


def coarser(bins: pd.DataFrame) -> pd.DataFrame:
    """Joins bins until each component has about ``MOST_BINS``.

    Bins that are narrower than the task's own steps would look like a comb.
    """
    parts = []
    for _, own in bins.groupby("component", sort=False):
        width = own["width"].iloc[0]
        number = np.round(own["low"] / width)
        joined = max(int(np.ptp(number) / MOST_BINS + 0.5), 1) * width
        parts.append(own.assign(low=np.floor(own["low"] / joined + 1e-6) * joined, width=joined))
    return pd.concat(parts, ignore_index=True)


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """sample, component, low, width, share: of the transitions of a sample, over all proxies."""
    keys = ["sample", "component", "low", "width"]
    bins = table.groupby(keys, sort=False, as_index=False)["count"].sum()
    total = bins.groupby(["sample", "component"])["count"].transform("sum")
    bins = bins.assign(share=bins["count"] / total)
    return bins.sort_values(["component", "sample", "low"], ignore_index=True)


def draw_histogram(axes: Axes, table: pd.DataFrame, colour: str, label: str) -> None:
    """The outline of one sample; bins that hold nothing are gaps."""
    low, width, share = (table[name].to_numpy(float) for name in ("low", "width", "share"))
    gap = np.flatnonzero(low[1:] - (low + width)[:-1] > 0.5 * width[:-1]) + 1
    for piece in np.split(np.arange(len(low)), gap):
        edges = np.append(low[piece], low[piece[-1]] + width[piece[-1]])
        axes.stairs(share[piece], edges, color=colour, fill=True, alpha=0.12, baseline=1e-12)
        first = label if piece[0] == 0 else None
        axes.stairs(share[piece], edges, color=colour, linewidth=1.2, baseline=1e-12, label=first)


def draw(given: Namespace) -> None:
    """OUT.png, OUT.svg and OUT.csv."""
    table = read_protocol(given.sources, COLUMNS, "transitions", kind="proxy")
    if given.proxy is not None:
        if given.proxy not in set(table["proxy"]):
            raise UserError(
                f"--proxy '{given.proxy}' is not in the sources; they have: "
                f"{', '.join(table['proxy'].unique())}"
            )
        table = table[table["proxy"] == given.proxy]
    if len(table[["agent", "protocol"]].drop_duplicates()) > 1:
        raise UserError(
            "the sources hold several agents or protocols; a histogram is of one: name CSVs of one"
        )
    table = bins_of(table)
    names, samples, proxies = (table[name].unique() for name in ("component", "sample", "proxy"))
    bins = shares(coarser(table))
    figure, panels = style.panels(len(names), (7.2, 4.0), legend=1)
    for axes, name in zip(panels, names, strict=True):
        component = bins[bins["component"] == name]
        for index, sample in enumerate(samples):
            part = component[component["sample"] == sample]
            if not part.empty:
                draw_histogram(axes, part, style.colour(index), sample)
        label = name if name in ("reward", "done") else f"next {name}"
        axes.set(xlabel=label, ylabel="share of transitions per bin", yscale="log")
        style.plain_ticks(axes.yaxis)
        axes.set_ylim(0.7 * component["share"].min(), 1.5)
    style.shared_legend(figure, panels)
    first = table.iloc[0]
    what = proxies[0] if len(proxies) == 1 else f"{len(proxies)} synthetic environments"
    totals = table[table["component"] == "reward"].groupby("sample", sort=False)["count"].sum()
    joined = ""
    if (bins["width"] > table["width"].min()).any():
        joined = "; wider where a component would have many"
    transitions = ", ".join(f"{int(total):,} ({sample})" for sample, total in totals.items())
    agents = f"{first['agents']} {first['agent']} agents"
    if len(proxies) > 1:
        agents += " on each"
    style.describe(
        figure,
        given.title or f"Transitions of {what} beside those of {first['gamename']}",
        f"{agents}: {first['protocol']}{joined}; transitions: {transitions}. "
        "done: 1 less the discount that the agent sees; above 0.5 it "
        "ends the episode.",
    )
    style.save(figure, given.out, bins)
