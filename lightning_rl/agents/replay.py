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


class MemberReplay(MemberRing):
    """A ring of ``capacity`` transitions for each of ``N`` members.

    A transition is one row of numbers, so that a batch is a single gather. Memory: ``4 N capacity (2 O + A + 2)`` bytes, of
    which only what has been written is touched.

    action_size: 0 for discrete actions.
    """

    def __init__(self, num_members: int, capacity: int, obs_size: int, action_size: int):
        self.obs_size, self.action_size = obs_size, action_size
        self._sizes = [obs_size, max(action_size, 1), 1, 1, obs_size]
        super().__init__(num_members, capacity, {"rows": Column(sum(self._sizes), torch.float32)})

    def store(self, step: Transition) -> None:
        """Writes one step of every member; the oldest gives way."""
        action = step.action if self.action_size else step.action.unsqueeze(-1).float()
        row = torch.cat([step.obs, action, step.reward.unsqueeze(-1), step.discount.unsqueeze(-1), step.next_obs], dim=-1)
        self.add({"rows": row})

    def batch(self, noise: Tensor) -> Transition:
        """A batch drawn uniformly with replacement for uniform noise ``[N, B]`` in [0, 1), double precision."""
        rows = self.sample(noise, slice(None))["rows"]
        obs, action, reward, discount, next_obs = rows.split(self._sizes, dim=-1)
        act = action if self.action_size else action.squeeze(-1).long()
        return Transition(obs, act, reward.squeeze(-1), discount.squeeze(-1), next_obs)

    def transitions_layout(self, members: int | str, num_actions: int) -> Also:
        """What ``snapshot`` may look like; see ``layout``. Actions that are indices are below ``num_actions``."""

        def inconsistency(state: Mapping[str, Tensor]) -> str | None:
            action = state["rows"][..., self.obs_size]
            known = bool(((action >= 0) & (action < num_actions) & (action == action.trunc())).all())
            return None if self.action_size or known else f"an action that is none of 0 to {num_actions - 1}"

        return Also(self.layout(members), inconsistency)
