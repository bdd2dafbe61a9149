"""In how many generations proxies are evolved (arXiv 2202.02790, Figures 2 and 11).

The runs are those of ``trainer.py --implementation SE`` without its logs and checkpoints, so a
hundred short ones take minutes; long ones are better trained, as a run that is killed here begins
anew. With ``--draw`` every run has other values, for example of the step size.
"""

from __future__ import annotations

import dataclasses
import math
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from lightning_rl.core.config import (
    build_config,
    dotted_keys,
    merged_values,
    parse_settings,
    refuse_ignored,
)
from lightning_rl.core.console import counting
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.seeding import generator
from lightning_rl.lab.protocols.results import open_results
from lightning_rl.lab.tuning.space import Space, spaces
from lightning_rl.methods.proxy_search import SE, ProxySearch
from lightning_rl.methods.reward_network import RN
from lightning_rl.methods.synthetic_dataset import SD

METHODS: dict[str, type[ProxySearch]] = {"SE": SE, "RN": RN, "SD": SD}
SHOWN = ("strategy", "score_transform", "step_size", "noise_std", "mirrored")
OF_RUNS = (
    "max_env_steps",
    "chunk_size",
    "eval_interval",
    "eval_agents",
    "eval_episodes",
    "checkpoint_interval",
)
KEY = ("gamename", "implementation", "settings", "seed")
COLUMNS = (*KEY, *SHOWN, "generation", "fitness_mean", "solved", "cpu_seconds")


def evolve(
    implementation: str,
    gamename: str,
    seed: int,
    base: Sequence[tuple[str, Mapping[str, Any]]],
    asked: Sequence[tuple[str, Mapping[str, Any]]],
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """A row for each generation, from 0, of one run.

    base: layers of the YAML; asked: the user's above them.

    tell: is told before each generation which it is.
    """
    cls = METHODS[implementation]
    config = build_config(cls.Config, [*base, *asked])
    reason = "runs of trainer.py read it, here max_epochs alone counts; leave it out"
    ignored_keys = config.ignored_keys() | dict.fromkeys(OF_RUNS, reason)
    refuse_ignored(ignored_keys, *((where, dotted_keys(values)) for where, values in asked))
    config = config.resolved(gamename)
    values = dataclasses.asdict(config)
    method = cls(gamename, implementation=implementation, seed=seed, config=values)
    outer = method.outer_loop()
    (_, optimizer), (scheduler,) = method.configure_optimizers()
    rows = []
    shown = {key: getattr(config, key) for key in SHOWN}
    for number in range(config.max_epochs):
        tell(f"seed {seed}, generation {number} of {config.max_epochs}")
        started = time.process_time()
        generation = outer.run(number)
        optimizer.step()
        scheduler.step()
        method.after_generation(number)
        solved = method.cfg.objective == "final_return" and method.solves(generation)
        row = {
            "generation": number,
            "fitness_mean": generation.fitness,
            "solved": solved,
            "cpu_seconds": round(time.process_time() - started, 2),
        }
        rows.append({**shown, **row})
        if solved and method.cfg.stop_when_solved:
            break
    return rows


def draw(space: Space, rng: np.random.Generator) -> Any:
    """The config's value of a random draw."""
    if space.form == "choice":
        return space.values[int(rng.integers(len(space.values)))]
    low, high = map(float, space.values)
    if "int" in space.form:
        high += 1  # whole numbers are cut off, and the highest is one of them
    if "log" in space.form:
        return space.decode(math.exp(rng.uniform(math.log(low), math.log(high))))
    return space.decode(rng.uniform(low, high))


def run(given: Namespace) -> None:
    """Fills OUT.csv and prints a summary."""
    settings = parse_settings(given.settings)
    asked = parse_settings(given.drawn, "--draw", "'step_size={log: [0.01, 10]}'")
    for key, value in asked.items():
        if not isinstance(value, dict):
            example = "--draw 'step_size={log: [0.01, 10]}'"
            raise UserError(f"--draw {key}={value}: expected a space, e.g. {example}")
    drawn = spaces(asked)
    words = [f"preset {given.preset}"] if given.preset else []
    words += [f"{key}={value}" for key, value in settings.items()]
    words += [f"{space.key} drawn, {space.form} {space.values}" for space in drawn]
    about = {
        "gamename": given.gamename,
        "implementation": given.implementation,
        "settings": "; ".join(words),
    }
    base = merged_values(given.implementation, given.gamename, given.preset)
    with open_results(Path(given.out), COLUMNS, KEY, given.force) as results:
        with counting(given.runs, "runs") as advance:
            for seed in range(given.seed, given.seed + given.runs):
                if not results.has(**about, seed=seed):
                    values = {}
                    for space in drawn:
                        values[space.key] = draw(space, generator(seed, f"draw {space.key}"))
                    rows = evolve(
                        given.implementation,
                        given.gamename,
                        seed,
                        base,
                        [("--set", settings), ("--draw", values)],
                        lambda text: advance(0, text),
                    )
                    results.add([{**about, "seed": seed, **row} for row in rows])
                advance(1, f"seed {seed}")
        print_runs(results.rows)


def print_runs(rows: Sequence[Mapping[str, str]]) -> None:
    """One line per group of runs: how many were solved, and when.

    A run that was not solved counts as all of its generations.
    """
    table = pd.DataFrame(rows).astype({"cpu_seconds": float})
    table["solved"] = table["solved"] == "True"
    table["before"] = ~table.groupby(list(KEY), sort=False)["solved"].cummax()  # the first solved
    found = table.groupby(list(KEY), sort=False).agg(
        solved=("solved", "max"), before=("before", "sum"), seconds=("cpu_seconds", "sum")
    )
    for group, runs in found.groupby(list(KEY[:-1]), sort=False):
        when = sorted(runs["before"] + runs["solved"])
        say(
            f"{' | '.join(filter(None, group))}: {runs['solved'].sum()} of {len(runs)} runs "
            f"solved, median {median(when):g} generations ({when[0]} to {when[-1]}), "
            f"{runs['seconds'].mean():.1f} s of CPU time a run"
        )
