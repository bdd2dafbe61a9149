"""``--eval_agent``: plays a checkpoint, prints a table, writes ``evaluation.json`` and a film beside it.

``--eval_command sweep`` plays it under a range of commands instead and draws what came of each.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table

from lightning_rl.core.console import put
from lightning_rl.core.files import read_text
from lightning_rl.core.limits import WHOLE, shorten
from lightning_rl.core.outputs import File, Out, owned_picture
from lightning_rl.core.types import ActionMode, Episode, Request, UserError
from lightning_rl.envs.gym import can_film
from lightning_rl.functional.statistics import summarise
from lightning_rl.methods.base import Method
from lightning_rl.methods.registry import implementation
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.rollouts.player import Player, record_episode
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.layouts import require_stored, require_weights
from lightning_rl.run.runtime import quiet_lightning

SWEEP_POINTS = 13


def load_method(path: Path) -> Method:
    """The method of a checkpoint, with its weights and counters."""
    checkpoint = read_checkpoint(path)
    hparams = dict(checkpoint["hyper_parameters"])
    require_stored(hparams["config"], path)
    try:
        method = implementation(hparams["implementation"])(**hparams)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, UserError, ValueError) as error:
        reason = shorten(str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}", 200)
        raise UserError(f"checkpoint '{path}' does not fit this version's {hparams['implementation']}: {reason}") from error
    require_weights(checkpoint["state_dict"], method, path, "use another checkpoint")
    method.load_state_dict(checkpoint["state_dict"])
    return method


def beside(checkpoint: Path, name: str, force: bool) -> Out:
    """A file called ``name`` in the folder of a checkpoint."""
    return Out(checkpoint.parent / name, (), force, "copy the checkpoint to a folder of your own")


def parse_command(text: str | None, names: tuple[str, ...], default: tuple[float, ...]) -> tuple[float, ...] | None:
    """The command of ``--eval_command name=value,...``; names left out keep the checkpoint's value."""
    values, seen = dict(zip(names, default, strict=True)), set()
    for part in () if text is None else text.split(","):
        name, _, value = part.partition("=")
        if name in seen:
            raise UserError(f"--eval_command '{shorten(str(text))}': {shorten(name)} is given twice; leave one out")
        seen.add(name)
        if name.strip() not in values:
            known = ", ".join(names) or "none, its policy takes no command"
            raise UserError(
                f"--eval_command '{shorten(part)}': unknown name '{shorten(name.strip())}'; this checkpoint knows: {known}"
            )
        values[name.strip()] = _number(value, part, f"write {name.strip()}=250")
    return tuple(values.values()) or None


def _number(text: str, asked: str, remedy: str) -> float:
    """A value of a command, which networks shall compute with."""
    try:
        value = float(text)
    except ValueError as error:
        raise UserError(f"--eval_command '{shorten(asked)}': '{shorten(text)}' is not a number; {remedy}") from error
    if not abs(value) <= WHOLE:
        raise UserError(f"--eval_command '{shorten(asked)}': {value} is not within {-WHOLE:,} .. {WHOLE:,}; {remedy}")
    return value


@dataclass(frozen=True)
class _Checkpoint:
    """A checkpoint ready to play. ``play(asked, episodes)``: episodes of each (command, mode), on the same seeds."""

    path: Path
    method: Method
    num_workers: int

    def requests(self, episodes: int, command: tuple[float, ...] | None, mode: ActionMode) -> list[Request]:
        return evaluation_requests(self.method.seed, "final evaluation", 0, episodes, command, mode)

    def play(self, asked: Sequence[tuple[tuple[float, ...] | None, ActionMode]], episodes: int) -> list[list[Episode]]:
        requests = [request for command, mode in asked for request in self.requests(episodes, command, mode)]
        collector = self.method.collector(self.num_workers)
        with contextlib.closing(collector):
            played = collector.collect(requests, self.method.policy.state_dict(), version=0)
        return [played[i : i + episodes] for i in range(0, len(played), episodes)]

    def about(self) -> dict[str, Any]:
        return {
            "checkpoint": str(self.path),
            "implementation": self.method.implementation,
            "gamename": self.method.gamename,
            "env_steps": int(self.method.env_steps),
        }


def _open(path: Path, num_workers: int) -> _Checkpoint:
    quiet_lightning()
    torch.set_num_threads(1)
    method = load_method(path)
    method.prepare_evaluation()
    return _Checkpoint(path, method, num_workers)


def evaluate(path: Path, episodes: int, command_text: str | None, num_workers: int, force: bool = False) -> dict[str, Any]:
    """Evaluates the checkpoint at ``path``, sampled and greedy on the same environment seeds; the report.

    force: files of the same names beside it, which no evaluation has written, are overwritten.
    """
    checkpoint = _open(path, num_workers)
    out, film = beside(path, "evaluation.json", force), path.parent / "evaluation.mp4"
    out.check(out.path, _owned_report)
    out.check(film, lambda _: _owned_report(out.path))
    method = checkpoint.method
    command = parse_command(command_text, method.command_names, method.first_command() or ())
    sampled, greedy = checkpoint.play([(command, "sampled"), (command, "greedy")], episodes)
    filmed = can_film(method.spec)
    if filmed:
        behind = Player(method.spec, method.policy, next_command=method.command_rule())
        record_episode(behind, checkpoint.requests(1, command, "sampled")[0], film)
    report = {
        **checkpoint.about(),
        "episodes": episodes,
        "command": dict(zip(method.command_names, command or (), strict=True)),
        "sampled": _statistics(sampled),
        "greedy": _statistics(greedy),
        "video": str(film) if filmed else None,
    }
    out.write(File(out.path, (json.dumps(report, indent=2) + "\n").encode(), _owned_report))
    return report


def parse_sweep(text: str | None) -> tuple[float, ...] | None:
    """The limits of ``sweep=LOW:HIGH``, none of a plain ``sweep``; None for any other ``--eval_command``."""
    name, equals, limits = (text or "").partition("=")
    if name != "sweep":
        return None
    if not equals:
        return ()
    remedy = "expected sweep or sweep=LOW:HIGH, e.g. sweep=-300:300"
    if limits.count(":") != 1:
        raise UserError(f"--eval_command '{shorten(str(text))}': {remedy}")
    low, high = (_number(limit, str(text), remedy) for limit in limits.split(":"))
    if not low < high:
        raise UserError(f"--eval_command '{shorten(str(text))}': {low:g} is not below {high:g}; {remedy}")
    return low, high


def sweep(path: Path, episodes: int, num_workers: int, *asked: float, force: bool = False) -> dict[str, Any]:
    """Plays the checkpoint at ``path`` under commands over its whole range, actions sampled; the report.

    The first command value goes from the lowest to the highest that training saw, or over the two limits that are
    ``asked``; the others keep the checkpoint's.
    """
    checkpoint = _open(path, num_workers)
    out = beside(path, "sweep", force)
    out.check(path.parent / "sweep.png", owned_picture)  # before the work
    method, first = checkpoint.method, checkpoint.method.first_command()
    limits = method.command_limits()
    if first is None or limits is None:
        raise UserError(f"--eval_command sweep: the policy of '{path}' takes no command; leave it out")
    low, high = asked or limits
    commands = [(value, *first[1:]) for value in np.linspace(low, high, SWEEP_POINTS).tolist()]
    played = checkpoint.play([(command, "sampled") for command in commands], episodes)
    rows = [(command[0], *_mean_and_sd(group)) for command, group in zip(commands, played, strict=True)]
    report = {
        **checkpoint.about(),
        "episodes": episodes,
        "command_name": method.command_names[0],
        "rows": [dict(zip(("commanded", "obtained_mean", "obtained_sd"), row, strict=True)) for row in rows],
        "picture": str(path.parent / "sweep.png"),
    }
    from lightning_rl.lab.figures.commands import draw_sweep  # matplotlib, which training does without

    draw_sweep(out, report)
    return report


def _mean_and_sd(episodes: Sequence[Episode]) -> tuple[float, float]:
    stats = summarise([episode.ret for episode in episodes])
    return stats["mean"], stats["sd"]


def _owned_report(path: Path) -> bool:
    """Whether an ``evaluation.json`` is one of ours."""
    try:
        content = json.loads(read_text(path, "report"))
    except (UserError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"checkpoint", "implementation", "gamename", "episodes"} <= content.keys()


def _statistics(episodes: list[Episode]) -> dict[str, Any]:
    returns, lengths = [e.ret for e in episodes], [e.env_steps for e in episodes]
    return {"return": summarise(returns), "length": summarise(lengths), "returns": returns, "lengths": lengths}


def print_report(report: Mapping[str, Any]) -> None:
    """The table that ``--eval_agent`` shows."""
    command = ", ".join(f"{name} {value:g}" for name, value in report["command"].items())
    title = f"{report['implementation']} on {report['gamename']}, {report['episodes']} episodes each"
    table = Table(title=title, caption=f"command: {command}" if command else None)
    columns = ("mean", "sd", "median", "iqm", "min", "max")
    for heading in ("", *columns, "length (min-max)"):
        table.add_column(heading, justify="right" if heading else "left")
    for mode in ("sampled", "greedy"):
        stats = report[mode]
        length = "{mean:.0f} ({min:.0f}-{max:.0f})".format(**stats["length"])
        table.add_row(mode, *(f"{stats['return'][key]:.1f}" for key in columns), length)
    put(table, f"video: {report['video'] or 'none, this environment cannot render'}")


def print_sweep(report: Mapping[str, Any]) -> None:
    """The table that ``--eval_command sweep`` shows."""
    title = f"{report['implementation']} on {report['gamename']}, {report['episodes']} episodes per command"
    table = Table(title=title)
    for heading in (f"commanded {report['command_name']}", "obtained return", "sd"):
        table.add_column(heading, justify="right")
    for row in report["rows"]:
        table.add_row(f"{row['commanded']:.2f}", f"{row['obtained_mean']:.1f}", f"{row['obtained_sd']:.1f}")
    put(table, f"picture: {report['picture']}")
