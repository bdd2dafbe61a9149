"""How a command is used up, as data that a graph or a page can hold, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Decrease:
    """How a command is used up by a step, as data: of arrays, of tensors, in a graph or elsewhere.

    Its first numbers are returns, as many as the step paid rewards. What is left of each is
    ``min((return - reward) / gamma, highest)``. With ``counts_steps`` the others are numbers of
    steps, of which one is always left: ``max(steps - 1, 1)``; otherwise they stay.
    """

    gamma: float = 1.0
    highest: float = math.inf
    counts_steps: bool = True

    def __call__(self, command: Any, reward: Any) -> Any:
        """What is left of commands ``[B, C]`` after rewards ``[B]`` or ``[B, K]``."""
        reward = reward.reshape(command.shape[0], -1)
        size = reward.shape[1]
        left = ((command[:, :size] - reward) / self.gamma).clip(max=self.highest)
        others = command[:, size:]
        if self.counts_steps:
            others = (others - 1).clip(min=1)
        concatenate = torch.cat if isinstance(command, Tensor) else np.concatenate
        return concatenate([left, others], -1)
