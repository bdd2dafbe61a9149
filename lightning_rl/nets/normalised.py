"""Networks that see observations in standard deviations of those collected so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from lightning_rl.core.types import Episode, FloatArray
from lightning_rl.functional.moments import merged

LIMIT = 10.0
"""How many standard deviations an observation may be from the mean."""
_EPSILON = 1e-8  # of a variance: a number that never changes becomes 0


class ObsNormaliser(nn.Module):
    """Shifts and scales obs ``[..., O]`` by their running mean and deviation, clipped to +-10.

    These are buffers: they travel with the parameters, to workers, checkpoints and exports, and
    change between collections alone. As long as nothing was seen, obs are clipped alone.
    """

    count: Tensor
    mean: Tensor
    variance: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))

    @torch.no_grad()
    def see(self, obs: Tensor) -> None:
        """Counts in the observations ``[B, O]`` of a collection."""
        before = self.count, self.mean, self.variance
        after = merged(before, obs.to(self.mean.device))
        for buffer, value in zip(before, after, strict=True):
            buffer.copy_(value)

    def see_episodes(self, episodes: Sequence[Episode]) -> None:
        """Counts in what episodes have observed."""
        self.see(torch.from_numpy(np.concatenate([episode.obs for episode in episodes])))

    def shift_and_scale(self) -> tuple[Tensor, Tensor]:
        """Of single precision ``[O]``, which networks have."""
        return self.mean.float(), (self.variance + _EPSILON).rsqrt().float()

    def forward(self, obs: Tensor) -> Tensor:
        shift, scale = self.shift_and_scale()
        return ((obs - shift) * scale).clamp(-LIMIT, LIMIT)

    def frozen(self) -> Callable[[FloatArray], FloatArray]:
        """The same of arrays, bit for bit, with the numbers that it has now."""
        shift, scale = (each.numpy() for each in self.shift_and_scale())
        return lambda obs: np.clip((obs - shift) * scale, -LIMIT, LIMIT)


class Normalised(nn.Module):
    """A network behind a normaliser, and maybe with a command beside the observation."""

    def __init__(self, normaliser: ObsNormaliser, net: nn.Module):
        super().__init__()
        self.normaliser, self.net = normaliser, net

    def forward(self, obs: Tensor, *command: Tensor) -> Tensor:
        return self.net(self.normaliser(obs), *command)
