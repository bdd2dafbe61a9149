"""Reward networks (arXiv 2202.02790): the real dynamics with a reward that is learned, one for
each member of a population.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.envs.batch import BatchStep
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.gym import STEPS, Env
from lightning_rl.envs.gym_batch import GymBatch
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.envs.wrapped_batch import WrappedBatch
from lightning_rl.functional.reward_shaping import REWARD_FORMS, RewardForm, shaped_reward
from lightning_rl.functional.scaling import units
from lightning_rl.nets.members import ActivationName, MemberMLP

INFO_KEYS: Mapping[str, tuple[str, ...]] = {
    "halfcheetah": ("x_position", "x_velocity", "reward_forward", "reward_ctrl")
}
"""What of Gymnasium's info a reward network may see, by gamename, in the order of its inputs."""


@dataclass(frozen=True)
class RewardNet:
    """One value of the observation, the info, or both: parameters ``[N, D]``.

    form: a name of ``REWARD_FORMS``. bounds: of the observation, lower and upper ones, in whose
    ``units`` it is read; None: as it is.
    """

    obs_size: int
    info_size: int
    form: str
    hidden: tuple[int, ...]
    activation: ActivationName
    bounds: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @property
    def rule(self) -> RewardForm:
        return REWARD_FORMS[self.form]

    @functools.cached_property
    def net(self) -> MemberMLP:
        """``native`` needs no network; it has one parameter or two so that all else goes as with
        the others.
        """
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
        return (
            self.net.columns("weight") if self.rule.linear else self.net.columns("weight", "bias")
        )

    @torch.no_grad()
    def reward(
        self,
        params: Tensor,
        reward: Tensor,
        obs: Tensor,
        next_obs: Tensor,
        info: Tensor | None,
        gamma: float,
    ) -> Tensor:
        """What the agents get for a step: reward ``[N, ...]``, obs ``[N, ..., O]``, info ``[N,
        ..., I]`` -> ``[N, ...]``.
        """

        def value(obs: Tensor, info: Tensor | None) -> Tensor:
            seen = ([self._read(obs)] if self.rule.state else []) + (
                [info] if self.rule.info and info is not None else []
            )
            x = torch.cat(seen, dim=-1)
            return self.net(params, x.reshape(len(params), -1, x.shape[-1])).reshape(reward.shape)

        return shaped_reward(self.rule, value, reward, obs, next_obs, info, gamma)

    @functools.cached_property
    def _units(self) -> tuple[Constant, ...]:
        return () if self.bounds is None else tuple(map(Constant, units(*self.bounds)))

    def _read(self, obs: Tensor) -> Tensor:
        if not self._units:
            return obs
        center, unit = (each.on(obs.device) for each in self._units)
        return (obs - center) / unit


class RewardEnv(FuncEnv):
    """A ``FuncEnv`` around a ``FuncEnv``: dynamics, termination and start states of ``real``, the
    reward of a network.

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
        reward = self.net.reward(
            self.params, step.reward, self.real.observe(state), step.obs, None, self.gamma
        )
        return step._replace(reward=reward)

    def keep(self, rows: Tensor) -> RewardEnv:
        return RewardEnv(self.net, self.params[rows], self.real.keep(rows), self.gamma)

    def to(self, device: torch.device) -> RewardEnv:
        return RewardEnv(self.net, self.params.to(device), self.real.to(device), self.gamma)


class RecordedRepeat(gymnasium.Wrapper[Any, Any, Any, Any]):
    """As ``RepeatAction``, with a record of every step, as a learned reward needs it.

    ``info["steps"]`` ``[repeat, 1 + O + I]``: reward, next observation and the values of
    ``info_keys``; 0 beyond the end.
    """

    def __init__(self, env: Env, repeat: int, info_keys: Sequence[str]):
        super().__init__(env)
        size = 1 + int(np.prod(env.observation_space.shape or ())) + len(info_keys)
        self.info_keys, self.shape = tuple(info_keys), (repeat, size)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        steps, total, length, over = np.zeros(self.shape, np.float32), 0.0, 0, False
        while length < len(steps) and not over:
            obs, reward, terminated, truncated, info = self.env.step(action)
            steps[length] = [
                float(reward),
                *np.asarray(obs).ravel(),
                *(info[key] for key in self.info_keys),
            ]
            total, length, over = total + float(reward), length + 1, terminated or truncated
        return obs, total, terminated, truncated, {"steps": steps, STEPS: length}


class RewardBatch(WrappedBatch):
    """Like ``RewardEnv``, but around Gymnasium environments; repeat: each action is taken so
    often, learned rewards summed.
    """

    def __init__(
        self,
        net: RewardNet,
        params: Tensor,
        spec: EnvSpec,
        seeds: Sequence[int],
        gamma: float,
        repeat: int = 1,
        info_keys: Sequence[str] = (),
    ):
        repeater = functools.partial(RecordedRepeat, info_keys=info_keys)
        super().__init__(GymBatch(spec, seeds, repeat, info_keys=("steps",), repeater=repeater))
        self.net, self.params, self.gamma = net, params, gamma

    def step(self, action: Tensor) -> BatchStep:
        obs, step = self.obs, super().step(action)
        assert step.info is not None
        steps, size = step.info.squeeze(1), obs.shape[-1]
        reward, after, info = steps.split([1, size, steps.shape[-1] - 1 - size], dim=-1)
        before = torch.cat([obs.unsqueeze(1), after[:, :-1]], dim=1)
        learned = self.net.reward(self.params, reward.squeeze(-1), before, after, info, self.gamma)
        beyond = torch.arange(learned.shape[1]) >= step.length.unsqueeze(1)
        return step._replace(reward=learned.masked_fill(beyond, 0).sum(1), info=None)

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self.params = self.params[rows]
