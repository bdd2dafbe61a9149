"""``lightning-rl claims CLAIM... --export FOLDER``: measured seeds in the forms of other tools.

``rliable.json`` holds what rliable takes: by method the scores ``[runs, tasks]``, with the names of
the tasks beside them. ``openrlbenchmark.csv`` holds the curves of returns with openrlbenchmark's
names of columns: ``exp_name``, ``env_id``, ``seed``, ``global_step`` and
``charts/episodic_return``. (Its own commands fetch runs from Weights & Biases.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from experiments.reproduce import store
from experiments.reproduce.claims import Claim
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import make_folder, write_text
from lightning_rl.core.lines import say
from lightning_rl.lab.tables import csv_lines

SCORES, CURVES = "rliable.json", "openrlbenchmark.csv"
_COLUMNS = ("exp_name", "env_id", "seed", "global_step", "charts/episodic_return", "metric")


def export(claims: Mapping[str, Claim], root: Path, folder: Path) -> None:
    """Writes both files of these claims into ``folder``."""
    make_folder(folder)
    write_text(folder / SCORES, json.dumps(scores(claims, root), indent=1) + "\n")
    write_text(folder / CURVES, csv_lines([_COLUMNS, *curves(claims, root)]))
    say(f"wrote {folder / SCORES} and {folder / CURVES}")


def scores(claims: Mapping[str, Claim], root: Path) -> dict[str, dict[str, list[object]]]:
    """By method its ``tasks``, and its ``scores`` ``[runs][tasks]``, runs in the order of seeds.

    Raises:
        UserError: two claims of one method on one task, or with unequal numbers of seeds.
    """
    columns: dict[str, dict[str, list[float]]] = {}
    for name, claim in claims.items():
        rows = store.read_runs(root, claim)
        if not rows:
            raise UserError(f"claim '{name}' has no measured seed; leave it out")
        method = rows[0]["implementation"] or name
        task = rows[0]["gamename"] or name
        of_method = columns.setdefault(method, {})
        if task in of_method:
            raise UserError(
                f"claim '{name}': another one is of {method} on {task}; export them one after "
                "the other"
            )
        path = store.runs_path(root, claim)
        of_method[task] = [store.number(row, "value", path) for row in rows]
        seeds = {len(values) for values in of_method.values()}
        if len(seeds) > 1:
            raise UserError(
                f"claim '{name}' has {len(rows)} seeds, others of {method} "
                f"{min(seeds - {len(rows)})}; rliable takes as many of each task"
            )
    found: dict[str, dict[str, list[object]]] = {}
    for method, tasks in columns.items():
        runs = [list(run) for run in zip(*tasks.values(), strict=True)]
        found[method] = {"tasks": list(tasks), "scores": list(runs)}
    return found


def curves(claims: Mapping[str, Claim], root: Path) -> list[list[str]]:
    """Rows of the first curve of returns of each claim that keeps one."""
    rows = []
    for name, claim in claims.items():
        tag = next((tag for tag in claim.curves if "return" in tag), None)
        if tag is None:
            continue
        about = {row["seed"]: row for row in store.read_runs(root, claim)}
        for point in store.read_curves(root, claim):
            run = about.get(point["seed"])
            if run is not None and point[tag]:
                method, game = run["implementation"] or name, run["gamename"]
                where = (point["seed"], point["env_steps"])
                rows.append([method, game, *where, point[tag], tag])
    return rows
