"""Learning curves of our stacked agents beside Stable-Baselines3's, with equal hyper-parameters and budgets.

    pip install -e '.[baselines]'
    python benchmarks/compare_learning.py pendulum-TD3 ours  # all seeds in one stack
    python benchmarks/compare_learning.py pendulum-TD3 sb3   # one seed after the other
    python benchmarks/report_learning.py                     # table and figure

Adds to a CSV (--out) the mean return of ten greedy test episodes (unless TASKS says otherwise) at equal intervals, and the CPU
seconds that a member's training took until then. Seeds that are there to the end are not trained again; what a stop has left
of another one is dropped.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from lightning_rl.agents.training import MemberTraining, evaluate_agents
from lightning_rl.core.files import write_text
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.registry import implementation
from lightning_rl.run.options import RunOptions, run_config
from lightning_rl.run.runtime import keep_freed_memory

COLUMNS = ("task", "agent", "library", "seed", "decisions", "return_mean", "cpu_seconds")
SEEDS = range(100, 110)


@dataclass(frozen=True)
class Task:
    """decisions: of each seed, over all training; an action may be repeated for several environment steps."""

    implementation: str
    gamename: str
    decisions: int
    tests: int = 10
    points: int = 20
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Any:
        whole = {**self.settings, "stop_rule": "none", "train_episodes": 100_000}
        return run_config(RunOptions(self.implementation, self.gamename, settings=whole))


TASKS = {
    f"{task.gamename}-{task.implementation}": task
    for task in (
        Task("TD3", "pendulum", 14_000),
        Task("TD3", "mountaincar-continuous", 50_000),
        Task("TD3", "halfcheetah", 40_000, tests=5, points=8, settings={"learning_starts": 5}),
        Task("PPO", "cartpole", 60_000),
        Task("PPO", "lunarlander", 102_400, points=10),
        Task("DDQN", "cartpole", 20_000),
        Task("DDQN", "acrobot", 20_000),
    )
}

Point = tuple[int, float, float]
"""Decisions, mean test return, CPU seconds of training."""


class Clock:
    """CPU seconds of the training, without the tests."""

    def __init__(self) -> None:
        self.seconds, self._since = 0.0, time.process_time()

    def pause(self) -> float:
        self.seconds += time.process_time() - self._since
        return self.seconds

    def go_on(self) -> None:
        self._since = time.process_time()


def test_seeds(seed: int, count: int) -> list[int]:
    """Seeds of the test environments of the agent ``seed``."""
    return [derive_seed(seed, "comparison", k) for k in range(count)]


def train_ours(task: Task, seeds: Sequence[int]) -> Iterator[tuple[int, Point]]:
    """(seed, point) of all members, trained in one stack."""
    cfg = task.config
    name, cls = task.implementation, implementation(task.implementation)
    method: Any = cls(task.gamename, implementation=name, seed=seeds[0], num_seeds=len(seeds), config=vars(cfg))
    training: MemberTraining = method.rollouts().training
    clock = Clock()
    for point in range(task.points):
        training.run(task.decisions * (point + 1) // task.points - training.step)
        seconds = clock.pause() / len(seeds)
        for seed, mean in zip(seeds, test_ours(method, task.tests), strict=True):
            yield seed, (training.step, mean, seconds)
        clock.go_on()


def test_ours(method: Any, count: int) -> list[float]:
    """Mean return of each member."""
    envs = make_envs(method.spec, [s for seed in method.seeds for s in test_seeds(seed, count)])
    return evaluate_agents(method.agent, envs, count)[0].mean(1).tolist()


def train_theirs(task: Task, seeds: Sequence[int]) -> Iterator[tuple[int, Point]]:
    """(seed, point) of one seed after the other."""
    import baselines
    from stable_baselines3.common.callbacks import BaseCallback

    cfg, spec = task.config, env_spec(task.gamename)
    due = [task.decisions * (point + 1) // task.points for point in range(task.points)]

    class Test(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.points: list[Point] = []
            self.clock = Clock()
            self.env = baselines.environment(cfg, spec)

        def _on_step(self) -> bool:
            if self.num_timesteps in due:
                seconds = self.clock.pause()
                mean = sum(map(self.play, test_seeds(seed, task.tests))) / task.tests
                self.points.append((self.num_timesteps, mean, seconds))
                self.clock.go_on()
            return self.num_timesteps < task.decisions

        def play(self, env_seed: int) -> float:
            obs, _ = self.env.reset(seed=env_seed % 2**31)
            total, over = 0.0, False
            while not over:
                action, _ = self.model.predict(obs, deterministic=True)
                obs, reward, terminated, truncated, _ = self.env.step(action if spec.continuous else int(action))
                total, over = total + float(reward), terminated or truncated
            return total

    for seed in seeds:
        callback = Test()
        baselines.MODELS[task.implementation](cfg, spec, seed).learn(task.decisions, callback=callback)
        yield from ((seed, point) for point in callback.points)


TRAINERS: dict[str, Callable[[Task, Sequence[int]], Iterator[tuple[int, Point]]]] = {"ours": train_ours, "sb3": train_theirs}


def ended(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The rows of seeds that were trained to the end."""
    last = {_run_of(row) for row in rows if int(row["decisions"]) == TASKS[f"{row['task']}-{row['agent']}"].decisions}
    return [row for row in rows if _run_of(row) in last]


def _run_of(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in COLUMNS[:4])


def run(task: Task, library: str, out: Path) -> None:
    """Trains the seeds that are missing and adds each point to the file as it comes."""
    kept: list[Mapping[str, str]] = []
    if out.exists():
        with out.open(newline="") as file:
            kept = ended(list(csv.DictReader(file)))
    about = (task.gamename, task.implementation, library)
    there = {_run_of(row) for row in kept}
    seeds = [seed for seed in SEEDS if (*about, str(seed)) not in there]
    write_text(out, "".join(f"{','.join(values)}\n" for values in (COLUMNS, *(row.values() for row in kept))))
    with out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for seed, (decisions, mean, seconds) in TRAINERS[library](task, seeds) if seeds else ():
            writer.writerow((*about, seed, decisions, f"{mean:.2f}", f"{seconds:.1f}"))
            file.flush()
            print(f"{'  '.join(map(str, about))}  seed {seed}: {decisions} decisions, {mean:.1f}, {seconds:.0f} s", flush=True)


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description="Learning beside Stable-Baselines3.")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("library", choices=TRAINERS)
    parser.add_argument("--out", type=Path, default=Path("results/members/fresh.csv"), metavar="CSV")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    run(TASKS[arguments.task], arguments.library, arguments.out)


if __name__ == "__main__":
    main()
