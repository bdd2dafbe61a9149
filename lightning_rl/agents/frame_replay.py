"""A replay memory of images, which keeps single frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lightning_rl.agents.base import Transition
from lightning_rl.agents.ring import Column, MemberRing

if TYPE_CHECKING:
    from lightning_rl.envs.images import Frames


class FrameReplay(MemberRing):
    """A ring of ``capacity`` steps for each of ``N`` members, of each the frames before and after.

    What was seen at a step is put together of the frames before it and before the last few steps of
    its episode. Where these have been overwritten, the oldest that is left is seen instead, as the
    first one is at the start of an episode. Memory: about ``2 N capacity`` frames.
    """

    def __init__(self, num_members: int, capacity: int, frames: Frames, num_actions: int):
        self.stack, self.frame_size, self.num_actions = frames.stack, frames.size, num_actions
        columns = {
            "frame": Column(frames.size, torch.uint8),
            "next_frame": Column(frames.size, torch.uint8),
            "past": Column(1, torch.uint8),  # earlier frames of the episode that are seen
            "action": Column(1, torch.int64),
            "reward": Column(1, torch.float32),
            "discount": Column(1, torch.float32),
        }
        super().__init__(num_members, capacity, columns)
        self.age = torch.zeros(num_members, dtype=torch.int64)  # steps of the episode under way

    def store(self, step: Transition, over: Tensor) -> None:
        """Writes one step of every member; the oldest gives way.

        over ``[N]``: the episode ended here.
        """
        row = {
            "frame": step.obs[:, -self.frame_size :],
            "next_frame": step.next_obs[:, -self.frame_size :],
            "past": self.age.clamp(max=self.stack - 1),
            "action": step.action,
            "reward": step.reward,
            "discount": step.discount,
        }
        self.add({name: value.reshape(len(over), -1) for name, value in row.items()})
        self.age = (self.age + 1).masked_fill(over, 0)

    def batch(self, noise: Tensor) -> Transition:
        """A batch drawn uniformly with replacement, of observations as they were seen.

        noise ``[N, B]``: uniform in [0, 1), double precision.
        """
        place = (noise * self.count).long()
        frame, next_frame, past, action, reward, discount = (
            self._at(data, place) for data in self.data.values()
        )
        oldest = self.written % self.capacity if self.written > self.capacity else 0
        there = (place - oldest) % self.capacity  # rows that are older
        past = torch.minimum(past.squeeze(-1), there).unsqueeze(-1)
        steps_ago = torch.arange(self.stack - 1, 0, -1, device=place.device)
        earlier = (place.unsqueeze(-1) - torch.minimum(steps_ago, past)) % self.capacity
        frames = self._at(self.data["frame"], earlier.flatten(1)).reshape(*place.shape, -1)
        obs = torch.cat([frames, frame], dim=-1)
        next_obs = torch.cat([obs[..., self.frame_size :], next_frame], dim=-1)
        return Transition(
            obs, action.squeeze(-1), reward.squeeze(-1), discount.squeeze(-1), next_obs
        )

    def _at(self, data: Tensor, place: Tensor) -> Tensor:
        """Rows ``[N, B, size]`` of each member's ring."""
        index = place + self.first.unsqueeze(1)
        return data.index_select(0, index.flatten()).unflatten(0, index.shape)

    def keep(self, members: Tensor) -> None:
        super().keep(members)
        self.age = self.age[members]

    def to(self, device: torch.device) -> None:
        super().to(device)
        self.age = self.age.to(device)

    def snapshot(self) -> dict[str, Tensor]:
        return {**super().snapshot(), "age": self.age}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        super().restore(state)
        self.age = state["age"].to(self.age.device)
        action = state["action"]
        if not bool(((action >= 0) & (action < self.num_actions)).all()):
            raise ValueError(f"memory: an action that is none of 0 to {self.num_actions - 1}")
        if self.age.shape != self.first.shape or bool((self.age < 0).any()):
            raise ValueError(f"age {self.age.tolist()} of episodes of {len(self.first)} members")
