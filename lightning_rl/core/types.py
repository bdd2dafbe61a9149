"""Core types, and the one legend of dimensions that every docstring uses.

``N`` members · ``B`` batch · ``T`` time steps · ``O`` observation size · ``A`` action size · ``C``
command size · ``U`` updates · ``D`` weights of a network, or of what evolves · ``K`` of any number,
e.g. episodes tested · ``P`` population · ``E`` episodes · ``M`` steps of a buffer. A docstring that
uses a letter in another meaning says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Array = npt.NDArray[Any]

ActionMode = Literal["sampled", "greedy", "uniform"]


@dataclass(frozen=True)
class Request:
    """Everything besides the policy parameters that decides an episode.

    name: for people, e.g. ``"epoch 12, episode 3"``.
    seed: seeds the environment and the action noise.
    mode: ``sampled`` and ``greedy`` ask the policy, ``uniform`` ignores it.
    command: the first command ``[C]`` for command-conditioned policies.
    noise_hold: share of the steps whose action noise is that of the step before.
    guidance: how much the effect of the command is amplified; None: as the policy has it.
    """

    name: str
    seed: int
    mode: ActionMode = "sampled"
    command: tuple[float, ...] | None = None
    noise_hold: float = 0.0
    guidance: float | None = None


STORED = Request("stored", 0)
"""Of an episode of which nobody knows how it was asked for."""


@dataclass(frozen=True)
class Episode:
    """One episode of ``T`` decisions, as played.

    obs ``[T+1, O]`` includes the final observation, of images single frames, ``stack`` of which are
    seen at once; action is ``[T]`` int64, or ``[T, A]`` float32 in units where the action box is
    [-1, 1]; reward ``[T]`` is raw; command ``[T, C]`` is the command that each action was chosen
    under.
    rewards ``[T, K]``: of each objective, of a task that has several; reward is their sum.
    env_steps: environment steps that it took, more than ``T`` where actions are repeated. What is
    left out is not known, as of episodes that others have played.
    """

    obs: Array
    action: Array
    reward: FloatArray
    terminated: bool
    truncated: bool
    command: FloatArray | None = None
    request: Request = STORED
    policy_version: int = 0
    env_steps: int = 0
    stack: int = 1
    rewards: FloatArray | None = None

    def seen(self) -> Array:
        """The observations ``[T+1, O]`` as the policy saw them: the newest frames, oldest first."""
        if self.stack == 1:
            return self.obs
        newest = np.arange(len(self.obs))[:, np.newaxis] + np.arange(1 - self.stack, 1)
        return self.obs[np.maximum(newest, 0)].reshape(len(self.obs), -1)

    @property
    def length(self) -> int:
        return len(self.reward)

    @property
    def cut_off(self) -> bool:
        """Whether a time limit ended it."""
        return self.truncated and not self.terminated

    @cached_property
    def ret(self) -> float:
        """Undiscounted return, summed in double precision."""
        return float(self.reward.sum(dtype=np.float64))

    @cached_property
    def to_go(self) -> FloatArray:
        """Undiscounted return from each step to the end ``[T+1]``; the segment ``t1..t2``
        returns ``to_go[t1] - to_go[t2]``.
        """
        return np.append(np.cumsum(self.reward[::-1], dtype=np.float64)[::-1], 0.0).astype(
            np.float32
        )
