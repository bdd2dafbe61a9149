"""Whole training loops, as ``trainer.py`` runs them, with logs and checkpoints, beside the
simulator alone.

The simulator alone replays flights of the policy that the loop had at its end, one simulator on
each core: the same physics without policy, updates and processes. Policy gradients start from a
policy that was trained here before, and stay with it: the episodes of an untrained one are a third
as long.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from harness import ANOTHER, NOTHING, Spread, Table, number
from pytorch_lightning.loggers import Logger

from lightning_rl.core.gamenames import register_env
from lightning_rl.core.workers import cores
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.rollouts.player import Player
from lightning_rl.run.logger import RunLogger
from lightning_rl.run.options import RunOptions
from lightning_rl.run.runtime import prepare_process
from lightning_rl.run.state import LAST
from lightning_rl.run.train import Run, run_training

CHAINED = "lunarlander-chained"
Flight = tuple[int, list[Any]]
"""The seed of an environment, and the actions of an episode."""

GOALS = {"UDRL": "0.25 s / epoch; a share of 0.45", "RCP-A": "3.5 minutes for a million"}
FLIGHTS = 16


class ChainedFlights(gymnasium.Wrapper[Any, Any, Any, Any]):
    """LunarLander where a new flight follows the last until the time limit: 500 steps always, as
    in the middle of training.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            gymnasium.make("LunarLander-v3", disable_env_checker=True, **kwargs).unwrapped
        )

    def step(self, action: Any) -> Any:
        obs, reward, terminated, _, info = self.env.step(action)
        if terminated:
            obs, _ = self.env.reset()
        return obs, reward, False, False, info


register_env(CHAINED, ChainedFlights, horizon=500, max_return=320.0)


@dataclass(frozen=True)
class Loop:
    """A run to be timed. skip: its first epochs, with the warm-up and the start of the workers."""

    name: str
    implementation: str
    gamename: str
    settings: Mapping[str, Any]
    skip: int
    num_workers: int = min(cores(), 2)  # as by default
    preset: str | None = None
    train_episodes: int = 0
    """Of the policy that it starts from; 0: from a fresh one."""


class Stamps(Logger):
    """When each epoch ended, and after how many steps and episodes.

    A logger, as evaluations make training wait where there are callbacks.
    """

    name, version = "stamps", 0

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[tuple[float, int, int]] = []

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None: ...

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        if step is not None and "time/episodes" in metrics:
            self.ends.append((time.perf_counter(), step, int(metrics["time/episodes"])))


def train(
    loop: Loop,
    settings: Mapping[str, Any],
    folder: Path,
    stamps: Stamps,
    reload: Path | None = None,
) -> Run:
    """The run of a loop with these settings."""
    options = RunOptions(
        loop.implementation,
        loop.gamename,
        preset=loop.preset,
        num_workers=loop.num_workers,
        logdir=folder,
        settings=settings,
        reload=reload,
    )
    return run_training(options, logger=[RunLogger(options), stamps])


def run(loop: Loop, policy: Path | None) -> tuple[Method, dict[str, float]]:
    """The method at the end; seconds for an environment step, an episode and an epoch, and the
    share of the cores' time that the whole run has used.
    """
    stamps = Stamps()
    cpu, began = cpu_seconds(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        method = train(loop, loop.settings, Path(folder), stamps, policy).method
    busy = (cpu_seconds() - cpu) / (time.perf_counter() - began)
    ends = stamps.ends[loop.skip :]
    (began, first_step, first_episode), (ended, last_step, last_episode) = ends[0], ends[-1]
    seconds = ended - began
    return method, {
        "busy": busy / cores(),
        "step": seconds / (last_step - first_step),
        "episode": seconds / (last_episode - first_episode),
        "epoch": statistics.median(
            after[0] - before[0] for before, after in itertools.pairwise(ends)
        ),
    }


def cpu_seconds() -> float:
    """Of this process and of those that it has started and seen end."""
    return sum(os.times()[:4])


def flights_of(method: Method) -> list[Flight]:
    """Episodes of the method's policy, to be flown again without it."""
    player = Player(method.spec, method.policy, next_command=method.command_rule())
    requests = evaluation_requests(0, "benchmark", 0, FLIGHTS, method.first_command(), "sampled")
    return [
        (episode.request.seed % 2**31, episode.action.tolist()) for episode in player.play(requests)
    ]


def replay(gamename: str, flights: Sequence[Flight], seconds: float) -> float:
    """Steps of one bare simulator in a second, over so many seconds."""
    env, steps, started = rollout_env(env_spec(gamename)), 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for seed, actions in flights:
            env.reset(seed=seed)
            for action in actions:
                env.step(action)
            steps += len(actions)
    return steps / (time.perf_counter() - started)


def bare(gamename: str, flights: Sequence[Flight], seconds: float) -> float:
    """Seconds for a step of one bare simulator on each core, together."""
    with multiprocessing.Pool(cores()) as pool:
        alone = functools.partial(replay, gamename, seconds=seconds)
        return 1 / sum(pool.map(alone, [flights] * cores(), chunksize=1))


def loops(smoke: bool) -> list[Loop]:
    """What is timed. UDRL: the published workload, 20 episodes and 100 updates of 768 an epoch."""
    never: dict[str, Any] = {"eval_interval": 10**6, "checkpoint_interval": 10**6}
    published = {
        "num_episodes_per_iter": 20,
        "num_updates_per_iter": 100,
        "batch_size": 768,
        "replay_size": 500,
        **never,
    }
    published |= (
        {"max_epochs": 3, "num_episodes_per_iter": 2, "learning_starts": 2}
        if smoke
        else {"max_epochs": 27}
    )
    frozen = {**never, "learning_rate": 1e-9, "max_episodes": 32 if smoke else 800}
    steps, episodes, skip = (6_000, 16, 1) if smoke else (80_000, 2000, 3)
    return [
        Loop("UDRL", "UDRL", CHAINED, published, skip),
        Loop("UDRL, no overlap", "UDRL", CHAINED, {**published, "overlap": False}, skip),
        Loop("RCP-A", "RCP-A", "lunarlander", {"max_env_steps": steps}, skip),
        Loop("AAC", "AAC", "beresheet", frozen, skip, preset="tuned", train_episodes=episodes),
        Loop(
            "REINFORCE-combined",
            "REINFORCE-combined",
            "beresheet",
            frozen,
            skip,
            preset="tuned",
            train_episodes=episodes,
        ),
    ]


def trained(loop: Loop, folder: Path) -> Path | None:
    """The checkpoint of the policy that a loop starts from."""
    if loop.train_episodes == 0:
        return None
    settings = {"max_episodes": loop.train_episodes, "eval_interval": 10**6}
    return train(loop, settings, folder, Stamps()).path / LAST


def measured(
    every: Sequence[Loop], rounds: int, bare_seconds: float
) -> dict[str, dict[str, Spread]]:
    """Of each loop the spread of its measures and of the simulator's, ``bare``, all in turns."""
    values: dict[str, dict[str, list[float]]] = {loop.name: {} for loop in every}
    flights: dict[str, list[Flight]] = {}
    with tempfile.TemporaryDirectory() as folder:
        policies = {loop.name: trained(loop, Path(folder)) for loop in every}
        for loop in [*every] * rounds:
            method, seconds = run(loop, policies[loop.name])
            flights.setdefault(loop.name, flights_of(method))
            seconds["bare"] = bare(loop.gamename, flights[loop.name], bare_seconds)
            for name, value in seconds.items():
                values[loop.name].setdefault(name, []).append(value)
    return {
        loop: {name: Spread.of(each) for name, each in found.items()}
        for loop, found in values.items()
    }


def tables(smoke: bool) -> Iterator[Table]:
    """Of all loops."""
    prepare_process()
    every = loops(smoke)
    found = measured(every, *((1, 0.1) if smoke else (3, 2.0)))
    rows = []
    for loop in every:
        each = found[loop.name]
        share = each["bare"].median / each["step"].median
        length = each["episode"].median / each["step"].median
        cells = (
            each["step"].per_second(),
            each["episode"].per_second(),
            each["epoch"],
            each["bare"].per_second(),
        )
        goal = GOALS.get(loop.name, NOTHING)
        rows.append(
            [
                loop.name,
                str(loop.num_workers),
                *map(str, cells),
                number(share),
                number(each["busy"].median),
                goal,
                number(length),
            ]
        )
    steps = every[2].settings["max_env_steps"]
    million = found["RCP-A"]["step"].times(1e6 / 60)
    about = (
        f"Seconds on the wall, on {cores()} cores. UDRL: 20 episodes of 500 steps and 100 updates "
        "of 768 an epoch. RCP-A: the "
        f"first {steps:,} steps of LunarLander, evaluations included; at that rate a million would "
        f"take {million} minutes (whole "
        "runs: `make speedrun`). AAC and REINFORCE-combined: preset tuned, a policy trained "
        "before; the course's published "
        f"logs show 3 to 18 episodes a second {ANOTHER}. Limit: bare simulators, one a core, on "
        "flights of the same policy. Cores busy: by the whole run, with its start."
    )
    header = [
        "",
        "workers",
        "steps / s",
        "episodes / s",
        "s / epoch",
        "limit, steps / s",
        "share of it",
        "cores busy",
        "goal",
        "length",
    ]
    yield Table("Whole loops beside the simulator", about, header, rows)
