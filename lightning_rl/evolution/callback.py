"""The outer loop as a Lightning callback: before each training step ask, evaluate, tell; the step then follows ``.grad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer

from lightning_rl.core.contents import ListOf, Number
from lightning_rl.evolution.executors import Evaluate, Executor
from lightning_rl.evolution.strategies import Item, Strategy


@dataclass(frozen=True)
class Generation:
    """What a generation gave: the results in the order of the items, the mean score of the center, kept as the best?"""

    items: Sequence[Item]
    results: Sequence[Any]
    center: float
    kept: bool


class Evolution(Callback):
    """Drives ``strategy`` with scores ``score(result)`` of what ``evaluate`` gives; one epoch is one generation.

    step_decay, noise_decay: factors per generation on the optimiser's step and the noise. Everything is a function of the run's
    seed and the generation, so a resumed run goes on exactly.
    """

    def __init__(
        self, strategy: Strategy, evaluate: Evaluate, score: Callable[[Any], float], executor: Executor,
        step_decay: float = 1.0, noise_decay: float = 1.0,
    ):  # fmt: skip
        self.strategy, self.evaluate, self.score, self.executor = strategy, evaluate, score, executor
        self.step_decay, self.noise_decay = step_decay, noise_decay
        self.generation: Generation | None = None
        self.curve: list[float] = []  # mean score of the center, generation by generation

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self.generate(trainer.current_epoch, trainer.optimizers[1:])

    def generate(self, number: int, optimisers: Sequence[torch.optim.Optimizer]) -> Generation:
        """Generation ``number`` up to the gradient; the step is that of ``optimisers``, whose sizes are set."""
        strategy, noise_scale = self.strategy, self.noise_decay**number
        proposal, items = strategy.ask(number, noise_scale)
        results = self.executor.map(self.evaluate, proposal, items)
        scores = torch.tensor([self.score(result) for result in results], dtype=torch.float64)
        center = strategy.tell(number, scores, noise_scale)
        for optimiser in optimisers:
            strategy.schedule(optimiser, self.step_decay**number)
        self.curve.append(center)
        self.generation = Generation(items, results, center, float(strategy.best_score) == center)
        return self.generation

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self.executor.close()

    def state_dict(self) -> dict[str, Any]:
        return {"curve": list(self.curve)}

    def layout(self, done: int) -> dict[str, Any]:
        """What ``state_dict`` may look like after ``done`` generations."""
        return {"curve": ListOf(Number(), done)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.curve = list(state_dict["curve"])
