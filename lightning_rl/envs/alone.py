"""One learned environment at a time, in NumPy, for Gymnasium: the same as the batches in torch, up
to rounding.

With a single state, torch spends nearly all its time on calls.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import FloatArray
from lightning_rl.envs.func_env import standard_normal
from lightning_rl.envs.one_step import INWARD, OneStepEnv
from lightning_rl.envs.reward_network import RewardNet
from lightning_rl.envs.synthetic import SyntheticEnv
from lightning_rl.envs.synthetic_dataset import DatasetEnv
from lightning_rl.functional.reward_shaping import shaped_reward
from lightning_rl.functional.scaling import units
from lightning_rl.nets.members import LEAK, MemberMLP


class AloneMLP:
    """Networks of one input ``[I]`` in NumPy, as one that gives their outputs side by side: for a
    single row, torch's calls take longer than what they compute.

    members: each network with its parameters ``[1, D]``; of one depth and activation.
    """

    def __init__(self, *members: tuple[MemberMLP, Tensor]):
        self.activation = members[0][0].activation
        self.layers: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        nets = [net.layers(params.detach().clone()) for net, params in members]
        for together in zip(*nets, strict=True):
            weights = [layer.weight[0] for layer in together]
            weight = torch.block_diag(*weights) if self.layers else torch.cat(weights, dim=1)
            bias = torch.cat([layer.bias for layer in together], dim=-1)[0, 0]
            slopes = [
                0 * layer.bias + (0 if layer.slope is None else layer.slope) for layer in together
            ]
            slope = torch.cat(slopes, dim=-1)[0, 0]
            self.layers.append((weight.numpy(), bias.numpy(), slope.numpy()))

    def __call__(self, x: FloatArray) -> FloatArray:
        """The outputs ``[O]``."""
        for weight, bias, slope in self.layers[:-1]:
            x = self._activated(np.dot(x, weight) + bias, slope)
        weight, bias, _ = self.layers[-1]
        return cast(FloatArray, np.dot(x, weight) + bias)

    def _activated(self, z: FloatArray, slope: FloatArray) -> FloatArray:
        if self.activation == "relu":
            return np.maximum(z, 0)
        if self.activation == "leakyrelu":
            return np.maximum(z, LEAK * z)
        if self.activation == "tanh":
            return np.tanh(z)
        if self.activation == "elu":
            return np.maximum(z, np.expm1(np.minimum(z, 0)))
        return np.where(z > 0, z, slope * z)


class AloneStep(NamedTuple):
    """``func_env.Step`` for one state ``[S]``; the observation is that of the state."""

    state: FloatArray
    reward: float
    terminated: bool
    continuation: float | None = None


def _clipped(action: FloatArray) -> FloatArray:
    """The action within [-1, 1]; ``np.clip`` takes three times as long."""
    return np.minimum(np.maximum(action, -1), 1)


class AloneSynthetic:
    """The only member of a ``SyntheticEnv``."""

    def __init__(self, env: SyntheticEnv):
        self.env, self.latent_size = env, env.net.latent_size
        heads, blocks = dict(env.net.heads), env.blocks
        self._start = AloneMLP((heads.pop("start"), blocks["start"])) if self.latent_size else None
        # next state, reward and done; or pay
        self._dynamics = AloneMLP(*((net, blocks[name]) for name, net in heads.items()))

    def reset(self, noise: FloatArray) -> FloatArray:
        return self._learned_start(noise) if self.latent_size else self._start_of_task(noise)

    def _learned_start(self, noise: FloatArray) -> FloatArray:
        assert self._start is not None
        return self._start(standard_normal(torch.from_numpy(noise)).numpy())

    def _start_of_task(self, noise: FloatArray) -> FloatArray:
        real = self.env.real
        return np.asarray(real.observe(real.reset(torch.from_numpy(noise))).numpy())

    def observe(self, state: FloatArray) -> FloatArray:
        if not self.env.one_hot:
            return state
        obs = np.zeros_like(state)
        obs[state.argmax()] = 1
        return obs

    def step(self, state: FloatArray, action: Any) -> AloneStep:
        env = self.env
        if env.continuous:
            act = _clipped(action)
        else:
            act = np.zeros(env.action_size, dtype=np.float32)
            act[action] = 1
        outputs = self._dynamics(np.concatenate([act, state]))
        reward, done = float(outputs[-2]), float(outputs[-1])
        if env.done == "classifier":
            done = 1 / (1 + math.exp(-done))
        return AloneStep(outputs[:-2], reward, done > 0.5, 1 - done)


class AloneOneStep(AloneSynthetic):
    """The only member of a ``OneStepEnv``."""

    def __init__(self, env: OneStepEnv):
        super().__init__(env)
        bounds = units(env.real.obs_low, env.real.obs_high)
        self._center, self._unit = (each.numpy() for each in bounds)
        self._reward_scale = float(env.blocks["reward_scale"])
        if self.latent_size:
            self._shift, self._scale = (
                env.blocks[name][0].numpy() for name in ("start_shift", "start_scale")
            )

    def reset(self, noise: FloatArray) -> FloatArray:
        if not self.latent_size:
            return self._start_of_task(noise)
        size = self.latent_size
        start = self._learned_start(noise[:size])
        far = self._center + self._unit * (self._shift + self._scale * start)
        near = self._start_of_task(noise[size + 1 :])
        return near + noise[size] * (far - near)

    def step(self, state: FloatArray, action: Any) -> AloneStep:
        output = self._dynamics((self.observe(state) - self._center) / self._unit)
        if self.env.continuous:
            act = _clipped(action)
            paid = float(act @ (2 * INWARD * _clipped(output) - act))
        else:
            paid = float(output[action] - output.sum() / len(output))
        return AloneStep(state, self._reward_scale * paid, True, 0.0)


class AlonePairs:
    """The only member of a ``DatasetEnv``; state: the observation, then the action of the pair."""

    def __init__(self, env: DatasetEnv):
        self.continuous, self.obs_size = env.continuous, env.pairs.obs_size
        self._states = env.states[0].numpy()

    def reset(self, noise: FloatArray) -> FloatArray:
        return np.asarray(self._states[int(noise[0] * len(self._states))])

    def observe(self, state: FloatArray) -> FloatArray:
        return state[: self.obs_size]

    def step(self, state: FloatArray, action: Any) -> AloneStep:
        taught = state[self.obs_size :]
        if self.continuous:
            error = _clipped(action) - taught
            return AloneStep(state, -float(error @ error) / len(error), True)
        return AloneStep(state, float(action == taught[0]), True)


class AloneReward:
    """The only member of a ``RewardNet``."""

    def __init__(self, net: RewardNet, params: torch.Tensor, gamma: float):
        self.rule, self.gamma, self.net = net.rule, gamma, AloneMLP((net.net, params.unsqueeze(0)))
        self.units = None if net.bounds is None else [each.numpy() for each in units(*net.bounds)]

    def __call__(
        self, reward: float, obs: FloatArray, next_obs: FloatArray, info: FloatArray
    ) -> float:
        """What the agent gets for a step: obs ``[O]``, info ``[I]``."""
        return shaped_reward(self.rule, self._value, reward, obs, next_obs, info, self.gamma)

    def _value(self, obs: FloatArray, info: FloatArray) -> float:
        if self.units is not None:
            obs = (obs - self.units[0]) / self.units[1]
        if self.rule.state and self.rule.info:
            obs = np.concatenate([obs, info])
        return float(self.net(obs if self.rule.state else info)[0])
