"""Our side of ``make peers``, and what bounds every side."""

from __future__ import annotations

from typing import Any

from harness import cpu, in_turns
from peer_cases import EPISODES, Case, Side, limits

from lightning_rl.agents.judged_training import mean_test_return
from lightning_rl.envs.adapters import make_envs
from lightning_rl.methods.registry import implementation


class Stack:
    """Seeds that train in one stack, as ``--num_seeds`` does it, without the evaluations and
    Lightning's epochs.
    """

    def __init__(self, case: Case, seeds: int):
        cls: Any = implementation(case.name)
        method = cls(
            case.gamename,
            implementation=case.name,
            seed=0,
            num_seeds=seeds,
            config=vars(case.config),
        )
        training = method.rollouts().training
        self.agent, self.seeds, self.spec = method.agent, method.seeds, method.spec
        self.turn = cpu(lambda: training.run(case.steps), case.steps * seeds)
        self.score = mean_test_return(lambda seeds: make_envs(self.spec, seeds), EPISODES)

    def returns(self) -> list[float]:
        return self.score(self.agent, self.seeds)[0].tolist()


class Limit:
    """What the machine can do at best, for as many seeds as you like."""

    def __init__(self, case: Case):
        self.case = case

    def turn(self) -> float:
        return self.case.limit(in_turns(limits(), 1))

    def returns(self) -> list[float]:
        return []


def side(library: str, case: Case, seeds: int) -> Side:
    """``limit`` or one of ours."""
    if library == "limit":
        return Limit(case)
    return Stack(case, seeds)
