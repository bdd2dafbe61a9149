"""Shared by the tests of the policy gradients: a small method and its experience, a batch, and
an update by Lightning.
"""

import dataclasses
from collections.abc import Callable

import torch
from pytorch_lightning import Trainer

from helpers.budgets import tiny_settings
from lightning_rl.core.catalogue import aliases
from lightning_rl.core.config import build_config, merged_values
from lightning_rl.core.types import Episode
from lightning_rl.methods.policy_gradient import PolicyGradient, StepBatch, step_batch
from lightning_rl.methods.registry import IMPLEMENTATIONS

METHODS = list(aliases().values())


def build(
    name: str = "AAC",
    gamename: str = "cartpole",
    num_workers: int = 0,
    preset: str | None = None,
    **settings,
):
    entry = IMPLEMENTATIONS[name]
    config = build_config(
        entry.Config,
        [*merged_values(name, gamename, preset), ("test", {**tiny_settings(name), **settings})],
    )
    method = entry(
        **{
            "implementation": name,
            "gamename": gamename,
            "seed": 3,
            "config": dataclasses.asdict(config),
        }
    )
    return method, method.rollouts(num_workers)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def with_end(episode: Episode, truncated: bool) -> Episode:
    return dataclasses.replace(episode, terminated=not truncated, truncated=truncated)


def some_batch(gamename: str = "cartpole"):
    episodes = build("REINFORCE", gamename)[1].collector
    played = episodes.collect(
        build("REINFORCE", gamename)[1].requests(0), episodes.behaviour.state_dict(), 0
    )
    return step_batch(played, {})


def fit(method: PolicyGradient, make: Callable[[], StepBatch], epochs: int) -> None:
    """Lightning trains on the batches of ``make``, one for each epoch."""
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        max_epochs=epochs,
        limit_val_batches=0,
    )
    data = method.rollouts()
    data.next_batch = make
    trainer.fit(method, datamodule=data)


def update(
    method: PolicyGradient, batch: StepBatch, optimizer: torch.optim.Optimizer | None = None
) -> dict[str, float]:
    """One update by the method's own optimizer or this; what was logged."""
    if optimizer is not None:
        method.make_optimizers = lambda: [optimizer]
    fit(method, lambda: batch, epochs=1)
    return method.scalars
