"""What an evaluation says at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lightning_rl.lab.protocols.models import REAL


def print_summary(rows: Sequence[Mapping[str, str]], keys: Sequence[str], values: Sequence[str]) -> None:
    """One line per group: mean, standard deviation and median of ``values`` over its rows."""
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for group, mine in groups.items():
        numbers = {value: np.array([float(row[value]) for row in mine]) for value in values}
        said = [f"{name} {x.mean():,.1f} +- {x.std():,.1f} (median {np.median(x):,.1f})" for name, x in numbers.items()]
        proxies = {row["proxy"] for row in mine if not row["trained_on"].startswith(REAL)}
        where = f" on {len(proxies)} {'proxies' if len(proxies) > 1 else 'proxy'}" if proxies else ""
        print(f"{' | '.join(group)}: {', '.join(said)}; {len(mine)} agents{where}")
