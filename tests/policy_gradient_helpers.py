"""Shared by the tests of the policy gradients: a small method and its experience, and a batch."""

import dataclasses

import torch
from helpers import tiny_settings

from lightning_rl.core.catalogue import aliases
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.types import Episode
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.rollouts.steps import step_batch

METHODS = list(aliases().values())


def build(name: str = "AAC", gamename: str = "cartpole", num_workers: int = 0, preset: str | None = None, **settings):
    entry = IMPLEMENTATIONS[name]
    config = build_config(entry.Config, [*merged_values(name, gamename, preset), ("test", {**tiny_settings(name), **settings})])
    method = entry(**{"implementation": name, "gamename": gamename, "seed": 3, "config": dataclasses.asdict(config)})
    return method, method.rollouts(num_workers)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def with_end(episode: Episode, truncated: bool) -> Episode:
    return dataclasses.replace(episode, terminated=not truncated, truncated=truncated)


def some_batch(gamename: str = "cartpole"):
    episodes = build("REINFORCE", gamename)[1].collector
    played = episodes.collect(build("REINFORCE", gamename)[1].requests(0), episodes.behaviour.state_dict(), 0)
    return step_batch(played, {})
