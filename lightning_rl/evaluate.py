"""``--eval_agent``: plays a checkpoint, prints a table, writes ``evaluation.json`` and a film beside it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lightning_rl.callbacks.checkpoints import read_checkpoint
from lightning_rl.data.episodes import Player, record_episode
from lightning_rl.envs.gym import can_film
from lightning_rl.functional.statistics import summarise
from lightning_rl.methods.base import Method, evaluation_requests
from lightning_rl.registry import implementation
from lightning_rl.run import quiet_lightning
from lightning_rl.types import Episode, UserError


def load_method(path: Path) -> Method:
    """The method of a checkpoint, with its weights and counters."""
    checkpoint = read_checkpoint(path)
    hparams = checkpoint["hyper_parameters"]["hparams"]
    try:
        method = implementation(hparams["implementation"]).method(hparams)
        method.load_state_dict(checkpoint["state_dict"])
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"checkpoint '{path}' does not fit this version's {hparams['implementation']}: {reason}") from error
    return method


def parse_command(text: str | None, names: tuple[str, ...], default: tuple[float, ...]) -> tuple[float, ...] | None:
    """The command of ``--eval_command name=value,...``; names left out keep the checkpoint's value."""
    values = dict(zip(names, default, strict=True))
    for part in text.split(",") if text else ():
        name, _, value = part.partition("=")
        if name.strip() not in values:
            known = ", ".join(names) or "none, its policy takes no command"
            raise UserError(f"--eval_command '{part}': unknown name '{name.strip()}'; this checkpoint knows: {known}")
        try:
            values[name.strip()] = float(value)
        except ValueError as error:
            raise UserError(f"--eval_command '{part}': '{value}' is not a number; write {name.strip()}=250") from error
    return tuple(values.values()) or None


def evaluate(path: Path, episodes: int, command_text: str | None, num_workers: int) -> dict[str, Any]:
    """Evaluates the checkpoint at ``path``, sampled and greedy on the same environment seeds; the report."""
    quiet_lightning()
    torch.set_num_threads(1)
    method = load_method(path)
    hparams = method.hparams["hparams"]
    _, evaluation = implementation(hparams["implementation"]).make_loaders(method, num_workers)
    command = parse_command(command_text, method.command_names, tuple(evaluation.command() or ()))
    requests = evaluation_requests(hparams["seed"], "final evaluation", 0, episodes, command)
    collector = evaluation.collector
    with contextlib.closing(collector):
        played = collector.collect(requests, method.policy.state_dict(), version=0)
    spec, film = collector.player.spec, path.parent / "evaluation.mp4"
    filmed = can_film(spec)
    if filmed:
        record_episode(Player(spec, method.policy, next_command=collector.player.next_command), requests[0], film)
    report = {
        "checkpoint": str(path),
        "implementation": hparams["implementation"],
        "gamename": hparams["gamename"],
        "env_steps": int(method.env_steps),
        "episodes": episodes,
        "command": dict(zip(method.command_names, command or (), strict=True)),
        "sampled": _statistics([e for e in played if e.request.mode == "sampled"]),
        "greedy": _statistics([e for e in played if e.request.mode == "greedy"]),
        "video": str(film) if filmed else None,
    }
    target = path.parent / "evaluation.json"
    temporary = target.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(report, indent=2) + "\n")
    temporary.replace(target)
    return report


def _statistics(episodes: list[Episode]) -> dict[str, Any]:
    returns, lengths = [e.ret for e in episodes], [e.length for e in episodes]
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
    console = Console()
    console.print(table)
    console.print(f"video: {report['video'] or 'none, this environment cannot render'}", soft_wrap=True)
