"""Environments as functions: batched tensors in, batched tensors out, state and noise explicit.

Leading dimensions ``[...]`` are any (members, episodes, both); every environment treats their
elements independently. Time limits are the roll-out loop's job. Actions are int64 ``[...]``, or
float ``[..., A]`` in units where the box is [-1, 1], clipped to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_rl.core.types import Array

State = Tensor
"""``[..., S]``: all that the future depends on."""


class Step(NamedTuple):
    """What one step gives: the next state ``[..., S]`` and its observation ``[..., O]``, reward and
    terminated ``[...]``.

    continuation ``[...]``: of learned environments, how likely the episode goes on; None: 0 where
    terminated, else 1.
    """

    state: State
    obs: Tensor
    reward: Tensor
    terminated: Tensor
    continuation: Tensor | None = None


class FuncEnv(ABC):
    """An environment as pure functions of explicit state and noise; the object itself has no state.

    obs_low, obs_high: bounds of the observations, ``O`` each.
    reset_noise_size, step_noise_size: how many numbers of uniform noise in [0, 1) a reset and a
    step take.
    episodic: episodes end by themselves; where not, what counts is the reward per step.
    binary_obs: observations are bits. small_state: states are whole numbers that fit int16.
    drawable: ``draw`` gives pictures.
    """

    obs_low: tuple[float, ...]
    obs_high: tuple[float, ...]
    action_size: int
    continuous: bool = False
    reset_noise_size: int = 0
    step_noise_size: int = 0
    episodic: bool = True
    binary_obs: bool = False
    small_state: bool = False
    drawable: bool = False

    @property
    def obs_size(self) -> int:
        return len(self.obs_low)

    @abstractmethod
    def reset(self, noise: Tensor) -> State:
        """First states for uniform noise ``[..., R]``."""

    def observe(self, state: State) -> Tensor:
        """Observations ``[..., O]`` of states; by default the states themselves."""
        return state

    @abstractmethod
    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        """One step from ``state`` for uniform noise ``[..., step_noise_size]``."""

    def require_possible(self, state: State, obs: Tensor) -> None:
        """ValueError unless a run can go on from states ``[N, S]`` with observations ``[N, O]``."""
        shape = state.shape[:-1]
        action = torch.zeros(shape, dtype=torch.int64)
        if self.continuous:
            action = torch.zeros(*shape, self.action_size)
        try:
            # compiled steps round differently
            same = torch.allclose(self.observe(state), obs, atol=1e-5)
            self.step(state, action, torch.zeros(*shape, self.step_noise_size))
        except (RuntimeError, IndexError, ValueError) as error:
            reason = str(error).splitlines()[0][:80]
            raise ValueError(f"states that the environment does not have ({reason})") from error
        if not same:
            raise ValueError("observations that are not those of the states")

    def draw(self, obs: Tensor) -> Array:
        """A picture uint8 ``[height, width, 3]`` of one observation ``[O]``, which may also be a
        model's: bits in 0 .. 1.
        """
        raise NotImplementedError(f"{type(self).__name__} has no picture")

    def keep(self, rows: Tensor) -> FuncEnv:
        """The environment for the members ``rows`` ``[M]`` alone; learned ones have parameters
        for each member.
        """
        return self

    def to(self, device: torch.device) -> FuncEnv:
        """The environment for states on ``device``; those with parameters take them there."""
        return self


def uniform_between(noise: Tensor, low: float | Tensor, high: float | Tensor) -> Tensor:
    """Uniform noise in [0, 1) stretched to [low, high)."""
    return low + (high - low) * noise


def standard_normal(noise: Tensor) -> Tensor:
    """Normal noise from uniform noise; single precision cuts it off at 5.2 standard deviations."""
    tiny = torch.finfo(noise.dtype).eps
    return torch.special.ndtri(noise.clamp(tiny, 1 - tiny))


def is_func_env(make: object) -> bool:
    """Whether it is a class of these, not one of Gymnasium's or a function."""
    return isinstance(make, type) and issubclass(make, FuncEnv)
