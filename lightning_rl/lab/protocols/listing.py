"""Which trained proxies there are: equal hashes are equal bits, whatever their files are called."""

from __future__ import annotations

import math
from argparse import Namespace

from lightning_rl.envs.proxies import shipped
from lightning_rl.lab.protocols.models import Model, all_models, content_hash
from lightning_rl.lab.tables import put_rows

COLUMNS = ("proxy", "gamename", "kind", "seed", "generations", "hash")


def row(model: Model) -> tuple[str, ...]:
    """Cells of a proxy; empty where its file does not say."""
    numbers = (model.seed, model.generations)
    known = ("" if math.isnan(value) else f"{value:.0f}" for value in numbers)
    proxy = model.proxy
    return model.name, proxy.gamename, model.trained_on, *known, content_hash(proxy, model.params)


def run(given: Namespace) -> None:
    """Prints a table."""
    put_rows([COLUMNS, *map(row, all_models(given.sources or shipped()))])
