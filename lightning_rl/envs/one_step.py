"""Synthetic environments of one step (Liesen et al. 2024, arXiv 2406.12589): what actions pay, and
where episodes start.

Where we differ: a discrete action pays an output of the network, a continuous one by its distance
to an output, both less what the state pays anyway, so that agents have nothing else to learn;
learned start states are mixed with those of the task; states enter and leave the networks in units
of the task's bounds, so that a velocity of 0.07 counts as much as an angle of 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lightning_rl.envs.func_env import State, Step, standard_normal
from lightning_rl.envs.synthetic import SyntheticEnv, SyntheticNet
from lightning_rl.functional.scaling import units
from lightning_rl.nets.members import MemberMLP

REWARD_STD = (
    0.1  # about what fresh networks say: learned several times faster than rewards of 1 or 5
)
_TINY = 1e-6  # lower bound of divisors: with a single action the rewards do not vary
# the largest continuous action that can pay best, of 1: a tanh policy driven to the edge of the box
# stays there
INWARD = 0.85


@dataclass(frozen=True)
class OneStepNet(SyntheticNet):
    """``pay`` maps a state to a number for each (dimension of the) action, see ``OneStepEnv``.

    The last columns of the block do not evolve: the size of rewards and, where start states are
    learned, their shift and scale ``[O]``.
    """

    @cached_property
    def heads(self) -> dict[str, MemberMLP]:
        shapes = {
            "pay": (self.obs_size, self.action_size),
            "start": (self.latent_size, self.obs_size),
        }
        return {
            name: MemberMLP(i, self.hidden, o, self.activation)
            for name, (i, o) in shapes.items()
            if i
        }

    @cached_property
    def units(self) -> dict[str, int]:
        """The columns that do not evolve, in their order."""
        starts = self.obs_size if self.latent_size else 0
        return {"start_shift": starts, "start_scale": starts, "reward_scale": 1}

    @property
    def size(self) -> int:
        return super().size + sum(self.units.values())

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        units = [
            torch.full((len(generators), count), float(name != "start_shift"))
            for name, count in self.units.items()
        ]
        return torch.cat([super().init(generators), *units], dim=1)

    def evolved(self) -> Tensor:
        fixed = torch.zeros(sum(self.units.values()), dtype=torch.bool)
        return torch.cat([super().evolved(), fixed])

    def split(self, params: Tensor) -> dict[str, Tensor]:
        """The block of each head and of each unit."""
        heads, *units = params.split([super().size, *self.units.values()], dim=1)
        return {**super().split(heads), **dict(zip(self.units, units, strict=True))}


class OneStepEnv(SyntheticEnv):
    """Episodes of one step: a reward for the action in the start state. States are in units of the
    task's bounds, if it has any.

    Where start states are learned, an episode starts at a uniformly drawn point between a start
    state of the task and a learned one. An agent that solves the task spends nearly all its steps
    where it wants to be, and learned states are like those; agents also have to see the way there.

    Times ``reward_scale``, a discrete action pays its output of ``pay`` less the mean of all
    outputs, and a continuous action ``a`` pays ``a (2 p - a)`` with ``p = INWARD * output``, the
    output clipped to the box: ``p`` pays best, and 0 pays nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.net.latent_size:
            self.reset_noise_size = self.net.latent_size + 1 + self.real.reset_noise_size
        center, unit = units(self.real.obs_low, self.real.obs_high)
        self._center, self._unit = center.to(self.params.device), unit.to(self.params.device)

    @torch.no_grad()
    def reset(self, noise: Tensor) -> State:
        latent_size = self.net.latent_size
        if not latent_size:
            return super().reset(noise)
        latent, share, real = noise.split([latent_size, 1, self.real.reset_noise_size], dim=-1)
        near, far = self.real.observe(self.real.reset(real)), self._learned_starts(latent)
        return near + share * (far - near)

    def _learned_starts(self, noise: Tensor) -> Tensor:
        start = super().reset(noise)
        shift, scale = (self.blocks[name].unsqueeze(1) for name in ("start_shift", "start_scale"))
        rows = shift + scale * start.reshape(len(self.params), -1, start.shape[-1])
        return self._center + self._unit * rows.reshape(start.shape)

    @torch.no_grad()
    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        pay = self._pay(state)
        if self.continuous:
            act = action.clamp(-1, 1)
            reward = (act * (2 * pay - act)).sum(-1)
        else:
            reward = (pay - pay.mean(-1, keepdim=True)).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        rows = reward.reshape(len(self.params), -1)
        reward = (self.blocks["reward_scale"] * rows).reshape(reward.shape)
        over = torch.ones_like(reward, dtype=torch.bool)
        return Step(state, self.observe(state), reward, over, torch.zeros_like(reward))

    @torch.no_grad()
    def meant(self, state: State) -> Tensor:
        """The actions that agents are to learn, ``[...]`` or ``[..., A]``: the best outputs,
        without ``INWARD``.
        """
        output = self._output(state)
        return output.clamp(-1, 1) if self.continuous else output.argmax(-1)

    def best(self, state: State) -> Tensor:
        """The actions that pay best: of continuous ones ``INWARD`` times those of ``meant``."""
        return self._pay(state) if self.continuous else self.meant(state)

    def _pay(self, state: State) -> Tensor:
        return INWARD * self.meant(state) if self.continuous else self._output(state)

    def _output(self, state: State) -> Tensor:
        return self._head("pay", (self.observe(state) - self._center) / self._unit)

    @torch.no_grad()
    def in_units(self, mean: Tensor, std: Tensor, noise: Tensor) -> Tensor:
        """The parameters ``[N, D]`` with other units of rewards and start states; the same actions
        still pay best.

        Over ``noise`` ``[N, K, reset_noise_size]``, start states that are learned have ``mean`` and
        ``std`` ``[O]`` (before they are mixed with the task's), and rewards of random actions in
        start states the standard deviation ``REWARD_STD``.
        """
        env = self.with_params(self.params.clone(), self.real)
        if self.net.latent_size:
            drawn = self._head("start", standard_normal(noise[..., : self.net.latent_size]))
            scale = std / self._unit / drawn.std(1).clamp(min=_TINY)
            env.blocks["start_scale"].copy_(scale)
            shift = (mean - self._center) / self._unit - scale * drawn.mean(1)
            env.blocks["start_shift"].copy_(shift)
        pay = env._pay(env.reset(noise))
        if self.continuous:
            # for a uniform in [-1, 1], a has the variance 1/3 and a^2 that of 4/45
            variance = (4 / 3 * pay.square() + 4 / 45).sum(-1)
        else:
            variance = pay.var(-1, correction=0)
        std_of_rewards = variance.mean(1, keepdim=True).sqrt().clamp(min=_TINY)
        env.blocks["reward_scale"].copy_(REWARD_STD / std_of_rewards)
        return env.params
