"""Reward networks (arXiv 2202.02790): the real dynamics with a reward that is learned, one for
each member of a population.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.contents import FLAG, maybe, number, word
from lightning_rl.core.errors import UserError
from lightning_rl.envs.adapters import func_env
from lightning_rl.envs.batch import BatchStep, EnvBatch, FuncBatch
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.gym_batch import RECORD, GymBatch
from lightning_rl.envs.proxies import NETWORK_SETTINGS, Proxy, start_task
from lightning_rl.envs.spaces import STEPS, Env, StepOutcome, Wrapper
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
        names = ("weight",) if self.rule.linear else ("weight", "bias")
        return self.net.columns(*names)

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
            seen = [self._read(obs)] if self.rule.state else []
            if self.rule.info and info is not None:
                seen.append(info)
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


class RecordedRepeat(Wrapper):
    """As ``RepeatAction``, with a record of every step, as a learned reward needs it.

    ``info[RECORD]`` ``[repeat, 1 + O + I]``: reward, next observation and the values of
    ``info_keys``; 0 beyond the end.
    """

    def __init__(self, env: Env, repeat: int, info_keys: Sequence[str]):
        super().__init__(env)
        size = 1 + int(np.prod(env.observation_space.shape or ())) + len(info_keys)
        self.info_keys, self.shape = tuple(info_keys), (repeat, size)

    def step(self, action: Any) -> StepOutcome:
        steps, total, length, over = np.zeros(self.shape, np.float32), 0.0, 0, False
        while length < len(steps) and not over:
            obs, reward, terminated, truncated, info = self.env.step(action)
            values = [info[key] for key in self.info_keys]
            steps[length] = [float(reward), *np.asarray(obs).ravel(), *values]
            total, length, over = total + float(reward), length + 1, terminated or truncated
        return obs, total, terminated, truncated, {RECORD: steps, STEPS: length}


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
        wrapper = functools.partial(RecordedRepeat, repeat=repeat, info_keys=info_keys)
        super().__init__(GymBatch(spec, seeds, wrapper=wrapper))
        self.net, self.params, self.gamma = net, params, gamma

    def step(self, action: Tensor) -> BatchStep:
        obs, step = self.obs, super().step(action)
        steps, size = cast(Tensor, step.info), obs.shape[-1]
        reward, after, info = steps.split([1, size, steps.shape[-1] - 1 - size], dim=-1)
        before = torch.cat([obs.unsqueeze(1), after[:, :-1]], dim=1)
        learned = self.net.reward(self.params, reward.squeeze(-1), before, after, info, self.gamma)
        beyond = torch.arange(learned.shape[1]) >= step.length.unsqueeze(1)
        return step._replace(reward=learned.masked_fill(beyond, 0).sum(1), info=None)

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self.params = self.params[rows]


@dataclass(frozen=True, kw_only=True)
class RewardProxy(Proxy):
    """The real task with a learned reward.

    form: a name of ``REWARD_FORMS``. gamma: of the agents that it was evolved with, for potentials
    in the Gymnasium form.
    scale_states: whether networks read states in ``units`` of the task's bounds.
    """

    kind: ClassVar[str] = "RN"
    settings: ClassVar = {
        **NETWORK_SETTINGS,
        "form": word(*REWARD_FORMS),
        "gamma": number(0.0, 1.0),
        "scale_states": maybe(FLAG),
    }
    real_dynamics: ClassVar[bool] = True

    hidden: tuple[int, ...]
    activation: ActivationName
    form: str
    gamma: float
    scale_states: bool = False

    @property
    def net(self) -> RewardNet:
        if REWARD_FORMS[self.form].info and not self.info_keys:
            raise UserError(
                f"reward '{self.form}' needs the info of the task, but '{self.gamename}' gives "
                f"none; use a form without info, or one of: {', '.join(INFO_KEYS)}"
            )
        task = start_task(self.spec) if self.scale_states else None
        bounds = None if task is None else (task.obs_low, task.obs_high)
        return RewardNet(
            self.spec.obs_size, len(self.info_keys), self.form, self.hidden, self.activation, bounds
        )

    @property
    def info_keys(self) -> tuple[str, ...]:
        """What the network sees of the task's info."""
        return INFO_KEYS.get(self.spec.family, ()) if REWARD_FORMS[self.form].info else ()

    def batch(
        self, params: Tensor, seeds: Sequence[int], gamma: float, repeat: int = 1
    ) -> EnvBatch:
        task = func_env(self.spec)
        if task is not None:
            env = RewardEnv(self.net, params, task, gamma)
            return FuncBatch(env, self.spec.horizon, seeds, repeat)
        return RewardBatch(self.net, params, self.spec, seeds, gamma, repeat, self.info_keys)
