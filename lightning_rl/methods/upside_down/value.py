"""A command that takes no luck for skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lightning_rl.core.schema import Share
from lightning_rl.functional.returns import discounted_returns
from lightning_rl.functional.upside_down import at_most
from lightning_rl.methods.upside_down.commands import Return, register_command
from lightning_rl.methods.upside_down.critic import FitWithQ, JudgedEpisodes
from lightning_rl.rollouts.episode_buffer import FlatEpisodes

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.config import UpsideDownConfig


@register_command("value")
class Value(Return):
    """The return that is expected of what the agent did, not the one that chance made of it.

    A sampled return is what was expected, and for each step what the action added and what chance
    did (Pan and Schoelkopf 2023, arXiv 2402.12874). The label keeps the first two::

        V(s_t) + sum_k (gamma * gae_lambda)^(k - t) * (Q(s_k, a_k) - V(s_k))

    With ``gae_lambda`` 0 it is Q(s_t, a_t): chance and the agent's own later actions are averaged.
    With 1 later actions count as they were, and only chance is averaged: where nothing is
    random, this is the sampled return, up to the critic's error. ESPER (arXiv 2205.15967) averages
    the returns of clusters of episodes in which the agent behaves alike; the critic needs no
    clusters, but its average is over all behaviour in the buffer.
    """

    requires = (FitWithQ,)
    gae_lambda: Share

    def fulfilled(self, episodes: FlatEpisodes) -> Tensor:
        assert isinstance(episodes, JudgedEpisodes)
        assert episodes.fitted_advantage is not None
        decay = self.gamma * self.gae_lambda
        skill = discounted_returns(episodes.fitted_advantage, decay, episodes.last)
        return at_most(self.label_max, episodes.value[episodes.row] + skill).unsqueeze(-1)

    @property
    def is_episode_return(self) -> bool:
        return False

    def check(self, cfg: UpsideDownConfig) -> None:
        super().check(cfg)
        if cfg.buffer != "newest" and not cfg.offline:
            raise ValueError(
                f"buffer {cfg.buffer} keeps lucky episodes, from which a critic learns luck; set "
                "buffer=newest"
            )
