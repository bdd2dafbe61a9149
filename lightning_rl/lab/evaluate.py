"""Evaluating a trained policy: ``evaluate`` gives a report; ``lightning-rl eval`` writes it beside
the checkpoint, with a film.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lightning_rl.core.checks import check_weights, check_workers, whole_number
from lightning_rl.core.console import Advance, counting, silent
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import lacking
from lightning_rl.core.limits import EPISODES, shown
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.envs.gym import can_film
from lightning_rl.functional.statistics import summarise
from lightning_rl.lab.beside import beside, owned_report, report_file
from lightning_rl.lab.evaluation import Evaluation
from lightning_rl.lab.tables import Rows, put_rows
from lightning_rl.lab.words import asked_text, exact, in_words, parse_command
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.run.acting import LoadedAgent, load
from lightning_rl.run.asking import Asked, asked_names, full_command
from lightning_rl.run.callbacks import record_episode
from lightning_rl.run.loading import load_method

if TYPE_CHECKING:
    from lightning_rl.run.train import Run

_AT_ONCE = 20  # episodes of a collection


def evaluate(
    agent: str | Path | Method | LoadedAgent | Run,
    episodes: int = 100,
    command: Mapping[str, float] | None = None,
    num_workers: int = 0,
) -> Evaluation:
    """Plays a trained policy, with sampled and with greedy actions on the same environment seeds.
    Writes nothing.

    Args:
        agent: what ``load`` takes (path, name or run), what it gave, or a method.
        episodes: how many of each mode.
        command: its values by name, e.g. ``{"return": 150}``; those left out keep the checkpoint's.
        num_workers: processes that play episodes; 0: this one. Results do not depend on it.

    Returns:
        A dict: implementation, gamename, env_steps, episodes, command; ``sampled`` and ``greedy``,
        each with the statistics ``return`` and ``length`` (mean, sd, median, iqm, min, max) and the
        single ``returns`` and ``lengths``; of PCN also ``objectives``, the statistics of each.

    Raises:
        UserError: no checkpoint of this version, a command that its policy does not know, or
            weights that are not float32.
    """
    episodes = whole_number("episodes", episodes, 1, EPISODES)
    num_workers = check_workers(num_workers)
    if isinstance(agent, str | Path):
        agent = load(agent)
    try:
        method = getattr(agent, "method", agent)
    except Exception:  # of a class of the user's
        method = None
    if not isinstance(method, Method):
        raise UserError(
            f"evaluate({shown(agent)}): give a path, a method, or an agent or run that has one"
        )
    check_weights(method)
    if not isinstance(agent, LoadedAgent):  # which is prepared
        method.prepare_evaluation()
    return Evaluation(_report(method, {} if command is None else command, episodes, num_workers))


def _report(
    method: Method,
    command: Mapping[str, float],
    episodes: int,
    num_workers: int,
    advance: Advance = silent,
) -> dict[str, Any]:
    asked = full_command(method, command)
    both: list[tuple[Asked, ActionMode]] = [(asked, "sampled"), (asked, "greedy")]
    sampled, greedy = play(method, both, episodes, num_workers, advance)
    return {
        **about(method),
        "episodes": episodes,
        "command": asked.by_name(method.command_names),
        "sampled": _statistics(method, sampled),
        "greedy": _statistics(method, greedy),
    }


def play(
    method: Method,
    asked: Sequence[tuple[Asked, ActionMode]],
    episodes: int,
    num_workers: int,
    advance: Advance = silent,
) -> list[list[Episode]]:
    """``episodes`` episodes for each command and mode, all on the same environment seeds."""
    requests = []
    for command, mode in asked:
        requests += requests_of(method, episodes, command, mode)
    played = collected(method, requests, num_workers, advance)
    return [played[i : i + episodes] for i in range(0, len(played), episodes)]


def collected(
    method: Method, requests: Sequence[Request], num_workers: int, advance: Advance
) -> list[Episode]:
    """The episodes of requests; ``advance`` is told of each fifth at least."""
    episodes: list[Episode] = []
    policy = method.policy.state_dict()
    at_once = min(_AT_ONCE, math.ceil(len(requests) / 5))
    with contextlib.closing(method.collector(num_workers)) as collector:
        for first in range(0, len(requests), at_once):
            chunk = requests[first : first + at_once]
            episodes += collector.collect(chunk, policy, version=0)
            advance(len(chunk), f"return {three_digits(episodes[-1].ret)}")
    return episodes


def requests_of(method: Method, episodes: int, asked: Asked, mode: ActionMode) -> list[Request]:
    """The episodes of an evaluation."""
    command, guidance = asked
    return evaluation_requests(
        method.seed, "final evaluation", 0, episodes, command, mode, guidance
    )


def about(method: Method) -> dict[str, Any]:
    """What a report says of the method that has played."""
    facts = {
        "implementation": method.implementation,
        "gamename": method.gamename,
        "env_steps": int(method.env_steps),
    }
    loop = getattr(method, "inner_loop", None)
    if loop is not None:  # of methods that learn a proxy: who plays has learned on it
        facts["agent"] = loop.agents[0][0]
    return facts


def _statistics(method: Method, episodes: Sequence[Episode]) -> dict[str, Any]:
    returns = [episode.ret for episode in episodes]
    lengths = [episode.env_steps for episode in episodes]
    statistics: dict[str, Any] = {
        "return": summarise(returns),
        "length": summarise(lengths),
        "returns": returns,
        "lengths": lengths,
    }
    names = method.objectives
    if names:
        obtained = np.stack([np.asarray(episode.rewards).sum(0) for episode in episodes])
        means = zip(names, obtained.T.tolist(), strict=True)
        statistics["objectives"] = {name: summarise(values) for name, values in means}
    return statistics


def evaluate_checkpoint(
    path: Path, episodes: int, command_text: str | None, num_workers: int, force: bool = False
) -> dict[str, Any]:
    """``evaluate`` under ``name=value,...``, with ``evaluation.json`` and a film beside the
    checkpoint; the report names both.

    The files of a command are named by it (``evaluation_return=150.json``), so that commands can be
    compared; those of another checkpoint than a run's last by that, too
    (``evaluation_epoch=40.json``). force: overwrite files of these names that no evaluation has
    written.
    """
    method = load_method(path)
    given = parse_command(command_text, asked_names(method))
    words = [f"{name}={exact(value)}" for name, value in given.items()]
    out = beside(path, ["evaluation", *words], force)
    kept = Path(f"{out.path}.json")
    film = Path(f"{out.path}.mp4")
    out.check(kept, owned_report)  # before the work
    out.check(film, lambda _: owned_report(kept))
    method.prepare_evaluation()
    report: dict[str, Any] = {"checkpoint": str(path), "asked": given}
    with counting(2 * episodes, "episodes") as advance:
        report |= _report(method, given, episodes, num_workers, advance)
    report["video"] = None
    # Before the environment's own code draws: what was played is not lost.
    out.write(report_file(kept, report))
    if can_film(method.spec) and lacking("a film", "moviepy") is None:
        say("filming an episode ..")
        (request,) = requests_of(method, 1, full_command(method, given), method.action_mode)
        record_episode(method, request, film, asked_text(given))
        report["video"] = str(film)
        out.write(report_file(kept, report))
    return report


def print_report(report: Mapping[str, Any]) -> None:
    """The table that ``--eval_agent`` shows."""
    played = report["command"]
    command = in_words(played)
    caption = f"command: {command}" if command else None
    if any(played.get(name) != value for name, value in report["asked"].items()):
        # Of a calibrated policy.
        caption = f"asked: {in_words(report['asked'])}, which is the command {command}"
    columns = ("mean", "sd", "median", "iqm", "min", "max")
    rows: Rows = [("", *columns, "length (min-max)")]
    for mode in ("sampled", "greedy"):
        stats = report[mode]
        length = "{mean:.0f} ({min:.0f}-{max:.0f})".format(**stats["length"])
        rows.append([mode, *(three_digits(stats["return"][key]) for key in columns), length])
        for name, of_it in stats.get("objectives", {}).items():
            rows.append([f"  {name}", *(three_digits(of_it[key]) for key in columns), ""])
    player = f", a {report['agent']} agent that learned on its proxy" if "agent" in report else ""
    title = f"{report['implementation']} on {report['gamename']}{player}"
    no_film = lacking("a film", "moviepy") or "this environment cannot render"
    film = f"video: {report['video'] or f'none, {no_film}'}"
    put_rows(rows, f"{title}, {report['episodes']} episodes each", caption, end=film)
