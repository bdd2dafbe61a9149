"""Recording of every transition that agents make in a batch of environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_rl.agents.base import Actors
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.batch import BatchStep, EnvBatch
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.envs.wrapped_batch import WrappedBatch


class Transitions(NamedTuple):
    """Transitions: obs, next_obs ``[B, O]``, action ``[B]`` or ``[B, A]``, reward and done ``[B]``.

    done: 1 less what the agent's bootstrap is multiplied by.
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    done: Tensor
    next_obs: Tensor


class RecordedBatch(WrappedBatch):
    """Another batch, of which every step is kept in ``kept``."""

    def __init__(self, envs: EnvBatch, kept: list[Transitions]):
        super().__init__(envs)
        self.kept = kept

    def step(self, action: Tensor) -> BatchStep:
        obs, step = self.obs, super().step(action)
        done = step.terminated.float() if step.continuation is None else 1 - step.continuation
        self.kept.append(Transitions(obs, action, step.reward, done, step.obs))
        return step


@dataclass(frozen=True)
class RecordedProxy(SyntheticProxy):
    """A synthetic environment that keeps what agents meet in it."""

    kept: list[Transitions] = field(default_factory=list, compare=False)

    def batch(
        self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1
    ) -> EnvBatch:
        return RecordedBatch(super().batch(params, seeds, gamma, repeat), self.kept)


def played(agent: Actors, spec: EnvSpec, seeds: Sequence[int], episodes: int) -> list[Transitions]:
    """The transitions of ``episodes`` greedy episodes of each member on the real task."""
    env_seeds = []
    for seed in seeds:
        env_seeds += [derive_seed(seed, "recorded test", k) for k in range(episodes)]
    envs = make_envs(spec, env_seeds)
    kept: list[Transitions] = []
    _, lengths = evaluate_agents(agent, RecordedBatch(envs, kept), episodes)
    # decisions; later ones are of further episodes that nobody asked for
    steps = torch.div(lengths.flatten() + spec.repeat - 1, spec.repeat, rounding_mode="floor")
    return [Transitions(*(column[step < steps] for column in row)) for step, row in enumerate(kept)]


def joined(rows: Sequence[Transitions]) -> Transitions:
    """All rows in one."""
    return Transitions(*(torch.cat(columns) for columns in zip(*rows, strict=True)))
