"""Commands that are drawn anew at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import FloatArray
from lightning_rl.nets.command import CommandPolicy


class NoisyCommandPolicy(CommandPolicy):
    """Takes a command of one number and adds normal noise to it at every step, none in greedy
    episodes.

    command_noise: standard deviation of that noise, and the limits of the noisy command.
    """

    command_noise: Tensor

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self.register_buffer("command_noise", torch.zeros(3))
        self.noise_size = self.action_size + 1

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        action = super().draw_noise(rng, (*shape[:-1], self.action_size))
        return np.concatenate(
            [action, rng.standard_normal((*shape[:-1], 1), dtype=np.float32)], axis=-1
        )

    def act(
        self, obs: Tensor, command: Tensor | None, noise: Tensor, guidance: Tensor | None = None
    ) -> Tensor:
        assert command is not None
        sd, low, high = self.command_noise
        noisy = (command + sd * noise[..., -1:]).clamp(low, high)
        command = torch.where(sd > 0, noisy, command)  # without sd there are no limits, too
        return super().act(obs, command, noise[..., :-1], guidance)
