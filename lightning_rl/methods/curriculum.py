"""A search whose first generations are judged by shorter episodes of the real task.

Long episodes cost more, and often tell early candidates apart no better than short ones: a policy
that falls at step 20 falls in both, and one that goes nowhere does so for the whole time limit.
Where a task pays at its very end, short episodes say nothing; leave the curriculum out there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightning_rl.core.errors import UserError
from lightning_rl.evolution.strategies import Item, Proposal
from lightning_rl.methods.inner_loop import InnerLoop, Outcome


@dataclass(frozen=True)
class GrowingHorizon:
    """The inner loop with a limit on real test episodes that grows from ``first`` steps to the
    task's own (arXiv 2406.12589).

    Plain data, so that it can travel to where a population is evaluated.

    Attributes:
        loop: trains and tests the agents of a generation.
        first: steps in generation 0. The limit grows evenly from there.
        generations: so many are cut; from then on the limit is the task's own.
    """

    loop: InnerLoop
    first: int
    generations: int

    def horizon(self, generation: int) -> int:
        """Steps after which the real test episodes of a generation are cut."""
        limit = self.loop.proxy.spec.horizon
        if generation >= self.generations:
            return limit
        return self.first + (limit - self.first) * generation // self.generations

    def __call__(
        self, proposal: Proposal, items: Sequence[Item], device: str = "cpu"
    ) -> list[Outcome]:
        """The outcome of every item of a generation; returns are those of its episodes."""
        loop = dataclasses.replace(self.loop, test_horizon=self.horizon(proposal.generation))
        return loop(proposal, items, device)


def growing_horizon(loop: InnerLoop, cfg: Any) -> GrowingHorizon:
    """The loop that a search's key ``test_horizon`` asks for; UserError where it cuts nothing,
    or scores cannot be compared.
    """
    first, generations = cfg.test_horizon
    limit = loop.proxy.spec.horizon
    if first >= limit:
        raise UserError(
            f"key 'test_horizon': episodes have {limit:,} steps at most, {first:,} cut nothing; "
            "give less, or null"
        )
    if cfg.keep == "best":
        raise UserError(
            "key 'test_horizon': whole episodes have other scores than cut ones; use keep=last, or "
            "null"
        )
    if loop.objective == "auc":
        raise UserError(
            "key 'test_horizon': objective auc is of the judge_episodes, which are not cut; leave "
            "it out"
        )
    return GrowingHorizon(loop, first, generations)
