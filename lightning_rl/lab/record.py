"""``lightning-rl record``: episodes of an agent, written as a dataset that others read."""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path

import numpy as np

from lightning_rl.core.console import counting
from lightning_rl.core.errors import UserError
from lightning_rl.core.kinds import MINARI, MINARI_ID
from lightning_rl.core.limits import shorten
from lightning_rl.core.lines import say
from lightning_rl.core.seeding import derive_seed, kept_generators
from lightning_rl.core.types import ActionMode, Request
from lightning_rl.envs.minari_data import (
    OwnEpisode,
    minari,
    recorded_env,
    shared_folder,
    write_minari,
)
from lightning_rl.lab.words import parse_command
from lightning_rl.methods.base import Method
from lightning_rl.run.asking import Asked, asked_names, full_command
from lightning_rl.run.loading import load_method
from lightning_rl.run.state import checkpoint_at

_AT_ONCE = 20  # episodes


def show(arguments: Namespace) -> None:
    """Records and says what was written."""
    minari()  # before the work
    folder, name = place_of(arguments.out)
    method = load_method(checkpoint_at(Path(arguments.agent)))
    mode: ActionMode = arguments.actions or method.action_mode
    if mode == "uniform" and arguments.command is not None:
        raise UserError(
            "--command goes with what an agent plays; leave it or --actions uniform out"
        )
    asked = full_command(method, parse_command(arguments.command, asked_names(method)))
    if mode == "uniform":
        asked = Asked()
    method.prepare_evaluation()
    episodes = record(method, arguments.episodes, arguments.seed, mode, asked)
    command = "".join(f", {key}={value:g}" for key, value in _numbers(method, asked).items())
    about = {
        "algorithm_name": "uniformly random" if mode == "uniform" else method.implementation,
        "description": f"{method.gamename}: {mode} actions{command}, seed {arguments.seed}",
    }
    write_minari(folder, name, method.spec, episodes, about)
    returns = [sum(episode.reward) for episode in episodes]
    steps = sum(len(episode.reward) for episode in episodes)
    source = shlex.quote(arguments.out if arguments.out.startswith(MINARI) else str(folder))
    say(
        f"{len(returns):,} episodes, {steps:,} steps, mean return {np.mean(returns):.1f}: {folder}",
        f"learn from it: lightning-rl train --gamename {method.gamename} --dataset {source}",
    )
    if callable(method.spec.env):
        say("its environment is a function, which Minari cannot recover; it has the spaces alone")


def place_of(out: str) -> tuple[Path, str]:
    """The folder of a new dataset, and its id; UserError for a name that Minari does not take, or
    a folder that is there.
    """
    shared = out.startswith(MINARI)
    folder = shared_folder() / out.removeprefix(MINARI) if shared else Path(out)
    name = out.removeprefix(MINARI) if shared else folder.name
    if not MINARI_ID.fullmatch(name):
        raise UserError(
            f"--out '{shorten(out)}': a dataset's name ends with its version; write, e.g., "
            f"{shorten(out)}-v0"
        )
    if folder.exists():
        raise UserError(f"--out '{folder}' is there already; choose another name or version")
    return folder, name


def record(
    method: Method, count: int, seed: int, mode: ActionMode, asked: Asked
) -> list[OwnEpisode]:
    """``count`` episodes of a policy, as its environment saw them; each a function of the seed and
    its number.
    """
    requests = []
    for number in range(count):
        name = f"recorded episode {number}"
        drawn = derive_seed(seed, "recording", number)
        requests.append(Request(name, drawn, mode, asked.command, guidance=asked.guidance))
    player = method.collector(0).player
    pairs = [recorded_env(method.spec) for _ in range(min(count, _AT_ONCE))]
    recorded = []
    with kept_generators(), counting(count, "episodes") as advance:
        for first in range(0, count, _AT_ONCE):
            chunk = requests[first : first + _AT_ONCE]
            played = player.play(chunk, [env for env, _ in pairs[: len(chunk)]])
            recorded += [inner.record for _, inner in pairs[: len(chunk)]]
            advance(len(chunk), f"return {np.mean([episode.ret for episode in played]):.1f}")
    for env, _ in pairs:
        env.close()
    return recorded


def _numbers(method: Method, asked: Asked) -> dict[str, float]:
    return {} if asked.command is None else asked.by_name(method.command_names)
