"""Synthetic datasets: a handful of state-action pairs that teach a task (Lupu et al. 2024, arXiv
2406.15042).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lightning_rl.core.contents import count, text
from lightning_rl.core.limits import NAME_BYTES, WIDTH
from lightning_rl.envs.batch import EnvBatch, FuncBatch
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.proxies import Proxy


@dataclass(frozen=True)
class Pairs:
    """Pairs as one block ``[N, D]``: the states, then the actions where these are continuous.

    The actions of a discrete task are not learned: pair ``k`` has action ``k`` modulo their number.
    """

    num_pairs: int
    obs_size: int
    action_size: int
    continuous: bool

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return self.num_pairs * (self.obs_size + self.action_size * self.continuous)

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Zeros ``[N, D]``: what tells the pairs apart is found by evolution."""
        return torch.zeros(len(generators), self.size)

    def evolved(self) -> Tensor:
        """Which columns evolve ``[D]``: all."""
        return torch.ones(self.size, dtype=torch.bool)

    def split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """States ``[N, K, O]``, and actions ``[N, K]`` int64, or ``[N, K, A]`` within the box
        [-1, 1].
        """
        members, size = len(params), self.num_pairs * self.obs_size
        obs = params[:, :size].reshape(members, self.num_pairs, self.obs_size)
        if self.continuous:
            action = params[:, size:].reshape(members, self.num_pairs, self.action_size)
            return obs, action.clamp(-1, 1)
        action = torch.arange(self.num_pairs, device=params.device) % self.action_size
        return obs, action.expand(members, -1)


class DatasetEnv(FuncEnv):
    """The pairs as episodes of one step: one of the states, and a reward for doing as the pair
    does.

    The reward is 1 for the pair's action and else 0; of continuous actions the negative mean
    squared distance to it. pairs ``params[n]`` ``[N, D]`` are those of member ``n``. state: the
    observation, then the action of the pair.
    """

    reset_noise_size = 1

    def __init__(self, pairs: Pairs, params: Tensor):
        self.pairs, self.params = pairs, params
        self.obs_low, self.obs_high = (-math.inf,) * pairs.obs_size, (math.inf,) * pairs.obs_size
        self.action_size, self.continuous = pairs.action_size, pairs.continuous
        obs, action = pairs.split(params)
        self.states = torch.cat([obs, action if pairs.continuous else action.unsqueeze(-1)], dim=-1)

    def reset(self, noise: Tensor) -> State:
        which = (noise[..., 0] * self.pairs.num_pairs).long()
        member = torch.arange(len(self.params), device=self.params.device).unsqueeze(1)
        return self.states[member, which.reshape(len(self.params), -1)].reshape(*which.shape, -1)

    def observe(self, state: State) -> Tensor:
        return state[..., : self.pairs.obs_size]

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        taught = state[..., self.pairs.obs_size :]
        if self.continuous:
            reward = -(action.clamp(-1, 1) - taught).square().mean(-1)
        else:
            reward = (action == taught.squeeze(-1)).to(taught.dtype)
        return Step(state, self.observe(state), reward, torch.ones_like(reward, dtype=torch.bool))

    def keep(self, rows: Tensor) -> DatasetEnv:
        return DatasetEnv(self.pairs, self.params[rows])

    def to(self, device: torch.device) -> DatasetEnv:
        return DatasetEnv(self.pairs, self.params.to(device))


@dataclass(frozen=True, kw_only=True)
class DatasetProxy(Proxy):
    """A synthetic dataset of ``num_pairs`` state-action pairs; agents that do not clone it get
    each as an episode of one step.
    """

    kind: ClassVar[str] = "SD"
    settings: ClassVar = {"gamename": text(NAME_BYTES), "num_pairs": count(1, WIDTH)}
    horizon: ClassVar[int] = 1
    cap_ends: ClassVar[bool] = True

    num_pairs: int

    @property
    def net(self) -> Pairs:
        return Pairs(
            self.num_pairs, self.spec.obs_size, self.spec.action_size, self.spec.continuous
        )

    def env(self, params: Tensor) -> DatasetEnv:
        """The environments of params ``[N, D]``."""
        return DatasetEnv(self.net, params)

    def batch(
        self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1
    ) -> EnvBatch:
        return FuncBatch(self.env(params), self.horizon, seeds, repeat)
