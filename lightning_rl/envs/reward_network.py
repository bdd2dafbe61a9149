"""Reward networks (arXiv 2202.02790): the real dynamics with a reward that is learned, one for each member of a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lightning_rl.envs.batch import BatchStep, EnvBatch
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.functional.reward_shaping import REWARD_FORMS, RewardForm, shaped_reward
from lightning_rl.nets.activations import ActivationName
from lightning_rl.nets.members import MemberMLP

INFO_KEYS: Mapping[str, tuple[str, ...]] = {"halfcheetah": ("x_position", "x_velocity", "reward_forward", "reward_ctrl")}
"""What of Gymnasium's info a reward network may see, by gamename, in the order of its inputs."""


@dataclass(frozen=True)
class RewardNet:
    """One value of the observation, the info, or both: parameters ``[N, D]``. form: a name of ``REWARD_FORMS``."""

    obs_size: int
    info_size: int
    form: str
    hidden: tuple[int, ...]
    activation: ActivationName

    @property
    def rule(self) -> RewardForm:
        return REWARD_FORMS[self.form]

    @cached_property
    def net(self) -> MemberMLP:
        """``native`` needs no network; it has one parameter or two so that all else goes as with the others."""
        size = self.obs_size * self.rule.state + self.info_size * self.rule.info
        small = self.rule.linear or size == 0
        return MemberMLP(max(size, 1), () if small else self.hidden, 1, self.activation)

    @property
    def size(self) -> int:
        """Columns ``D`` of the parameter block."""
        return self.net.size

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``; the bias of a weighted sum is 0 and stays so."""
        params = self.net.init(generators)
        if self.rule.linear:
            params[:, self.net.columns("bias")] = 0
        return params

    def evolved(self) -> Tensor:
        """Which columns evolve ``[D]``: weights and, but for weighted sums, biases."""
        return self.net.columns("weight") if self.rule.linear else self.net.columns("weight", "bias")

    @torch.no_grad()
    def reward(
        self, params: Tensor, reward: Tensor, obs: Tensor, next_obs: Tensor, info: Tensor | None, gamma: float
    ) -> Tensor:
        """What the agents get for a step: reward ``[N, ...]``, obs ``[N, ..., O]``, info ``[N, ..., I]`` -> ``[N, ...]``."""

        def value(at: Tensor, told: Tensor | None) -> Tensor:
            parts = ([at] if self.rule.state else []) + ([told] if self.rule.info and told is not None else [])
            x = torch.cat(parts, dim=-1)
            return self.net(params, x.reshape(len(params), -1, x.shape[-1])).reshape(reward.shape)

        return shaped_reward(self.rule, value, reward, obs, next_obs, info, gamma)


class RewardEnv(FuncEnv):
    """A ``FuncEnv`` around a ``FuncEnv``: dynamics, termination and start states of ``real``, the reward of a network.

    gamma: of the agents, for potentials.
    """

    def __init__(self, net: RewardNet, params: Tensor, real: FuncEnv, gamma: float):
        self.net, self.params, self.real, self.gamma = net, params, real, gamma
        self.obs_low, self.obs_high = real.obs_low, real.obs_high
        self.action_size, self.continuous = real.action_size, real.continuous
        self.reset_noise_size, self.step_noise_size = real.reset_noise_size, real.step_noise_size

    def reset(self, noise: Tensor) -> State:
        return self.real.reset(noise)

    def observe(self, state: State) -> Tensor:
        return self.real.observe(state)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        step = self.real.step(state, action, noise)
        reward = self.net.reward(self.params, step.reward, self.real.observe(state), step.obs, None, self.gamma)
        return step._replace(reward=reward)

    def keep(self, rows: Tensor) -> RewardEnv:
        return RewardEnv(self.net, self.params[rows], self.real.keep(rows), self.gamma)


class RewardBatch(EnvBatch):
    """The same around a batch of Gymnasium environments."""

    def __init__(self, net: RewardNet, params: Tensor, real: EnvBatch, gamma: float):
        self.net, self.params, self.real, self.gamma = net, params, real, gamma
        self._obs = real.reset(torch.zeros(len(params), dtype=torch.bool))

    def reset(self, where: Tensor) -> Tensor:
        self._obs = self.real.reset(where)
        return self._obs

    def step(self, action: Tensor) -> BatchStep:
        step = self.real.step(action)
        reward = self.net.reward(self.params, step.reward, self._obs, step.obs, step.info, self.gamma)
        self._obs = step.obs
        return step._replace(reward=reward)

    def keep(self, rows: Tensor) -> None:
        self.real.keep(rows)
        self.params, self._obs = self.params[rows], self._obs[rows]

    def snapshot(self) -> dict[str, Tensor]:
        return self.real.snapshot()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.real.restore(state)
        self._obs = self.real.reset(torch.zeros(len(self.params), dtype=torch.bool))
