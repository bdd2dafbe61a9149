"""A search of every combination of values, one after the other in this process, without Ray."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.stopping import Stopped
from lightning_rl.lab.scalars import UnknownScalarError
from lightning_rl.lab.tuning.space import Space, spaces
from lightning_rl.lab.tuning.trial import Plan, fail, run_trial


def combinations(every: Sequence[Space]) -> list[dict[str, Any]]:
    """All combinations of the choices of the spaces, those of the last space fastest."""
    names = [space.key for space in every]
    values = itertools.product(*(space.codes() for space in every))
    return [dict(zip(names, chosen, strict=True)) for chosen in values]


def run_grid(plan: Plan) -> int:
    """Runs what is left of each trial; the signal that has interrupted it, or 0.

    A trial is named by its number. All are trained to the end, so each costs the same.
    """
    grid = combinations(spaces(plan.tune.search))
    for number, drawn in enumerate(grid):
        name = f"{number:03}"
        settings = plan.settings(drawn)
        try:
            *_, last = run_trial(plan, name, settings)
        except Stopped as stopped:
            return stopped.number
        except UnknownScalarError as error:  # which no trial will log
            raise UserError(f"--tune metric: {error}") from error
        except UserError as error:  # diverged: a result of its own
            fail(plan.folder / name, error)
            say(f"trial {name}: {error}", error=True)
            continue
        say(f"trial {name} of {len(grid)}: {last['score']:.4g} with {settings}", error=True)
    return 0
