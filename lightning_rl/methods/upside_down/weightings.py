"""Weightings: how much a step counts in the policy's loss."""

from __future__ import annotations

from pydantic import PositiveFloat
from torch import Tensor

from lightning_rl.core.parts import Kind, Part
from lightning_rl.core.schema import Share
from lightning_rl.functional.upside_down import at_most, exponential_weights, standardise
from lightning_rl.rollouts.episode_buffer import FlatEpisodes


class Weighting(Part):
    """How much each step counts. A subclass defines ``weights``."""

    to_define = ("weights",)

    def weights(self, episodes: FlatEpisodes) -> Tensor | None:
        """Weights ``[M]`` of all steps, of mean 1; None: all count alike."""
        raise NotImplementedError


WEIGHTINGS = Kind("weights", Weighting, "register_weighting")
register_weighting = WEIGHTINGS.register


@register_weighting("none")
class AllAlike(Weighting):
    """All steps count alike, as in UDRL."""

    def weights(self, episodes: FlatEpisodes) -> None:
        return None


class ExponentialWeighting(Weighting):
    """``min(exp(z / temperature), max_weight)``, z being a label, standardised over all steps.

    From the RCP paper, section 3, and AWR, Peng et al. 2019. A subclass defines the label.
    """

    to_define = ("label",)
    temperature: PositiveFloat
    max_weight: PositiveFloat
    label_max: float | None

    def label(self, episodes: FlatEpisodes) -> Tensor:
        """How well each step turned out, ``[M]``."""
        raise NotImplementedError

    def weights(self, episodes: FlatEpisodes) -> Tensor:
        label = at_most(self.label_max, self.label(episodes))
        return exponential_weights(standardise(label), self.temperature, self.max_weight)


@register_weighting("return_to_go")
class ByReturnToGo(ExponentialWeighting):
    """The label is the discounted return-to-go, as in the paper's RCP-R."""

    gamma: Share

    def label(self, episodes: FlatEpisodes) -> Tensor:
        return episodes.discounted_return(self.gamma)


@register_weighting("episode_return")
class ByEpisodeReturn(ExponentialWeighting):
    """The label is the undiscounted return of the whole episode."""

    def label(self, episodes: FlatEpisodes) -> Tensor:
        return episodes.episode_return
