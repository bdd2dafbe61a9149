"""The command: a return of each objective, within a number of steps."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import Episode


def fulfilled(episodes: list[Episode]) -> Tensor:
    """What was obtained of each objective from each step on, and in how many, ``[M, K + 1]``."""
    rows = []
    for episode in episodes:
        assert episode.rewards is not None
        to_go = np.cumsum(episode.rewards[::-1], axis=0, dtype=np.float64)[::-1]
        left = np.arange(episode.length, 0, -1)
        rows.append(np.column_stack([to_go, left]))
    return torch.from_numpy(np.concatenate(rows)).float()
