"""Batches of steps for methods that learn from whole, fresh episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Episode


@dataclass(frozen=True)
class StepBatch:
    """The steps of ``E`` whole episodes, one behind another.

    obs ``[B, O]``, action ``[B]`` or ``[B, A]``, reward ``[B]``; last ``[B]``: the last step of each episode; final_obs
    ``[E, O]`` and truncated ``[E]``: how each ended. scalars: what was measured while collecting.
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    last: Tensor
    final_obs: Tensor
    truncated: Tensor
    scalars: Mapping[str, float]

    def to(self, device: torch.device) -> StepBatch:
        moved: dict[str, Any] = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in vars(self).items()}
        return StepBatch(**moved)


def step_batch(episodes: list[Episode], scalars: Mapping[str, float]) -> StepBatch:
    """Flattens episodes. UserError for a batch without a finished episode, and for rewards that are not finite."""
    episodes = [episode for episode in episodes if episode.terminated or episode.truncated]
    if not episodes:
        raise UserError("the batch has no finished episode: returns are known at the end only; raise num_episodes_per_iter")
    for episode in episodes:
        if not np.isfinite(episode.ret):
            step = int(np.argmin(np.isfinite(episode.reward)))
            raise UserError(
                f"the return of {episode.request.name} is {episode.ret}: reward {episode.reward[step]} at step {step} "
                f"(request seed {episode.request.seed}); correct the environment"
            )
    ends = np.cumsum([episode.length for episode in episodes])
    last = torch.zeros(int(ends[-1]), dtype=torch.bool)
    last[torch.from_numpy(ends - 1)] = True
    return StepBatch(
        obs=torch.from_numpy(np.concatenate([episode.obs[:-1] for episode in episodes])),
        action=torch.from_numpy(np.concatenate([episode.action for episode in episodes])),
        reward=torch.from_numpy(np.concatenate([episode.reward for episode in episodes])),
        last=last,
        final_obs=torch.from_numpy(np.stack([episode.obs[-1] for episode in episodes])),
        truncated=torch.tensor([episode.truncated and not episode.terminated for episode in episodes]),
        scalars=scalars,
    )
