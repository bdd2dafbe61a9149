"""Synthetic environments of one step (Liesen et al. 2024, arXiv 2406.12589): what actions pay, and where episodes start.

Where we differ: a discrete action pays an output of the network, a continuous one by its distance to an output; states enter and
leave the networks in units of the task's bounds, so that a velocity of 0.07 counts as much as an angle of 3.
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
from lightning_rl.nets.members import MemberMLP

_UNBOUNDED = 1e6  # some tasks give the largest number of single precision for no bound


@dataclass(frozen=True)
class OneStepNet(SyntheticNet):
    """``pay`` maps a state to a number for each (dimension of the) action, see ``OneStepEnv``.

    Learned start states have a shift and a scale ``[O]`` at the end of the block, which do not evolve.
    """

    @cached_property
    def heads(self) -> dict[str, MemberMLP]:
        shapes = {"pay": (self.obs_size, self.action_size), "start": (self.latent_size, self.obs_size)}
        return {name: MemberMLP(i, self.hidden, o, self.activation) for name, (i, o) in shapes.items() if i}

    @property
    def _moments(self) -> int:
        return self.obs_size if self.latent_size else 0

    @property
    def size(self) -> int:
        return super().size + 2 * self._moments

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        shift = torch.zeros(len(generators), self._moments)
        return torch.cat([super().init(generators), shift, shift + 1], dim=1)

    def evolved(self) -> Tensor:
        return torch.cat([super().evolved(), torch.zeros(2 * self._moments, dtype=torch.bool)])

    def split(self, params: Tensor) -> dict[str, Tensor]:
        """The block of each head, ``shift`` and ``scale``."""
        heads, shift, scale = params.split([super().size, self._moments, self._moments], dim=1)
        return {**super().split(heads), "shift": shift, "scale": scale}


class OneStepEnv(SyntheticEnv):
    """What an action pays in a state, and nothing after it. States are in units of the task's bounds, where it has any.

    A discrete action pays its output of ``pay``, a continuous one minus its squared distance to that output, cut to the box.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        low, high = (torch.tensor(bound, device=self.params.device) for bound in (self.real.obs_low, self.real.obs_high))
        bounded = (high > low) & (high - low < _UNBOUNDED)
        self._center, self._unit = ((high + low) / 2).where(bounded, 0.0), ((high - low) / 2).where(bounded, 1.0)

    @torch.no_grad()
    def reset(self, noise: Tensor) -> State:
        start = super().reset(noise)
        if not self.net.latent_size:
            return start
        shift, scale = (self._blocks[name].unsqueeze(1) for name in ("shift", "scale"))
        rows = shift + scale * start.reshape(len(self.params), -1, start.shape[-1])
        return self._center + self._unit * rows.reshape(start.shape)

    @torch.no_grad()
    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        pay = self._pay(state)
        if self.continuous:
            reward = -(action.clamp(-1, 1) - pay).square().sum(-1)
        else:
            reward = pay.gather(-1, action.unsqueeze(-1)).squeeze(-1)
        return Step(state, self.observe(state), reward, torch.ones_like(reward, dtype=torch.bool), torch.zeros_like(reward))

    @torch.no_grad()
    def best(self, state: State) -> Tensor:
        """The actions that are paid best, ``[...]`` or ``[..., A]``."""
        pay = self._pay(state)
        return pay if self.continuous else pay.argmax(-1)

    def _pay(self, state: State) -> Tensor:
        pay = self._head("pay", (state - self._center) / self._unit)
        return pay.clamp(-1, 1) if self.continuous else pay

    @torch.no_grad()
    def with_starts(self, mean: Tensor, std: Tensor, noise: Tensor) -> Tensor:
        """The parameters ``[N, D]`` with start states that have ``mean`` and ``std`` ``[O]`` over ``noise`` ``[N, K, L]``."""
        params, drawn = self.params.clone(), self._head("start", standard_normal(noise))
        blocks = self.net.split(params)
        blocks["scale"].copy_(std / self._unit / drawn.std(1))
        blocks["shift"].copy_((mean - self._center) / self._unit - blocks["scale"] * drawn.mean(1))
        return params
