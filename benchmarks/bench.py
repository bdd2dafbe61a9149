"""Runs the benchmarks and writes results/speed.md: ``make bench``, ``make bench ARGS="--smoke
--only updates loops"``.

A whole run takes about 15 minutes and wants the machine for itself. ``--smoke`` shows in about one
that everything runs; its numbers, like those of some families alone, are printed and not kept,
unless ``--out`` says where. What fails costs only its own tables, and is said at the end.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import machine

from lightning_rl.cli.tools import call_experiment, use
from lightning_rl.core.arguments import Parser
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import write_text
from lightning_rl.core.kinds import checked_path
from lightning_rl.core.workers import cores

FAMILIES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)
SPEED = machine.ROOT / "results" / "speed.md"
PEERS = """## Agents beside those of other libraries

CPU ms of a member-step, all that a decision takes, on one core with one thread; libraries in turns,
with the hyper-parameters of configs/agents.yaml, replay memories as long as the run, and one
environment a seed. Seeds are a stack of ours, and one vmap of rejax; sbx and Stable-Baselines3
train one. The first turn, which compiles, does not count. Ours over it: of turns one after the
other. Return: the mean of the last three evaluations, ten episodes a seed, of the agents that were
timed; a seed learns that comes two thirds of the way from chance to the best. Limit: the matrix
products of the updates and DDQN's tanh, or the bytes of batches, weights, gradients and moments,
whichever takes longer at the rates of large tensors. Load: of the minute before a comparison, the
one before it included. Measured by `make peers`.

Timed is the loop alone: ours without Lightning's epochs, logs and evaluations, in compiled
environments of ours; theirs is their `learn`, without callbacks, or their compiled loop. Whole runs
differ less: in the claims `beside-…` and `sb3-…`, mostly from before our loops were compiled,
Stable-Baselines3 takes 1.0 to 2.2 times our CPU time.

<!-- made by: lightning-rl speed agents results/peers.csv -->

<!-- made by: lightning-rl speed peers results/peers.csv -->
"""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def measure(family: str, smoke: bool) -> str:
    """The tables of a family, in this process; as Markdown."""
    import torch

    from lightning_rl.run.runtime import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    started = time.monotonic()
    parts = [table.markdown() for table in importlib.import_module(f"bench_{family}").tables(smoke)]
    return "\n".join([*parts, f"*`--only {family}`: {time.monotonic() - started:.0f} s.*\n"])


def apart(family: str, smoke: bool) -> str:
    """``measure`` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, family, smoke).result()


def heading(words: Sequence[str], load: float) -> str:
    """Where and how all of it was measured. load: before."""
    facts = {
        "command": " ".join(["make bench", *([f'ARGS="{" ".join(words)}"'] if words else [])]),
        "machine": f"{machine.processor()}, {cores()} cores; {machine.vector_flags()}",
        "load": f"{load:.1f} before, {machine.load():.1f} at the end",
        "commit": machine.commit(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "versions": machine.versions(),
    }
    about = (
        "Medians, in brackets the quartiles. What is compared was measured in turns, in one run. A "
        "limit is the time of what "
        "cannot be left out, alone. Goal: what the project wants to reach on two idle cores of an "
        "AMD EPYC, – where nothing."
    )
    return "\n".join(
        ["# Speed", "", about, "", *(f"* {name}: {value}" for name, value in facts.items()), ""]
    )


def main(words: Sequence[str]) -> None:
    """See above."""
    parser = Parser(
        prog="bench.py", description="Measures how fast everything is, beside what bounds it."
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=FAMILIES,
        default=FAMILIES,
        metavar="FAMILY",
        help=", ".join(FAMILIES),
    )
    parser.add_argument(
        "--smoke", action="store_true", help="a few rounds of little work: does it run?"
    )
    parser.add_argument(
        "--out",
        type=checked_path,
        help="where the tables go (default: results/speed.md, of a whole run)",
    )
    arguments: argparse.Namespace = parser.parse_args(words)
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    load, parts, failures = machine.load(), [], {}
    for family in arguments.only:
        try:
            parts.append(apart(family, arguments.smoke))
        except Exception as problem:
            failures[family] = problem
            parts.append(f"## {family}\n\nNot measured: {problem}\n")
        print(parts[-1], flush=True)
    whole = not arguments.smoke and arguments.only == FAMILIES
    if (out := arguments.out or (SPEED if whole else None)) is not None:
        peers = call_experiment("docs:refreshed", PEERS, use)
        write_text(out, "\n".join([heading(words, load), *parts, peers]))
    if failures:
        raise UserError(
            "; ".join(
                f"{family} was not measured: {problem}" for family, problem in failures.items()
            )
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
