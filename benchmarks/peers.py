"""Our agents beside those of rejax, sbx and Stable-Baselines3: ``make peers``, or ``make peers
ARGS="--only PPO-8 --quick"``.

Of each comparison, an agent on a task with so many seeds, every library trains in a process of its
own, on the same core, in turns; what a turn took is CPU time. The first turn compiles, and is not
counted. After every turn the agents are tested, which is not timed: those that were measured are
those that learn, or not. A comparison is kept in results/peers.csv as soon as it is whole, and not
measured again at the same commit.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib import metadata
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import machine
from harness import Spread
from peer_cases import CASES, DIFFERS, Case, Side

from lightning_rl.cli.tools import use
from lightning_rl.core.arguments import Parser
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import make_folder, read_text, write_text
from lightning_rl.core.kinds import checked_path
from lightning_rl.core.lines import say
from lightning_rl.lab.tables import csv_lines, csv_rows

RECORDS = machine.ROOT / "results" / "peers.csv"
QUICK = machine.ROOT / "build" / "peers.csv"
PAGES = ("README.md", "results/speed.md")
MODULES = {
    "ours": "peer_ours",
    "rejax": "peer_rejax",
    "sbx": "peer_stable",
    "Stable-Baselines3": "peer_stable",
    "limit": "peer_ours",
}
"""Where ``side`` is, by library."""
PACKAGES = {"rejax": "rejax", "sbx": "sbx-rl", "Stable-Baselines3": "stable-baselines3"}
ALONE = ("sbx", "Stable-Baselines3")
"""Train one seed only."""
LAST = 3
"""Evaluations whose mean says whether an agent has learned."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
COLUMNS = (
    *("agent", "gamename", "seeds", "library", "version"),
    *("ms", "ms_low", "ms_high", "over", "over_low", "over_high"),
    *("compile_s", "return_mean", "learned", "needed", "differs", "turns", "steps"),
    *("date", "commit", "processor", "load"),
)
"""ms: CPU milliseconds of a member-step, the median turn and the quartiles. over: ours over this
library's, in the same turn. compile_s: CPU seconds that the first turn took longer. learned: how
many seeds have a return of ``needed``.
"""
COMPARISONS = {
    f"{case.name}-{seeds}": (case, seeds) for case in CASES.values() for seeds in case.seeds
}


class Turn(NamedTuple):
    """seconds: CPU time of a member-step. returns: mean test returns of the seeds."""

    seconds: float
    returns: list[float]


@functools.cache
def side(library: str, name: str, seeds: int, quick: bool) -> Side:
    """The one that trains in this process."""
    case = CASES[name]
    if quick:
        case = case.quick()
    return importlib.import_module(MODULES[library]).side(library, case, seeds)


def turn(library: str, name: str, seeds: int, quick: bool) -> Turn:
    """The next one of a side, in its process."""
    trains = side(library, name, seeds, quick)
    return Turn(trains.turn(), trains.returns())


def prepare() -> None:
    """What our processes do before they train."""
    import torch

    from lightning_rl.run.runtime import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()


def libraries_of(seeds: int) -> list[str]:
    """Those that take part."""
    if seeds == 1:
        return list(MODULES)
    return [library for library in MODULES if library not in ALONE]


def compare(name: str, quick: bool) -> list[dict[str, Any]]:
    """Measures a comparison; a row of the table for each library."""
    case, seeds = COMPARISONS[name]
    case = case.quick() if quick else case
    facts = {
        "agent": case.name,
        "gamename": case.gamename,
        "seeds": seeds,
        "turns": case.turns,
        "steps": case.steps,
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "commit": machine.commit(),
        "processor": machine.processor(),
        "load": round(machine.load(), 1),
    }
    libraries = libraries_of(seeds)
    turns: dict[str, list[Turn]] = {library: [] for library in libraries}
    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pools = {
            library: stack.enter_context(ProcessPoolExecutor(1, spawn, initializer=prepare))
            for library in libraries
        }
        for _ in range(case.turns + 1):
            for library, pool in pools.items():
                taken = pool.submit(turn, library, case.name, seeds, quick).result()
                turns[library].append(taken)
    versions = {library: metadata.version(name) for library, name in PACKAGES.items()}
    return [
        {**facts, "version": versions.get(library, ""), **row(case, seeds, library, turns)}
        for library in libraries
    ]


def row(
    case: Case, seeds: int, library: str, turns: Mapping[str, Sequence[Turn]]
) -> dict[str, Any]:
    """What the turns of a library say, of which the first does not count."""
    first, *measured = turns[library]
    seconds = [each.seconds for each in measured]
    ours = [each.seconds for each in turns["ours"][1:]]
    ms = Spread.of(seconds).times(1e3)
    over = Spread.of([mine / other for mine, other in zip(ours, seconds, strict=True)])
    found: dict[str, Any] = {
        "library": library,
        "differs": DIFFERS.get((library, case.name), ""),
        **{"ms": ms.median, "ms_low": ms.low, "ms_high": ms.high},
        **{"over": over.median, "over_low": over.low, "over_high": over.high},
    }
    if library != "limit":
        longer = (first.seconds - ms.median / 1e3) * case.steps * seeds
        last = [each.returns for each in measured[-LAST:]]
        means = [fmean(of_seed) for of_seed in zip(*last, strict=True)]
        found["compile_s"] = max(0.0, longer)
        found["return_mean"] = fmean(means)
        found["needed"] = case.learned
        found["learned"] = sum(mean >= case.learned for mean in means)
    return {name: f"{it:.4g}" if isinstance(it, float) else it for name, it in found.items()}


def kept(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows that are there, by comparison."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARISONS}
    if path.exists():
        for each in csv_rows(read_text(path, "CSV")):
            rows.setdefault(f"{each['agent']}-{each['seeds']}", []).append(each)
    return rows


def keep(path: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Writes all rows."""
    lines = [[each.get(name, "") for name in COLUMNS] for each in chain(*rows.values())]
    make_folder(path.parent)
    write_text(path, csv_lines([COLUMNS, *lines]))


def main(words: Sequence[str]) -> None:
    """See above."""
    parser = Parser(prog="peers.py", description="Measures our agents beside other libraries'.")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=COMPARISONS,
        default=list(COMPARISONS),
        metavar="COMPARISON",
        help=", ".join(COMPARISONS),
    )
    parser.add_argument("--quick", action="store_true", help="so little that it only shows it runs")
    parser.add_argument("--anew", action="store_true", help="measure what is there already, too")
    parser.add_argument(
        "--out",
        type=checked_path,
        help="the CSV (default: results/peers.csv; with --quick build/peers.csv)",
    )
    arguments = parser.parse_args(words)
    path = arguments.out or (QUICK if arguments.quick else RECORDS)
    os.environ.update(ONE_THREAD)
    if hasattr(os, "sched_setaffinity"):  # else than on macOS
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows, commit, failures = kept(path), machine.commit(), {}
    for name in arguments.only:
        there = any(each["commit"] == commit for each in rows[name])
        if there and not arguments.anew and not commit.endswith("-dirty"):
            say(f"{name}: measured at this commit")
            continue
        say(f"{name}: {time.strftime('%H:%M')}")
        try:
            rows[name] = compare(name, arguments.quick)
        except Exception as problem:
            failures[name] = problem
            continue
        keep(path, rows)
    use(["speed", "peers", str(path)])
    if path == RECORDS:
        use(["docs", *PAGES])
    if failures:
        listed = [f"{name} was not measured: {problem}" for name, problem in failures.items()]
        raise UserError("; ".join(listed))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
