"""The outer loop of a search as a Lightning callback: ask, evaluate, tell, then step."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from pytorch_lightning import Callback, LightningModule, Trainer

from lightning_rl.evolution.executors import Evaluate, Executor
from lightning_rl.evolution.strategies import Item, Strategy

ALL_FAILED = -1e9
"""The score where all agents of a generation failed and nobody knows the worst return: finite,
so that a search goes on.
"""


class Generation(NamedTuple):
    """One generation, evaluated: the batch of an epoch.

    Attributes:
        number: 0, 1, ..
        items, outcomes: what was evaluated, and what each evaluation gave.
        fitness: mean fitness of the unperturbed mean's agents.
        is_best: whether the mean is now the strategy's ``best``.
    """

    number: int
    items: Sequence[Item]
    outcomes: Sequence[Any]
    fitness: float
    is_best: bool


class Evolution(Callback):
    """Drives the outer loop of an evolution strategy.

    As an epoch starts it asks the strategy what to evaluate, has it evaluated, and tells the
    strategy the fitness of each evaluation, which writes ``.grad``. The epoch's training step
    follows that gradient: its batch is the ``Generation`` that is made here. Everything is a
    function of the run's seed and the generation, so a resumed run goes on exactly.

    Args:
        strategy: gives candidates, and the gradient for their fitness.
        evaluate: gives an outcome with a ``fitness``, which is to be maximised, for each item.
        executor: where items are evaluated; it is closed at the end.
    """

    def __init__(self, strategy: Strategy, evaluate: Evaluate, executor: Executor):
        self.strategy, self.evaluate, self.executor = strategy, evaluate, executor

    def on_train_epoch_start(self, trainer: Trainer, pl_module: Any) -> None:
        pl_module.generation = self.run(int(pl_module.num_updates))

    def run(self, number: int) -> Generation:
        """Asks, evaluates and tells; also for those who step without a Trainer."""
        evaluate = self.evaluate
        device = self.strategy.mean.device
        if device.type != "cpu":
            evaluate = functools.partial(cast(Any, evaluate), device=str(device))
        proposal, items = self.strategy.ask(number)
        outcomes = worst_for_failed(self.executor.map(evaluate, proposal, items))
        scores = torch.tensor([outcome.fitness for outcome in outcomes], dtype=torch.float64)
        fitness = self.strategy.tell(number, scores)
        return Generation(number, items, outcomes, fitness, self.strategy.improved)

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self.executor.close()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self.executor.close()


def worst_for_failed(outcomes: Sequence[Any]) -> list[Any]:
    """The outcomes, where agents that failed on a task without a known ``min_return`` (nan) get
    the lowest fitness and return of the others.

    If all failed, they get ``ALL_FAILED``, as in the paper's code: no score of a task is lower.
    """
    others = [outcome for outcome in outcomes if not math.isnan(outcome.fitness)]
    if len(others) == len(outcomes):
        return others
    fitness = min((outcome.fitness for outcome in others), default=ALL_FAILED)
    test_return = min((outcome.test_return for outcome in others), default=ALL_FAILED)
    return [
        outcome._replace(fitness=fitness, test_return=test_return)
        if math.isnan(outcome.fitness)
        else outcome
        for outcome in outcomes
    ]
