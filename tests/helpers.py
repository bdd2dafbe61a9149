"""Shared by the tests: tiny budgets, a toy policy, a toy environment."""

import ctypes
import dataclasses
import gc
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from pytorch_lightning import LightningModule, Trainer

from lightning_rl.cli import main
from lightning_rl.core.catalogue import aliases, canonical
from lightning_rl.core.gamenames import GAMES as NAMED
from lightning_rl.core.gamenames import Game
from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.grids import GRID_WORLDS
from lightning_rl.envs.spec import EnvSpec, env_spec
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.nets.command import GatedNet, ScaledCommand
from lightning_rl.nets.policies import Policy

ROOT = Path(__file__).resolve().parent.parent

_EVERY = {
    "hidden": [8, 8],
    "chunk_size": 2,
    "batch_size": 16,
    "eval_interval": 2,
    "eval_episodes": 2,
    "checkpoint_interval": 2,
}
_UDRL = {
    "learning_starts": 4,
    "num_episodes_per_iter": 4,
    "num_updates_per_iter": 3,
    "batch_size": 16,
    "replay_size": 10,
    "last_few": 3,
}
_RCP = {
    "learning_starts": 4,
    "steps_per_iter": 60,
    "num_updates_per_iter": 3,
    "batch_size": 16,
    "window_steps": 200,
}
SMALL_CRITIC = {"num_critic_updates_per_iter": 2, "critic_hidden": [8]}
_POLICY_GRADIENT = {"num_episodes_per_iter": 4}
_AGENT = {"steps_per_epoch": 40}
_INNER = {"train_episodes": 2, "rollout_steps": 16, "batch_size": 16, "epochs": 1, "hidden": [8]}
_BILEVEL = {
    "agent": {"PPO": _INNER},
    "population": 2,
    "center_agents": 2,
    "test_episodes": 1,
    "max_train_steps": 40,
    "eval_agents": 2,
    "hidden": [8],
    "strategy": "published",
}
_MODEL_BASED = {
    "steps_per_epoch": 10,
    "learning_starts": 10,
    "replay_size": 100,
    "target_interval": 5,
    "batch_size": 8,
}
_IMAGINATION = {**_MODEL_BASED, "rollout_length": 3, "batch_size": 4}
TINY: dict[str, dict[str, Any]] = {
    "UDRL": _UDRL,
    "RCP-R": _RCP,
    "RCP-A": {**_RCP, **SMALL_CRITIC},
    **dict.fromkeys(("QL", "SARSA"), _AGENT),
    "DDQN": {**_AGENT, "replay_size": 200},
    "DuelingDDQN": {**_AGENT, "replay_size": 200, "feature_size": 8},
    **{
        name: {**_AGENT, "replay_size": 200, "learning_starts": 1}
        for name in ("TD3", "TD3-discrete")
    },
    "SE": {**_BILEVEL, "stop_rule": "plateau", "proxy_horizon": 20},
    "MBRL": {
        "data_agents": 2,
        "data_steps": 30,
        "max_train_steps": 40,
        "eval_agents": 2,
        "vary": False,
        "hidden": [8],
    },
    "SD": {
        **{
            key: value for key, value in _BILEVEL.items() if key not in ("agent", "max_train_steps")
        },
        "num_updates": 4,
    },
    "RN": {**_BILEVEL, "stop_rule": "solved", "reward": "additive"},
    "ER": _MODEL_BASED,
    **dict.fromkeys(("perfect-model", "simple-model", "gaussian-latent"), _IMAGINATION),
    "categorical-latent": {**_IMAGINATION, "variables": 4, "classes": 4},
    "PPO": {**_AGENT, "rollout_steps": 32, "epochs": 2},
    **dict.fromkeys(aliases().values(), _POLICY_GRADIENT),
}
"""Settings by implementation that make a run take a second."""


def resident_bytes() -> int:
    """This process's memory, less what earlier tests have left to be freed: a difference of two
    is what lies between.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tiny_flags(implementation: str = "UDRL", **extra: Any) -> list[str]:
    """--set flags that make a run take a second."""
    return [
        f"--set={key}={value}" for key, value in {**tiny_settings(implementation), **extra}.items()
    ]


def tiny_settings(implementation: str) -> dict[str, Any]:
    name = canonical(implementation)
    known = {field.name for field in dataclasses.fields(IMPLEMENTATIONS[name].Config)}
    return {key: value for key, value in {**_EVERY, **TINY.get(name, {})}.items() if key in known}


# Every environment, but one grid world for all that differ in their drawing only.
GAMES = [name for name in NAMED if name == "cliff" or name not in GRID_WORLDS]


def fitting(
    names: Iterable[str] = IMPLEMENTATIONS, games: Iterable[str] = GAMES
) -> list[tuple[str, str]]:
    """(implementation, gamename) that go together."""
    return [
        (n, g)
        for n in names
        for g in games
        if IMPLEMENTATIONS[n].why_unsupported(env_spec(g)) is None
    ]


def covering() -> list[tuple[str, str]]:
    """Every environment and every implementation once: a sample of ``fitting`` that takes half a
    minute, not ten.
    """
    pairs = [("UDRL", game) for game in GAMES]
    for number, name in enumerate(IMPLEMENTATIONS):
        games = [game for _, game in fitting([name])]
        pairs.append((name, games[number % len(games)]))
    return list(dict.fromkeys(pairs))


def run_cli(
    logdir: Path,
    *flags: str,
    gamename: str = "cartpole",
    implementation: str = "UDRL",
    **settings: Any,
) -> int:
    what = ["--implementation", implementation, "--gamename", gamename, "--num_workers", "0"]
    where = ["--logdir", str(logdir)]
    return main([*what, *where, *tiny_flags(implementation, **settings), *flags])


def train_cli(logdir: Path, max_epochs: int | str, *flags: str, **given: Any) -> None:
    """A training that succeeds: ``run_cli`` for so many epochs."""
    assert run_cli(logdir, "--max_epochs", str(max_epochs), *flags, **given) == 0


def cli(*words: object) -> int:
    """The exit code of a command line."""
    return main([str(word) for word in words])


def log_scalars(run: Path, scalars: Mapping[str, Mapping[int, float]], version: int = 0) -> Path:
    """Writes scalars (a value at each step, by name) as a start of a run does; its directory."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(run / "logger" / f"version_{version}")) as writer:
        for name, points in scalars.items():
            for step, value in points.items():
                writer.add_scalar(name, value, step)
    return run


def refused(capsys: pytest.CaptureFixture[str], code: int) -> str:
    """The one line of an error."""
    captured = capsys.readouterr()
    assert code == 2, captured
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return str(lines[0])


def run_dir(
    logdir: Path, gamename: str = "cartpole", seed: int = 25, implementation: str = "UDRL"
) -> Path:
    return logdir / gamename / "default" / implementation / f"seed_{seed}"


def last(
    logdir: Path, implementation: str, gamename: str = "cartpole", seed: int = 25
) -> dict[str, Any]:
    """The last checkpoint of a run."""
    return torch.load(
        run_dir(logdir, gamename, seed, implementation) / "last.ckpt", weights_only=True
    )


def toy_policy(spec: EnvSpec, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    distribution = distribution_for(spec.continuous)
    net = ScaledCommand(
        GatedNet(spec.obs_size, 2, distribution.output_size(spec.action_size), [8, 8]), (0.01, 0.01)
    )
    return Policy(net, distribution, spec.action_size)


def make_episode(rewards: list[float], obs_size: int = 4, name: str = "toy") -> Episode:
    """An episode with the given rewards whose observations count the steps."""
    steps = len(rewards)
    obs = np.repeat(np.arange(steps + 1, dtype=np.float32)[:, None], obs_size, axis=1)
    action = np.arange(steps, dtype=np.int64) % 2
    return Episode(
        obs,
        action,
        np.array(rewards, dtype=np.float32),
        True,
        False,
        None,
        Request(name, 0),
        0,
        len(rewards),
    )


def same_episodes(a: list[Episode], b: list[Episode]) -> bool:
    def key(e: Episode) -> tuple[Any, ...]:
        parts = (e.obs, e.action, e.reward, e.command)
        return (
            e.terminated,
            e.truncated,
            e.request,
            e.policy_version,
            *(None if p is None else p.tobytes() for p in parts),
        )

    return [key(e) for e in a] == [key(e) for e in b]


def die(words: list[str], program: str) -> int:
    """A command line whose process is killed."""
    os._exit(9)


class CommandTask(gymnasium.Env[Any, Any]):
    """Identity task: ten steps, action 1 pays 1, action 0 nothing, so a commanded return is a
    count of ones.
    """

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        self.left = 10
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        return np.full(1, self.left / 10, np.float32), float(action), self.left == 0, False, {}


class RaisingTask(CommandTask):
    """Raises at its fourth step."""

    def step(self, action: Any) -> Any:
        if self.left == 7:
            raise ValueError("the ground gave way")
        return super().step(action)


@pytest.fixture
def toy_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers the toy environments as gamenames ``count`` and ``raising``."""
    for name, cls in (("count", CommandTask), ("raising", RaisingTask)):
        monkeypatch.setitem(NAMED, name, Game(cls, horizon=10, max_return=10.0))


def attach(method: LightningModule, *optimizers: torch.optim.Optimizer) -> None:
    """Lets a method's updates run without a fit, with its own optimizers or these."""
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.strategy.connect(method)
    method.trainer = trainer
    (clock, *own), _ = method.configure_optimizers()
    trainer.strategy.optimizers = [clock, *(optimizers or own)]
