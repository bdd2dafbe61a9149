"""Training that is judged by more than training returns.

For example by tests on the real environment after each episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lightning_rl.agents.base import Agent
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.agents.training import MemberTraining
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.batch import EnvBatch

Score = Callable[[Agent, Sequence[int]], tuple[Tensor, Tensor]]
"""(agent with the members as they were after an episode, a seed for each) -> the scores that the
stop rule judges, and the environment steps that it took to find them, ``[M]`` each.
"""

_TOGETHER = 4
"""Episodes per member, on average, that are scored together; those after the one at which a
member stops are wasted.
"""


class Waiting(NamedTuple):
    """Episodes that ended together.

    Their members and numbers ``[M]``, and the members' rows after them.
    """

    members: Tensor
    episode: Tensor
    rows: dict[str, Tensor]


class JudgedTraining(MemberTraining):
    """Training whose stop rule judges each episode by ``score``.

    A test of one member takes as long as a test of a hundred. So several episodes are scored
    together later, with copies of the members as they were after each; a member that should have
    stopped at one of them is set back to it. The results equal those of scoring each episode as it
    ends.
    """

    def __init__(self, *args: Any, score: Score, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.score = score
        self._waiting: list[Waiting] = []

    def _judge(self, over: Tensor, members: Tensor, episode: Tensor) -> None:
        self._waiting.append(Waiting(members, episode, self.agent.rows(over)))
        many = sum(len(each.members) for each in self._waiting) >= _TOGETHER * len(self.members)
        if many or bool((episode + 1 >= self.max_episodes).any()):
            self._find_scores()

    def _settle(self) -> None:
        if self._waiting:
            self._find_scores()
            self._members_end()

    def _find_scores(self) -> None:
        """Scores the waiting episodes.

        A member whose stop rule held after one of them is restored to its state then.
        """
        waiting, self._waiting = self._waiting, []
        members = torch.cat([each.members for each in waiting])
        episode = torch.cat([each.episode for each in waiting])
        names = waiting[0].rows
        rows = {name: torch.cat([each.rows[name] for each in waiting]) for name in names}
        pairs = zip(members.tolist(), episode.tolist(), strict=True)
        seeds = [derive_seed(self.agent.seeds[n], "score", e) for n, e in pairs]
        with self.agent.holding(rows):
            score, steps = self.score(self.agent, seeds)
        self.results.scores[members, episode] = score.cpu()
        last = torch.full((len(self.agent.seeds),), self.max_episodes)
        if self.stop is not None:
            ends = self._holds(members, episode, self.stop)
            last.scatter_reduce_(0, members[ends], episode[ends], "amin")
        counts = episode <= last[members]
        self.results.judge_steps.index_add_(0, members[counts], steps.cpu()[counts])
        stops = (episode == last[members]).nonzero().squeeze(1)
        rows = {name: value[stops] for name, value in rows.items()}
        self._go_back(members[stops], episode[stops] + 1, rows)

    def _go_back(self, members: Tensor, episodes: Tensor, rows: dict[str, Tensor]) -> None:
        """Ends the training of these members after so many ``episodes``.

        rows: the state that they had then.
        """
        results = self.results
        places = torch.searchsorted(self.members, members)
        for name, value in self.agent.rows().items():
            value[places.to(value.device)] = rows[name]
        later = torch.arange(self.max_episodes) >= episodes.unsqueeze(1)
        for curve in (results.returns, results.scores, results.lengths):
            curve[members] = curve[members].masked_fill(later, 0)
        results.stopped[members] = True
        results.episodes[members] = episodes
        results.env_steps[members] = results.lengths[members].sum(1)


def mean_test_return(make_envs: Callable[[Sequence[int]], EnvBatch], episodes: int) -> Score:
    """The mean return of ``episodes`` greedy test episodes.

    make_envs: gives the environments for ``M * episodes`` seeds.
    """

    def score(agent: Agent, seeds: Sequence[int]) -> tuple[Tensor, Tensor]:
        envs = make_envs([derive_seed(seed, "test", k) for seed in seeds for k in range(episodes)])
        returns, lengths = evaluate_agents(agent, envs, episodes)
        return returns.mean(1), lengths.sum(1)

    return score
