"""The first generations of a search for synthetic environments of one-step episodes, without training.

There an agent learns what each action pays, and no more: one that learned without error would take the action that the
environment pays best. So the rewards can be evolved by those who do, hundreds of times cheaper than by agents, and the agents
come in when the rewards are good: they show which states they have to see, and how clearly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lightning_rl.agents.base import Actors
from lightning_rl.agents.training import Results
from lightning_rl.core.errors import UserError
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.synthetic import SyntheticEnv
from lightning_rl.evolution.strategies import Item, Proposal
from lightning_rl.methods.inner_loop import InnerLoop, Outcome


class PerfectLearners(Actors):
    """What agents on synthetic environments of one-step episodes would become if they learned without error.

    Member ``n`` takes the action for which ``env`` pays it most; of continuous ones the best of a grid, or of as many drawn ones.
    """

    GRID, DRAWN = 21, 441  # values of a single continuous action; of several

    def __init__(self, env: SyntheticEnv, seeds: Sequence[int]):
        super().__init__(seeds)
        self.env = env
        self.params = nn.Parameter(env.params, requires_grad=False)
        if env.continuous:
            drawn = torch.rand(self.DRAWN, env.action_size, generator=torch.Generator().manual_seed(0))
            self.choices = torch.linspace(-1, 1, self.GRID).unsqueeze(1) if env.action_size == 1 else 2 * drawn - 1
        else:
            self.choices = torch.arange(env.action_size)

    def greedy(self, obs: Tensor) -> Tensor:
        rows = obs.unsqueeze(2).expand(-1, -1, len(self.choices), -1)
        choices = self.choices.expand(*rows.shape[:3], *self.choices.shape[1:])
        return self.choices[self.env.step(rows, choices, obs.new_zeros(())).reward.argmax(-1)]

    @property
    def num_updates(self) -> Tensor:
        return torch.zeros(len(self.seeds), dtype=torch.int64)

    def module(self, row: int) -> nn.Module:
        raise NotImplementedError("what is paid best is no network from observations")


@dataclass(frozen=True, kw_only=True)
class PerfectFirst(InnerLoop):
    """An inner loop whose first ``perfect_generations`` generations are judged by ``PerfectLearners``."""

    perfect_generations: int

    def __call__(self, proposal: Proposal, items: Sequence[Item], device: str = "cpu") -> list[Outcome]:
        """The outcome of every item of a generation; perfect learners, who do not train, are on the CPU."""
        if proposal.generation >= self.perfect_generations:
            return super().__call__(proposal, items, device)
        assert isinstance(self.proxy, SyntheticProxy)
        params, seeds = proposal.rows(items), [proposal.seed(item) for item in items]
        none = torch.zeros(len(seeds), dtype=torch.int64)
        nothing = Results(none[:, None].float(), none[:, None].float(), none[:, None], none, none, none.bool(), none)
        learners = PerfectLearners(self.proxy.env(params), seeds)
        return self.outcomes(self.tested(learners, nothing, self.proxy.spec, seeds))


def perfect_first(loop: InnerLoop, generations: int) -> InnerLoop:
    """The same with so many generations of perfect learners at first. UserError where episodes have more than one step."""
    if not (isinstance(loop.proxy, SyntheticProxy) and loop.proxy.horizon == 1):
        raise UserError(f"perfect_generations {generations}: what one step pays is all that there is to learn with "
                        "proxy_horizon 1 alone; use that, or perfect_generations=0")  # fmt: skip
    values = {field.name: getattr(loop, field.name) for field in dataclasses.fields(loop)}
    return PerfectFirst(**values, perfect_generations=generations)
