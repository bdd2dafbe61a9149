"""One environment per member, played in lock-step: what agents learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_rl.core.contents import check_alike
from lightning_rl.core.seeding import MemberNoise
from lightning_rl.envs.func_env import FuncEnv


class BatchStep(NamedTuple):
    """One decision of every member: the observation that really followed ``[N, O]`` (the final one
    where the episode ended), reward, terminated, truncated and length (environment steps that the
    decision took), each ``[N]``.

    continuation ``[N]``: see ``Step``. info: what the wrapper of a ``GymBatch``
    records.
    """

    obs: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    length: Tensor
    continuation: Tensor | None = None
    info: Tensor | None = None

    def discount(self, gamma: float) -> Tensor:
        """``gamma`` times how likely the episode goes on, ``[N]``: a time limit is no
        termination (Pardo et al. 2018).
        """
        return gamma * (
            (~self.terminated).float() if self.continuation is None else self.continuation
        )


class EnvBatch(ABC):
    """``N`` environments; what member ``n`` meets depends on its seed and its own actions alone.

    obs ``[N, O]``: the current observations. cap_ends: for agents, the time limit is a termination.
    """

    obs: Tensor
    cap_ends = False

    @abstractmethod
    def reset(self, where: Tensor) -> Tensor:
        """Starts new episodes in the environments ``where`` ``[N]`` bool; the current
        observations ``[N, O]`` of all.
        """

    def retire(self, where: Tensor) -> Tensor:
        """Like ``reset``, for environments whose further steps are not needed: they may stand
        still instead of starting anew.
        """
        return self.reset(where)

    @abstractmethod
    def step(self, action: Tensor) -> BatchStep:
        """One action ``[N]`` or ``[N, A]`` in each environment. An episode that has ended must
        be reset before the next step.
        """

    @abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` alone."""

    @abstractmethod
    def snapshot(self) -> dict[str, Tensor]:
        """All that the rest of the episodes under way depends on, ``[N, ...]`` each."""

    @abstractmethod
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continues from a ``snapshot`` of the same members."""

    def close(self) -> None:
        """Ends processes, where there are any."""

    def to(self, device: torch.device) -> EnvBatch:
        """The environments for agents on ``device``; those that only the CPU can play stay
        there.
        """
        from lightning_rl.envs.wrapped_batch import CopiedBatch  # not needed on the CPU

        return self if device.type == "cpu" else CopiedBatch(self, device)


class FuncBatch(EnvBatch):
    """A ``FuncEnv`` with a time limit of ``horizon`` steps.

    repeat: each action is taken this many times, or until the episode ends, and rewards are summed;
    terminated, truncated and continuation are those of the last step that was taken.
    """

    def __init__(self, env: FuncEnv, horizon: int, seeds: Sequence[int], repeat: int = 1):
        self.env, self.horizon, self.repeat = env, horizon, repeat
        self._reset_noise = MemberNoise(seeds, "reset", (env.reset_noise_size,), "uniform")
        self._step_noise = MemberNoise(seeds, "step", (env.step_noise_size,), "uniform")
        self._clock = 0  # steps taken in lock-step; counts the noise
        self.length = torch.zeros(len(seeds), dtype=torch.int64)
        self.state = env.reset(self._reset_noise.at(0))
        self.obs = env.observe(self.state)

    def reset(self, where: Tensor) -> Tensor:
        self.state = torch.where(where.unsqueeze(-1), self._fresh(), self.state)
        self.obs = torch.where(where.unsqueeze(-1), self.env.observe(self.state), self.obs)
        self.length = self.length.masked_fill(where, 0)
        return self.obs

    def _fresh(self) -> Tensor:
        """First states ``[N, S]`` for episodes that start now."""
        return self.env.reset(self._reset_noise.at(self._clock))

    def step(self, action: Tensor) -> BatchStep:
        if self.repeat == 1:
            return self._step(action)
        before = self.length
        step = self._step(action)
        for _ in range(self.repeat - 1):
            over = step.terminated | step.truncated
            state, obs, length = self.state, self.obs, self.length
            after = self._step(action)
            self.state = torch.where(over.unsqueeze(-1), state, self.state)
            self.obs = torch.where(over.unsqueeze(-1), obs, self.obs)
            self.length = torch.where(over, length, self.length)
            continuation = after.continuation
            if continuation is not None and step.continuation is not None:
                continuation = torch.where(over, step.continuation, continuation)
            step = BatchStep(
                self.obs,
                step.reward + after.reward.masked_fill(over, 0),
                torch.where(over, step.terminated, after.terminated),
                torch.where(over, step.truncated, after.truncated),
                self.length - before,
                continuation,
            )
        return step

    def _step(self, action: Tensor) -> BatchStep:
        step = self.env.step(self.state, action, self._step_noise.at(self._clock))
        self._clock += 1
        self.state, self.obs, self.length = step.state, step.obs, self.length + 1
        truncated = (self.length >= self.horizon) & ~step.terminated
        return BatchStep(
            step.obs,
            step.reward,
            step.terminated,
            truncated,
            torch.ones_like(self.length),
            step.continuation,
        )

    def advance(self, state: Tensor, obs: Tensor, length: Tensor, steps: int) -> None:
        """Takes over what so many steps elsewhere have made of the environments."""
        self.state, self.obs, self.length = state, obs, length
        self._clock += steps

    def keep(self, rows: Tensor) -> None:
        self.env = self.env.keep(rows)
        self.state, self.obs, self.length = self.state[rows], self.obs[rows], self.length[rows]
        self._reset_noise.keep(rows)
        self._step_noise.keep(rows)

    def to(self, device: torch.device) -> FuncBatch:
        self.env = self.env.to(device)
        self.state, self.obs, self.length = (
            value.to(device) for value in (self.state, self.obs, self.length)
        )
        self._reset_noise.to(device)
        self._step_noise.to(device)
        return self

    def snapshot(self) -> dict[str, Tensor]:
        return {
            "state": self.state,
            "obs": self.obs,
            "length": self.length,
            "clock": torch.full_like(self.length, self._clock),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        check_alike(state, self.snapshot(), "envs")
        if (state["clock"] != state["clock"][:1]).any():
            raise ValueError("members that are not at the same step")
        self.env.require_possible(state["state"], state["obs"])
        self.state, self.obs, self.length = (
            state[name].to(self.obs.device) for name in ("state", "obs", "length")
        )
        self._clock = int(state["clock"][0])
