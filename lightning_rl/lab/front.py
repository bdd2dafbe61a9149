"""Playing a policy of several objectives at each command of its front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lightning_rl.core.console import counting
from lightning_rl.core.errors import UserError
from lightning_rl.functional.pareto import hypervolume
from lightning_rl.lab.evaluate import play
from lightning_rl.lab.tables import Rows, put_rows
from lightning_rl.methods.pareto import PCN
from lightning_rl.methods.pareto.buffer import vector_returns
from lightning_rl.run.asking import Asked


def play_front(method: PCN, episodes: int, num_workers: int) -> dict[str, Any]:
    """What the policy obtains at each command of its front, actions as it is meant to act.

    Returns:
        objectives, reference, hypervolume, and rows with the command (``commanded_treasure``,
        ``commanded_horizon``) and the means that it obtained (``treasure``).
    """
    commands = method.target.commands()
    if not commands:
        raise UserError("command sweep: the policy has no front yet; train it longer")
    asked = [(Asked(command), method.action_mode) for command in commands]
    with counting(len(asked) * episodes, "episodes") as advance:
        of_each = play(method, asked, episodes, num_workers, advance)
    rows, means = [], []
    for command, played in zip(commands, of_each, strict=True):
        mean = vector_returns(played).mean(0)
        means.append(mean)
        row = {
            f"commanded_{name}": x for name, x in zip(method.command_names, command, strict=True)
        }
        rows.append({**row, **dict(zip(method.objectives, mean.tolist(), strict=True))})
    reference = method.reference.double().numpy()
    return {
        "objectives": list(method.objectives),
        "reference": reference.tolist(),
        "hypervolume": hypervolume(np.stack(means), reference),
        "rows": rows,
    }


def print_front(report: Mapping[str, Any]) -> None:
    """The table that ``--command sweep`` shows."""
    names = report["objectives"]
    rows: Rows = [(*(f"commanded {name}" for name in names), *names)]
    for row in report["rows"]:
        numbers = [row[f"commanded_{name}"] for name in names] + [row[name] for name in names]
        rows.append([f"{number:.1f}" for number in numbers])
    title = f"{report['implementation']} on {report['gamename']}"
    origin = ", ".join(f"{number:g}" for number in report["reference"])
    end = f"hypervolume {report['hypervolume']:,.1f} from ({origin})\npicture: {report['picture']}"
    put_rows(rows, f"{title}, {report['episodes']} episodes per command", end=end)
