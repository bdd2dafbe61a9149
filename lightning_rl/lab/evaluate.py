"""Evaluating a trained policy: ``evaluate`` gives a report; ``lightning-rl eval`` writes it beside
the checkpoint, with a film.

``--eval_command sweep`` plays a checkpoint under a range of commands instead and draws the obtained
return of each.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from lightning_rl.core.checks import check_weights, check_workers, whole_number
from lightning_rl.core.console import Advance, counting, silent
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import lacking, require
from lightning_rl.core.files import read_text, refuse_foreign, write_plain
from lightning_rl.core.limits import EPISODES, WHOLE, shorten, shown
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.outputs import File, Out, owned_numbers, owned_picture
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.envs.gym import can_film
from lightning_rl.functional.statistics import summarise
from lightning_rl.lab.evaluation import Evaluation
from lightning_rl.lab.obedience import CALIBRATION_EPISODES, calibrate, misses, obedience
from lightning_rl.lab.tables import put_rows
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.run.acting import LoadedAgent, load
from lightning_rl.run.asking import Asked, asked_names, full_command, unknown_name
from lightning_rl.run.callbacks import record_episode
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import is_shipped, results_folder
from lightning_rl.run.state import LAST, WEIGHTS, read_state

if TYPE_CHECKING:
    from lightning_rl.run.train import Run

SWEEP_POINTS, SWEEP_MOST = 13, 16
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
        **_about(method),
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


def _about(method: Method) -> dict[str, Any]:
    about = {
        "implementation": method.implementation,
        "gamename": method.gamename,
        "env_steps": int(method.env_steps),
    }
    loop = getattr(method, "inner_loop", None)
    if loop is not None:  # of methods that learn a proxy: who plays has learned on it
        about["agent"] = loop.agents[0][0]
    return about


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


def parse_command(text: str | None, names: Sequence[str]) -> dict[str, float]:
    """The values that ``--eval_command name=value,...`` gives."""
    given: dict[str, float] = {}
    for part in [] if text is None else text.split(","):
        name, equals, value = part.partition("=")
        name = name.strip()
        if name in given:
            raise UserError(
                f"command '{shorten(str(text))}': {shorten(name)} is given twice; leave one out"
            )
        if not equals:
            example = names[0] if names else "NAME"
            raise UserError(f"command '{shorten(part)}': expected {example}=VALUE")
        if name not in names:
            raise UserError(f"command '{shorten(part)}': {unknown_name(name, names)}")
        example = "1.5" if name == "advantage" else "250"
        given[name] = _number(value, part, f"write {name}={example}")
    return given


def _number(text: str, asked: str, remedy: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UserError(
            f"command '{shorten(asked)}': '{shorten(text)}' is not a number; {remedy}"
        ) from error


def parse_sweep(text: str | None) -> tuple[float, ...] | None:
    """The commands of ``sweep=A,B,...``, or 13 of ``sweep=LOW:HIGH``, none of a plain ``sweep``;
    None for any other text.
    """
    name, equals, points = (text or "").partition("=")
    if name != "sweep":
        return None
    if not equals:
        return ()
    remedy = "expected sweep, sweep=LOW:HIGH or sweep=A,B,..., e.g. sweep=-300:300"
    ranged = ":" in points
    words = points.split(":" if ranged else ",")
    values = tuple(_number(word, str(text), remedy) for word in words)

    def refusal(fault: str) -> UserError:
        return UserError(f"command '{shorten(str(text))}': {fault}{remedy}")

    if not all(abs(value) <= WHOLE for value in values):
        raise refusal(f"not all of it is within {-WHOLE:,} .. {WHOLE:,}; ")
    if not 2 <= len(values) <= (2 if ranged else SWEEP_MOST):
        raise refusal("")
    for low, high in itertools.pairwise(values):
        if not low < high:
            raise refusal(f"{low:g} is not below {high:g}; ")
    return _evenly(*values) if ranged else values


def _evenly(low: float, high: float) -> tuple[float, ...]:
    """The commands of a sweep over a range."""
    return tuple(np.linspace(low, high, SWEEP_POINTS).tolist())


def beside(checkpoint: Path, words: Sequence[str], force: bool) -> Out:
    """A file in the folder of a checkpoint, or in the results folder of an agent of the package,
    named by ``words``.

    After the first word comes the checkpoint's name, unless it is a run's last: results of one do
    not replace another's.
    """
    words = list(words)
    if checkpoint.name != LAST and not is_shipped(checkpoint):
        words.insert(1, checkpoint.stem)
    remedy = "copy the checkpoint to a folder of your own"
    return Out(results_folder(checkpoint) / "_".join(words), (), force, remedy)


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
    out.check(kept, _owned_report)  # before the work
    out.check(film, lambda _: _owned_report(kept))
    about = {"checkpoint": str(path), "asked": given}
    method.prepare_evaluation()
    with counting(2 * episodes, "episodes") as advance:
        played = _report(method, given, episodes, num_workers, advance)
    report = {**about, **played, "video": None}
    # Before the environment's own code draws: what was played is not lost.
    out.write(_report_file(kept, report))
    if can_film(method.spec) and lacking("a film", "moviepy") is None:
        say("filming an episode ..")
        (request,) = requests_of(method, 1, full_command(method, given), method.action_mode)
        record_episode(method, request, film, asked_text(given))
        report["video"] = str(film)
        out.write(_report_file(kept, report))
    return report


def exact(value: float) -> str:
    """A number for a file name: in short form where that is exact, else in full."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _report_file(path: Path, report: Mapping[str, Any]) -> File:
    return File(path, (json.dumps(report, indent=2) + "\n").encode(), _owned_report)


def asked_text(given: Mapping[str, float]) -> str | None:
    """What was asked for, in words; None: what the checkpoint's command says."""
    return f"return {given['return']:g}" if given.keys() == {"return"} else None


def _owned_report(path: Path) -> bool:
    """Whether a file is the report of an evaluation."""
    try:
        content = json.loads(read_text(path, "report"))
    except (UserError, ValueError, RecursionError):
        return False
    keys = {"checkpoint", "implementation", "gamename", "episodes"}
    return isinstance(content, dict) and keys <= content.keys()


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
    out.check(kept, _owned_report)
    out.check(Path(f"{out.path}.csv"), owned_numbers(picture, picture.with_suffix(".svg")))
    if method.objectives:
        return _sweep_front(method, path, episodes, num_workers, out, values)
    calibration = method.calibrated()
    limits = method.command_limits() if calibration is None else calibration.limits
    if limits is None:
        raise UserError(f"command sweep: the policy of '{path}' takes no command; leave it out")
    name = method.command_names[0] if calibration is None else "return"
    values = values or _evenly(*limits)
    commands = [full_command(method, {name: value}) for value in values]
    asked: list[tuple[Asked, ActionMode]] = [(command, "sampled") for command in commands]
    obtained = []
    rows = []
    with counting(len(asked) * episodes, "episodes") as advance:
        of_each = play(method, asked, episodes, num_workers, advance)
    for value, played in zip(values, of_each, strict=True):
        returns = [episode.ret for episode in played]
        obtained.append(returns)
        rows.append(
            {
                "commanded": value,
                "obtained_mean": float(np.mean(returns)),
                "obtained_sd": float(np.std(returns, ddof=episodes > 1)),
                "episodes": episodes,
                **misses(value, returns),
            }
        )
    report = {
        "checkpoint": str(path),
        **_about(method),
        "episodes": episodes,
        "command_name": name,
        "rows": rows,
        "calibrated": calibration is not None,
        **obedience(values, obtained),
        "picture": str(picture),
    }
    # With matplotlib, which training does without.
    from lightning_rl.lab.figures.commands import draw_sweep

    draw_sweep(out, report)
    out.write(_report_file(kept, report))
    return report


def _sweep_front(
    method: Method,
    path: Path,
    episodes: int,
    num_workers: int,
    out: Out,
    values: Sequence[float] | None,
) -> dict[str, Any]:
    """The sweep of a policy of several objectives: at each command of its front."""
    from lightning_rl.lab.figures.front import draw_front
    from lightning_rl.lab.front import play_front

    if values:
        raise UserError(
            "command sweep: of several objectives it goes over the front; give sweep without "
            "values, or one command by name"
        )
    report = {
        "checkpoint": str(path),
        **_about(method),
        "episodes": episodes,
        **play_front(cast(Any, method), episodes, num_workers),
        "picture": f"{out.path}.png",
    }
    draw_front(out, report)
    out.write(_report_file(Path(f"{out.path}.json"), report))
    return report


def calibrate_checkpoint(path: Path, num_workers: int) -> tuple[float, float]:
    """Makes the checkpoint at ``path`` take returns as commands, see ``calibrate``; the lowest and
    the highest of them.

    The table is written into the checkpoint, of which nothing else changes. UserError where a run
    is at work in its folder, or the file has other weights when the table is there: that is of
    those which were played.
    """
    if is_shipped(path):
        raise UserError(
            "--calibrate: the agents of the package are what they are; give a checkpoint of your "
            "own"
        )
    if path.name == WEIGHTS:
        raise UserError(
            "--calibrate: an exported policy stays as it is; calibrate the checkpoint, then export"
        )
    elsewhere = "copy the checkpoint to a folder of your own and calibrate that"
    if read_state(path.parent)[0] == "running":
        raise UserError(
            f"--calibrate: a run is at work in '{path.parent}'; wait until it has ended, or "
            f"{elsewhere}"
        )
    refuse_foreign(path)
    method = load_method(path)
    if method.objectives:
        raise UserError(
            f"--calibrate: {method.implementation} is asked for returns as they are; leave it out, "
            "and see with --command sweep what it obtains"
        )
    if method.command_limits() is None:
        raise UserError(f"--calibrate: the policy of '{path}' takes no command; leave it out")
    with counting(CALIBRATION_EPISODES, "episodes") as advance:
        calibration = calibrate(method, num_workers, advance)
    limits = calibration.limits
    if limits is None:
        raise UserError(
            f"--calibrate: every command of '{path}' obtains the same return; train it longer"
        )
    checkpoint = read_checkpoint(path)
    played = method.state_dict()
    for name, value in checkpoint["state_dict"].items():
        if name not in played or not torch.equal(value, played[name]):
            raise UserError(
                f"--calibrate: '{path}' has other weights than those that were played; {elsewhere}"
            )
    for name, value in calibration.state_dict().items():
        checkpoint["state_dict"][f"calibration.{name}"] = value
    write_plain(path, checkpoint)
    return limits


def print_report(report: Mapping[str, Any]) -> None:
    """The table that ``--eval_agent`` shows."""
    played = report["command"]
    command = in_words(played)
    caption = f"command: {command}" if command else None
    if any(played.get(name) != value for name, value in report["asked"].items()):
        # Of a calibrated policy.
        caption = f"asked: {in_words(report['asked'])}, which is the command {command}"
    columns = ("mean", "sd", "median", "iqm", "min", "max")
    rows: list[Sequence[str]] = [("", *columns, "length (min-max)")]
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


def in_words(command: Mapping[str, float]) -> str:
    """A command as people read it, e.g. ``return 150, horizon 200``."""
    return ", ".join(f"{name} {value:g}" for name, value in command.items())


def print_sweep(report: Mapping[str, Any]) -> None:
    """The table that ``--eval_command sweep`` shows."""
    if "objectives" in report:
        from lightning_rl.lab.front import print_front

        return print_front(report)
    of_returns = report["command_name"] == "return"
    columns = ["mean obtained", "sd"]
    if of_returns:
        columns += ["episodes miss by", "within 25", "within 75"]
    rows: list[Sequence[str]] = [(f"commanded {report['command_name']}", *columns)]
    for row in report["rows"]:
        numbers = [three_digits(row["obtained_mean"]), three_digits(row["obtained_sd"])]
        if of_returns:
            numbers.append(three_digits(row["episode_error"]))
            numbers += [f"{row[name]:.0%}" for name in ("within_25", "within_75")]
        rows.append((f"{row['commanded']:.2f}", *numbers))
    title = f"{report['implementation']} on {report['gamename']}"
    end = f"{obedience_line(report)}\npicture: {report['picture']}"
    put_rows(rows, f"{title}, {report['episodes']} episodes per command", end=end)


def obedience_line(report: Mapping[str, Any]) -> str:
    """How well a policy obeyed in a sweep; other commands than returns cannot be compared with
    what was obtained, but ranked.
    """
    ranked = f"rank correlation of episodes {report['rank_correlation']:.2f}"
    if report["command_name"] != "return":
        return ranked
    names = ("episode_error", "worst_episode_error", "worst_asked", "error", "floor")
    digits = {name: three_digits(report[name]) for name in names}
    return (
        f"single episodes miss by {digits['episode_error']} on average, "
        f"{report['within_25']:.0%} by at most 25, {report['within_75']:.0%} by at most 75; "
        f"worst: {digits['worst_episode_error']}, for {digits['worst_asked']}\n"
        f"their means miss by {digits['error']} ({report['error_share']:.1%} of the range), of "
        f"which chance alone leaves {digits['floor']}; slope {report['slope']:.2f}, {ranked}"
    )
