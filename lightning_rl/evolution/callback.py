"""The outer loop as a Lightning callback: each training batch is a generation, which it evaluates before the training step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer

from lightning_rl.evolution.executors import Evaluate, Executor
from lightning_rl.evolution.strategies import Item, Strategy


@dataclass
class Generation:
    """One generation of a search. The data module gives its number, ``Evolution`` fills in the rest.

    Attributes:
        number: 0, 1, ..
        items: what was evaluated.
        outcomes: what each evaluation gave, in the order of the items.
        fitness: mean fitness of the unperturbed mean's agents.
        is_best: whether the mean is now the strategy's ``best``.
    """

    number: int
    items: Sequence[Item] = ()
    outcomes: Sequence[Any] = ()
    fitness: float = math.nan
    is_best: bool = False


class Evolution(Callback):
    """Drives the outer loop of an evolution strategy.

    Before each training step it asks the strategy what to evaluate, evaluates it, tells the strategy the fitness of each
    evaluation (which writes the gradient that the training step follows), and fills in the batch, a ``Generation``.
    Everything is a function of the run's seed and the generation, so a resumed run goes on exactly.

    Args:
        strategy: gives candidates, and the gradient for their fitness.
        evaluate: gives an outcome with a ``fitness``, which is to be maximised, for each item.
        executor: where items are evaluated; it is closed at the end.
    """

    def __init__(self, strategy: Strategy, evaluate: Evaluate, executor: Executor):
        self.strategy, self.evaluate, self.executor = strategy, evaluate, executor

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Generation, batch_idx: int) -> None:
        self.run(batch)

    def run(self, generation: Generation) -> None:
        """Asks, evaluates and tells; fills in the generation."""
        strategy, number = self.strategy, generation.number
        proposal, generation.items = strategy.ask(number)
        generation.outcomes = self.executor.map(self.evaluate, proposal, generation.items)
        fitness = torch.tensor([outcome.fitness for outcome in generation.outcomes], dtype=torch.float64)
        generation.fitness = strategy.tell(number, fitness)
        generation.is_best = float(strategy.best_score) == generation.fitness

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self.executor.close()
