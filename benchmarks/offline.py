"""Learning from a dataset: our methods beside d3rlpy's cloning and Decision Transformer.

    python benchmarks/offline.py datasets            # makes them, in build/offline
    python benchmarks/offline.py lightning_rl        # in the environment of this package
    python benchmarks/offline.py d3rlpy              # in one of its own, see below
    python benchmarks/offline.py table               # for docs/offline.md

The environment of its own has d3rlpy, box2d, pygame, mujoco and imageio from the index.

Every side has the same episodes and the same number of updates (the Decision Transformer a tenth),
with the batches, networks and rates of its own. Rows are appended to results/offline.csv; those
that are there are not measured again. CPU seconds are of the training.

Datasets: ``random``, uniform actions; ``expert``, the package's agent; ``medium-replay``, all that
an RCP-A has played until it is about half as good.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "results" / "offline.csv"
BUILD = ROOT / "build" / "offline"
UPDATES = 10_000
TRANSFORMER_UPDATES = 1_000
"""A tenth as many: each takes a second of a core, ours a thousandth."""
EPISODES = 20
"""Of the score; the commands have a fifth as many each."""
PERCENTS = (10, 30, 50, 70, 90)
"""Of the dataset's returns: what is asked for, to measure obedience."""
ASKED_BEST = 90
"""Percent of the dataset's returns below what a Decision Transformer is asked for as its best."""


class Data(NamedTuple):
    """A dataset: its task (a gamename, and Gymnasium's id), and the command that makes it."""

    gamename: str
    env_id: str
    command: str


DATASETS = {
    "lunarlander-random": Data(
        "lunarlander",
        "LunarLander-v3",
        "record RCP-A-lunarlander --episodes 300 --actions uniform --seed 1 --out {folder}-v0",
    ),
    "lunarlander-medium-replay": Data(
        "lunarlander",
        "LunarLander-v3",
        "train --implementation RCP-A --gamename lunarlander --seed 1 --logdir {folder} "
        "--set max_env_steps=150000 --set window_steps=1000000",
    ),
    "lunarlander-expert": Data(
        "lunarlander",
        "LunarLander-v3",
        "record RCP-A-lunarlander --episodes 300 --seed 1 --out {folder}-v0",
    ),
    "pendulum-medium-replay": Data(
        "pendulum",
        "Pendulum-v1",
        "train --implementation RCP-A --gamename pendulum --seed 1 --logdir {folder} "
        "--set max_env_steps=60000 --set window_steps=1000000",
    ),
    "hopper-medium-replay": Data(
        "Hopper-v5",
        "Hopper-v5",
        "train --implementation RCP-A --gamename Hopper-v5 --seed 1 --logdir {folder} "
        "--set max_env_steps=200000 --set window_steps=1000000 --set normalise_obs=true",
    ),
}


class Row(NamedTuple):
    """Of one trained agent. score: mean return of its evaluation, sampled or greedy as it acts
    best by its authors; error, slope: of obedience, see ``lightning-rl eval --command sweep``; none
    where a method takes no return.
    """

    side: str
    dataset: str
    method: str
    seed: int
    score: float
    error: float | None
    slope: float | None
    cpu_seconds: float


def datasets() -> None:
    """Makes each that is missing: its episodes, as arrays that both sides read."""
    import lightning_rl

    for name, data in DATASETS.items():
        folder = BUILD / name
        if (BUILD / f"{name}.npz").exists():
            continue
        command = data.command.format(folder=folder).split()
        subprocess.run([sys.executable, "-m", "lightning_rl", *command], check=True, cwd=ROOT)
        found = lightning_rl.load_dataset(source(name), data.gamename)
        np.savez_compressed(
            BUILD / f"{name}.npz",
            obs=np.concatenate([episode.obs for episode in found.episodes]),
            action=np.concatenate([episode.action for episode in found.episodes]),
            reward=np.concatenate([episode.reward for episode in found.episodes]),
            length=[episode.length for episode in found.episodes],
            terminated=[episode.terminated for episode in found.episodes],
        )
        print(found)


def source(name: str) -> str:
    """What ``--dataset`` takes: the folder of what was recorded, or the run that has kept all."""
    runs = list((BUILD / name).glob("**/last.ckpt"))
    return str(runs[0].parent if runs else BUILD / f"{name}-v0")


class Episodes(NamedTuple):
    """Of a dataset; obs ``[T, O]`` of each has no last one, as d3rlpy wants."""

    obs: list[Any]
    action: list[Any]
    reward: list[Any]
    terminated: list[bool]

    @classmethod
    def read(cls, name: str) -> Episodes:
        """Those that ``datasets`` wrote."""
        with np.load(BUILD / f"{name}.npz") as arrays:
            length, terminated = arrays["length"], arrays["terminated"]
            ends = np.cumsum(length)
            obs = np.split(arrays["obs"], np.cumsum(length + 1)[:-1])
            action = np.split(arrays["action"], ends[:-1])
            reward = np.split(arrays["reward"], ends[:-1])
        return cls([rows[:-1] for rows in obs], action, reward, [bool(end) for end in terminated])

    def asked(self, percents: Sequence[int]) -> list[float]:
        """Percentiles of their returns."""
        returns = [float(reward.sum()) for reward in self.reward]
        return [round(float(value), 1) for value in np.percentile(returns, percents)]


def ours(name: str, data: Data, seed: int) -> dict[str, Callable[[], Row]]:
    """Our methods with the settings that ship."""
    import lightning_rl
    from lightning_rl.lab.obedience import obedience

    torch_on_one_thread()
    asked = Episodes.read(name).asked(PERCENTS)

    def measure(label: str, method: str, **settings: Any) -> Row:
        with tempfile.TemporaryDirectory() as logdir:
            begin = time.process_time()
            run = lightning_rl.train(
                method,
                data.gamename,
                seed=seed,
                dataset=source(name),
                max_epochs=UPDATES // 1000,
                eval_interval=10**6,
                num_workers=0,
                logger=False,
                checkpoint=False,
                logdir=logdir,
                **settings,
            )
            seconds = time.process_time() - begin
        score = lightning_rl.evaluate(run, EPISODES)["sampled"]["return"]["mean"]
        error = slope = None
        if label == "UDRL":  # what RCP-R takes is a discounted return-to-go
            played = [
                lightning_rl.evaluate(run, EPISODES // 5, {"return": value})["sampled"]["returns"]
                for value in asked
            ]
            obeyed = obedience(asked, played)
            error, slope = obeyed["episode_error"], obeyed["slope"]
        return Row("lightning_rl", name, label, seed, score, error, slope, seconds)

    return {
        "UDRL": partial(measure, "UDRL", "UDRL"),
        "RCP-R": partial(measure, "RCP-R", "RCP-R"),
        "RCP-A": partial(measure, "RCP-A", "RCP-A"),
        "filtered cloning": partial(measure, "filtered cloning", "RCP-R", preset="cloning"),
    }


def theirs(name: str, data: Data, seed: int) -> dict[str, Callable[[], Row]]:
    """d3rlpy's with the settings of their papers."""
    import d3rlpy

    torch_on_one_thread()
    episodes = Episodes.read(name)
    env = gymnasium.make(data.env_id)
    discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
    kind = d3rlpy.constants.ActionSpace
    dataset = d3rlpy.dataset.MDPDataset(
        np.concatenate(episodes.obs).astype(np.float32),
        np.concatenate([action.reshape(len(action), -1) for action in episodes.action]),
        np.concatenate(episodes.reward).astype(np.float32)[:, None],
        terminals=ends(episodes, terminated=True),
        timeouts=ends(episodes, terminated=False),
        action_space=kind.DISCRETE if discrete else kind.CONTINUOUS,
    )

    def to_env(action: Any) -> Any:
        if discrete:
            return int(action)
        assert isinstance(env.action_space, gymnasium.spaces.Box)
        low, high = env.action_space.low, env.action_space.high
        return np.clip(low + (np.asarray(action) + 1) / 2 * (high - low), low, high)

    def trained(algorithm: Any, updates: int) -> float:
        d3rlpy.seed(seed)
        begin = time.process_time()
        algorithm.fit(
            dataset,
            n_steps=updates,
            n_steps_per_epoch=updates,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
            show_progress=False,
        )
        return time.process_time() - begin

    def cloning() -> Row:
        config = d3rlpy.algos.DiscreteBCConfig if discrete else d3rlpy.algos.BCConfig
        algorithm = config(batch_size=256).create(device="cpu:0")
        seconds = trained(algorithm, UPDATES)

        def act(obs: Any, reward: float) -> Any:
            return algorithm.predict(obs[None].astype(np.float32))[0]

        score = np.mean([play(env, act, to_env, seed) for seed in range(EPISODES)])
        return Row("d3rlpy", name, "cloning", seed, float(score), None, None, seconds)

    def transformer() -> Row:
        shape: dict[str, Any] = {
            "batch_size": 64,
            "context_size": 20,
            "num_heads": 1,
            "num_layers": 3,
        }
        shape |= {"learning_rate": 1e-4, "max_timestep": max(map(len, episodes.reward)) + 1000}
        configs = d3rlpy.algos
        config = (
            configs.DiscreteDecisionTransformerConfig
            if discrete
            else configs.DecisionTransformerConfig
        )
        scale = max(np.abs(episodes.asked([0, 100])))  # returns are from -1 to 1
        scaler = d3rlpy.preprocessing.MultiplyRewardScaler(1 / scale)
        algorithm = config(**shape, reward_scaler=scaler).create(device="cpu:0")
        seconds = trained(algorithm, TRANSFORMER_UPDATES)

        def played(value: float, count: int) -> list[float]:
            returns = []
            for seed in range(count):
                wrapped = algorithm.as_stateful_wrapper(target_return=value)
                returns.append(play(env, wrapped.predict, to_env, seed))
            return returns

        score = float(np.mean(played(episodes.asked([ASKED_BEST])[0], EPISODES)))
        asked = np.array(episodes.asked(PERCENTS))
        obtained = np.array([played(value, EPISODES // 5) for value in asked])
        error = float(np.abs(obtained - asked[:, None]).mean())
        spread = np.repeat(asked - asked.mean(), EPISODES // 5)
        slope = float(spread @ obtained.ravel() / (spread @ spread))
        return Row("d3rlpy", name, "Decision Transformer", seed, score, error, slope, seconds)

    return {"cloning": cloning, "Decision Transformer": transformer}


def ends(episodes: Episodes, terminated: bool) -> Any:
    """1 at the last step of each episode that was terminated, or was not; ``[M]``."""
    flags = []
    for reward, end in zip(episodes.reward, episodes.terminated, strict=True):
        flags += [0.0] * (len(reward) - 1) + [float(end == terminated)]
    return np.array(flags, np.float32)


def play(
    env: Any, act: Callable[[Any, float], Any], to_env: Callable[[Any], Any], seed: int
) -> float:
    """The return of an episode."""
    obs, _ = env.reset(seed=seed)
    total = reward = 0.0
    ended = False
    while not ended:
        obs, reward, terminated, truncated, _ = env.step(to_env(act(obs, reward)))
        total += reward
        ended = terminated or truncated
    return total


def torch_on_one_thread() -> None:
    """As for our command line."""
    import torch

    torch.set_num_threads(1)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["datasets", "lightning_rl", "d3rlpy", "table"])
    parser.add_argument("--only", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102])
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if given.what == "datasets":
        datasets()
        return
    if given.what == "table":
        table(given.out)
        return
    side = ours if given.what == "lightning_rl" else theirs
    done = measured(given.out)
    for seed in given.seeds:
        for name in given.only:
            for method, measure in side(name, DATASETS[name], seed).items():
                if (given.what, name, method, str(seed)) in done:
                    continue
                row = measure()
                print(row, flush=True)
                append(given.out, row)


def measured(path: Path) -> set[tuple[str, str, str, str]]:
    """Side, dataset, method and seed of the rows that the table has."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {
            (row["side"], row["dataset"], row["method"], row["seed"])
            for row in csv.DictReader(file)
        }


def table(path: Path) -> None:
    """Prints a line of Markdown for each dataset and method, whose numbers ``lightning-rl docs``
    finds again.
    """
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for dataset in DATASETS:
        here = [row for row in rows if row["dataset"] == dataset]
        for side, method in dict.fromkeys((row["side"], row["method"]) for row in here):
            where = f'dataset={dataset} side={side} method="{method}"'
            obeyed = ["", ""]
            if method in ("UDRL", "Decision Transformer"):
                obeyed = [_marked("0", "error", where), _marked("0.00", "slope", where)]
            cells = [_marked("0", "score", where), *obeyed, _marked("0", "cpu_seconds", where)]
            print(f"| {dataset} | {method} ({side}) | {' | '.join(cells)} |")


def _marked(zero: str, column: str, where: str) -> str:
    return f"{zero}<!-- = results/offline.csv {column} mean {where} -->"


def append(path: Path, row: Row) -> None:
    """Writes a row at the end of the table, which begins with the names of its columns."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(Row._fields)
        writer.writerow(f"{x:.6g}" if isinstance(x, float) else x for x in row)


if __name__ == "__main__":
    main()
