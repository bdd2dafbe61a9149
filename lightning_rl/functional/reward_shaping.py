"""Learned rewards by name. ``phi`` is the network's value of the state before, ``next_phi`` of the one after; all ``[...]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class RewardForm(NamedTuple):
    """code: the earlier code's number. additive: to the real reward. potential: ``gamma phi(s') - phi(s)``, else ``phi(s')``.

    state, info: what the network sees. linear: the value is the weighted sum of the info, without a bias.
    """

    code: int
    additive: bool
    potential: bool
    state: bool
    info: bool
    linear: bool = False


REWARD_FORMS: dict[str, RewardForm] = {
    "native": RewardForm(0, True, False, False, False),
    "exclusive_potential": RewardForm(1, False, True, True, False),
    "additive_potential": RewardForm(2, True, True, True, False),
    "exclusive_potential_info": RewardForm(3, False, True, True, True),
    "additive_potential_info": RewardForm(4, True, True, True, True),
    "exclusive": RewardForm(5, False, False, True, False),
    "additive": RewardForm(6, True, False, True, False),
    "exclusive_info": RewardForm(7, False, False, True, True),
    "additive_info": RewardForm(8, True, False, True, True),
    "exclusive_weighted_info": RewardForm(101, False, False, False, True, linear=True),
    "additive_weighted_info": RewardForm(102, True, False, False, True, linear=True),
}
"""Forms of the reward that the agent gets. The earlier code's -1 is ``native`` with an agent that is curious by itself."""


def potential_shaping(phi: Tensor, next_phi: Tensor, gamma: float) -> Tensor:
    """``gamma phi(s') - phi(s)`` (Ng, Harada & Russell 1999): its discounted sum is ``gamma^T phi(s_T) - phi(s_0)``.

    As in the earlier code, phi is not 0 at the end of an episode.
    """
    return gamma * next_phi - phi


Value = Callable[[Tensor, Tensor | None], Tensor]
"""(obs ``[..., O]``, info ``[..., I]`` or None) -> value ``[...]``."""


def shaped_reward(
    form: RewardForm, value: Value, reward: Tensor, obs: Tensor, next_obs: Tensor, info: Tensor | None, gamma: float
) -> Tensor:
    """The reward of a step ``[...]``. Both values of a potential see the info of this step, as in the earlier code."""
    if not (form.state or form.info):
        return reward
    after = value(next_obs, info)
    learned = potential_shaping(value(obs, info), after, gamma) if form.potential else after
    return reward + learned if form.additive else learned
