"""Shared by the tests of the policy gradients: a small method and its experience, a batch, and
an update by Lightning.
"""

import dataclasses
from collections.abc import Callable

import torch

from helpers import methods
from lightning_rl.core.catalogue import aliases
from lightning_rl.core.types import Episode
from lightning_rl.methods.policy_gradient import PolicyGradient, StepBatch, step_batch

METHODS = list(aliases().values())


def build(name: str = "AAC", gamename: str = "cartpole", num_workers: int = 0, **settings):
    """A small method and its data."""
    method = methods.build(name, gamename, **settings)
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
    data = method.rollouts()
    data.next_batch = make
    methods.quiet_trainer(epochs, limit_val_batches=0).fit(method, datamodule=data)


def update(
    method: PolicyGradient, batch: StepBatch, optimizer: torch.optim.Optimizer | None = None
) -> dict[str, float]:
    """One update by the method's own optimizer or this; what was logged."""
    if optimizer is not None:
        method.make_optimizers = lambda: [optimizer]
    fit(method, lambda: batch, epochs=1)
    return method.scalars
