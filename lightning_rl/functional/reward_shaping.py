"""Learned rewards by name.

``phi`` is the network's value of the state before, ``next_phi`` of the one after; all ``[...]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

Number = TypeVar("Number", Tensor, float)
"""Of many steps ``[...]``, or of one."""


class RewardForm(NamedTuple):
    """What the agent gets for a step.

    code: its number in the code of arXiv 2202.02790. additive: the learned reward is added to the
    real one, else it replaces it.
    potential: the learned reward is ``gamma phi(s') - phi(s)``, else ``phi(s')``. state, info: what
    the network sees. linear: phi is a weighted sum of the info, without a bias.
    """

    code: int
    additive: bool = False
    potential: bool = False
    state: bool = False
    info: bool = False
    linear: bool = False


REWARD_FORMS: dict[str, RewardForm] = {
    "native": RewardForm(0, additive=True),
    "exclusive_potential": RewardForm(1, potential=True, state=True),
    "additive_potential": RewardForm(2, additive=True, potential=True, state=True),
    "exclusive_potential_info": RewardForm(3, potential=True, state=True, info=True),
    "additive_potential_info": RewardForm(4, additive=True, potential=True, state=True, info=True),
    "exclusive": RewardForm(5, state=True),
    "additive": RewardForm(6, additive=True, state=True),
    "exclusive_info": RewardForm(7, state=True, info=True),
    "additive_info": RewardForm(8, additive=True, state=True, info=True),
    "exclusive_weighted_info": RewardForm(101, info=True, linear=True),
    "additive_weighted_info": RewardForm(102, additive=True, info=True, linear=True),
}
"""Learned rewards by name. The paper's code has a -1, too: ``native`` with an agent that is
curious by itself.
"""


def potential_shaping(phi: Number, next_phi: Number, gamma: float) -> Number:
    """``gamma phi(s') - phi(s)`` (Ng, Harada & Russell 1999).

    Its discounted sum is ``gamma^T phi(s_T) - phi(s_0)``.

    As in the code of arXiv 2202.02790, phi is not 0 at the end of an episode.
    """
    return gamma * next_phi - phi


def shaped_reward(
    form: RewardForm,
    value: Callable[[Any, Any], Number],
    reward: Number,
    obs: Any,
    next_obs: Any,
    info: Any,
    gamma: float,
) -> Number:
    """The reward of a step ``[...]``.

    Both phi(s) and phi(s') of a potential see this step's info, as in the paper's code.

    value: ``(obs [..., O], info [..., I] or None) -> value [...]``.
    """
    if not (form.state or form.info):
        return reward
    after = value(next_obs, info)
    learned = potential_shaping(value(obs, info), after, gamma) if form.potential else after
    return reward + learned if form.additive else learned
