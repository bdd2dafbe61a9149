"""Replay memory with a member axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_rl.agents.ring import Column, MemberRing
from lightning_rl.core.contents import Also


class Transition(NamedTuple):
    """obs ``[..., O]``, action ``[...]`` int64 or ``[..., A]``, reward ``[...]``, discount ``[...]``, next_obs ``[..., O]``;
    the leading dimensions are ``[N]`` for one step of every member, ``[N, B]`` for a batch.
    """

    obs: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_obs: Tensor


class MemberReplay:
    """A ring of ``capacity`` transitions for each of ``N`` members, allocated once.

    A transition is one row of numbers in a ``MemberRing``, so that a batch is a single gather. Memory:
    ``4 N capacity (2 O + A + 2)`` bytes, of which only what has been written is touched.

    action_size: 0 for discrete actions.
    """

    def __init__(self, num_members: int, capacity: int, obs_size: int, action_size: int, device: str = "cpu"):
        self.capacity, self.obs_size, self.action_size = capacity, obs_size, action_size
        self._columns = [obs_size, max(action_size, 1), 1, 1, obs_size]
        self._ring = MemberRing(num_members, capacity, {"rows": Column(sum(self._columns), torch.float32)}, device)

    def __len__(self) -> int:
        """Transitions to draw from, the same for every member."""
        return len(self._ring)

    @property
    def _rows(self) -> Tensor:
        return self._ring.data["rows"]

    def add(self, step: Transition) -> None:
        """Writes one step of every member; the oldest gives way."""
        action = step.action if self.action_size else step.action.unsqueeze(-1).float()
        row = torch.cat([step.obs, action, step.reward.unsqueeze(-1), step.discount.unsqueeze(-1), step.next_obs], dim=-1)
        self._ring.add({"rows": row})

    def sample(self, noise: Tensor) -> Transition:
        """A batch drawn uniformly with replacement for uniform noise ``[N, B]`` in [0, 1), double precision."""
        rows = self._ring.sample(noise, slice(None))["rows"]
        obs, action, reward, discount, next_obs = rows.split(self._columns, dim=-1)
        act = action if self.action_size else action.squeeze(-1).long()
        return Transition(obs, act, reward.squeeze(-1), discount.squeeze(-1), next_obs)

    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` alone; nothing is copied."""
        self._ring.keep(rows)

    def snapshot(self) -> dict[str, Tensor]:
        """What has been written, ``rows [N, len, W]``, and how many were ever ``written [N]``."""
        return self._ring.snapshot()

    def layout(self, members: int | str, num_actions: int) -> Also:
        """What ``snapshot`` may look like; see ``MemberRing.layout``. Actions that are indices are below ``num_actions``."""

        def inconsistency(state: Mapping[str, Tensor]) -> str | None:
            action = state["rows"][..., self.obs_size]
            known = bool(((action >= 0) & (action < num_actions) & (action == action.trunc())).all())
            return None if self.action_size or known else f"an action that is none of 0 to {num_actions - 1}"

        return Also(self._ring.layout(members), inconsistency)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from a snapshot of as many members."""
        self._ring.restore(state)
