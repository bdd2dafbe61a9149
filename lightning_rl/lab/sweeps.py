"""Sweeps: a checkpoint is played under a range of commands, and what each obtains is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from lightning_rl.core.console import counting
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.lines import three_digits
from lightning_rl.core.outputs import owned_numbers, owned_picture
from lightning_rl.core.types import ActionMode
from lightning_rl.lab.beside import beside, owned_report, report_file
from lightning_rl.lab.evaluate import about, play
from lightning_rl.lab.front import play_front, print_front
from lightning_rl.lab.obedience import NEAR, far_apart, misses, obedience
from lightning_rl.lab.tables import Rows, put_rows
from lightning_rl.lab.words import evenly, exact, parse_sweep
from lightning_rl.methods.base import Method
from lightning_rl.run.asking import Asked, full_command
from lightning_rl.run.loading import load_method


def sweep(
    path: Path, episodes: int, num_workers: int, text: str = "sweep", force: bool = False
) -> dict[str, Any]:
    """Plays the checkpoint at ``path`` under commands over its whole range, actions sampled; the
    report.

    Of a calibrated policy the commands are returns. Otherwise the first command value goes over
    those that training saw; the others keep the checkpoint's. The report, which is kept as
    ``sweep.json``, says how well the policy obeys (see ``obedience``). Writes ``sweep.png``,
    ``.svg`` and ``.csv`` beside the checkpoint, or ``sweep_LOW_HIGH.png`` and so on for a range
    that is asked for, ``sweep_of_A_B.png`` for single commands, ``sweep_epoch=40.png`` of another
    checkpoint than a run's last.

    Args:
        path: the checkpoint.
        episodes: for each command.
        num_workers: processes that play episodes.
        text: ``sweep``, ``sweep=LOW:HIGH`` or ``sweep=A,B,...``.
        force: overwrite files of these names that no sweep has written.
    """
    values = parse_sweep(text)
    require("the figure of a sweep", "matplotlib", "pandas")
    method = load_method(path)
    words = [exact(float(point)) for point in re.split("[=:,]", text)[1:]]
    if "," in text:
        words.insert(0, "of")
    out = beside(path, ["sweep", *words], force)
    kept = Path(f"{out.path}.json")
    picture = Path(f"{out.path}.png")
    out.check(picture, owned_picture)  # before the work
    out.check(kept, owned_report)
    out.check(Path(f"{out.path}.csv"), owned_numbers(picture, picture.with_suffix(".svg")))
    if method.objectives:
        from lightning_rl.lab.figures.front import draw_front as draw

        if values:
            raise UserError(
                "command sweep: of several objectives it goes over the front; give sweep without "
                "values, or one command by name"
            )
        played = play_front(cast(Any, method), episodes, num_workers)
    else:
        from lightning_rl.lab.figures.commands import draw_sweep as draw

        name, limits = _swept(method)
        if limits is None:
            raise UserError(f"command sweep: the policy of '{path}' takes no command; leave it out")
        played = _play_sweep(method, name, values or evenly(*limits), episodes, num_workers)
    report = {
        "checkpoint": str(path),
        **about(method),
        "episodes": episodes,
        **played,
        "picture": str(picture),
    }
    draw(out, report)
    out.write(report_file(kept, report))
    return report


def _swept(method: Method) -> tuple[str, tuple[float, float] | None]:
    """What a sweep asks for, and its range; None: the policy takes no command."""
    calibration = method.calibrated()
    if calibration is None:
        return (method.command_names or ("",))[0], method.command_limits()
    return "return", calibration.limits


def _play_sweep(
    method: Method, name: str, values: Sequence[float], episodes: int, num_workers: int
) -> dict[str, Any]:
    """The rows of a sweep, one for each value, and how well the policy obeys."""
    commands = [full_command(method, {name: value}) for value in values]
    asked: list[tuple[Asked, ActionMode]] = [(command, "sampled") for command in commands]
    with counting(len(asked) * episodes, "episodes") as advance:
        of_each = play(method, asked, episodes, num_workers, advance)
    obtained = [[episode.ret for episode in played] for played in of_each]
    rows = []
    for value, returns in zip(values, obtained, strict=True):
        row = {
            "commanded": value,
            "obtained_mean": float(np.mean(returns)),
            "obtained_sd": float(np.std(returns, ddof=episodes > 1)),
            "episodes": episodes,
        }
        rows.append(row | misses(value, returns))
    return {
        "command_name": name,
        "rows": rows,
        "calibrated": method.calibrated() is not None,
        **obedience(values, obtained),
    }


def print_sweep(report: Mapping[str, Any]) -> None:
    """The table that ``--eval_command sweep`` shows."""
    if "objectives" in report:
        print_front(report)
        return
    columns = ["mean obtained", "sd"]
    if report["command_name"] == "return":
        columns.append("episodes miss by")
    shares = _shares(report)
    columns += [name.replace("_", " ") for name in shares]
    rows: Rows = [(f"commanded {report['command_name']}", *columns)]
    for row in report["rows"]:
        numbers = [row[name] for name in ("obtained_mean", "obtained_sd", "episode_error")]
        cells = [*map(three_digits, numbers[: len(columns) - len(shares)])]
        cells += [f"{row[name]:.0%}" for name in shares]
        rows.append((f"{row['commanded']:.2f}", *cells))
    title = f"{report['implementation']} on {report['gamename']}"
    end = f"{obedience_line(report)}\npicture: {report['picture']}"
    put_rows(rows, f"{title}, {report['episodes']} episodes per command", end=end)


def _shares(report: Mapping[str, Any]) -> tuple[str, ...]:
    """The shares of episodes near what was asked, where they say something."""
    asked = [row["commanded"] for row in report["rows"]]
    return NEAR if report["command_name"] == "return" and far_apart(asked) else ()


def obedience_line(report: Mapping[str, Any]) -> str:
    """How well a policy obeyed in a sweep; other commands than returns cannot be compared with
    what was obtained, but ranked.
    """
    ranked = f"rank correlation of episodes {report['rank_correlation']:.2f}"
    if report["command_name"] != "return":
        return ranked
    names = ("episode_error", "worst_episode_error", "worst_asked", "error", "floor")
    digits = {name: three_digits(report[name]) for name in names}
    near = [f", {report[name]:.0%} by at most {name[7:]}" for name in _shares(report)]
    return (
        f"single episodes miss by {digits['episode_error']} on average{''.join(near)}; "
        f"worst: {digits['worst_episode_error']}, for {digits['worst_asked']}\n"
        f"their means miss by {digits['error']} ({report['error_share']:.1%} of the range), of "
        f"which chance alone leaves {digits['floor']}; slope {report['slope']:.2f}, {ranked}"
    )
