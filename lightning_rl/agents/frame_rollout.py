"""The observations of a roll-out of images, as single frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lightning_rl.agents.base import Transition

if TYPE_CHECKING:
    from lightning_rl.envs.images import Frames


class FrameRollout(nn.Module):
    """What ``N`` members saw at ``T`` decisions, of each the frames before and after.

    frame ``[N, stack - 1 + T, F]``: all that was seen at the first decision, then the newest frame
    of each. next_frame ``[N, T, F]``: the one after it.
    """

    frame: Tensor
    next_frame: Tensor

    def __init__(self, num_members: int, steps: int, frames: Frames):
        super().__init__()
        self.stack, self.size = frames.stack, frames.size
        for name, rows in (("frame", frames.stack - 1 + steps), ("next_frame", steps)):
            self.register_buffer(
                name, torch.zeros(num_members, rows, frames.size, dtype=torch.uint8)
            )

    def store(self, place: int, transition: Transition) -> None:
        """Takes in a decision of every member."""
        seen = transition.obs.unflatten(-1, (self.stack, self.size))
        if place == 0:
            self.frame[:, : self.stack] = seen
        else:
            self.frame[:, self.stack - 1 + place] = seen[:, -1]
        self.next_frame[:, place] = transition.next_obs[:, -self.size :]

    def obs(self, over: Tensor, rows: Tensor | None = None) -> Tensor:
        """What was seen at decisions ``[N, B]``, ``[N, B, O]``; None: at all.

        over ``[N, T]``: where episodes ended. Before the first frame of an episode is that frame.
        """
        member = torch.arange(len(over), device=over.device).unsqueeze(1)
        newest = torch.arange(over.shape[1], device=over.device) + self.stack - 1
        begins = torch.zeros_like(over)
        begins[:, 1:] = over[:, :-1]
        first = torch.where(begins, newest, 0).cummax(1).values
        newest = newest.expand_as(first)
        if rows is not None:
            newest, first = newest[member, rows], first[member, rows]
        steps_ago = torch.arange(self.stack - 1, -1, -1, device=over.device)
        within = torch.maximum(newest.unsqueeze(-1) - steps_ago, first.unsqueeze(-1))
        return self.frame[member.unsqueeze(-1), within].flatten(-2)

    def next_obs(self, over: Tensor) -> Tensor:
        """What was seen after every decision, ``[N, T, O]``."""
        return torch.cat([self.obs(over)[..., self.size :], self.next_frame], dim=-1)
