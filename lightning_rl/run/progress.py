"""A progress bar that a person can follow, or one line now and then where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pytorch_lightning import Callback, Trainer

from lightning_rl.core.progress import ProgressBar

RETURNS = {
    "rollout": "rollout/return_mean",
    "fitness": "es/fitness_mean",
    "eval": "eval/return_mean",
    "greedy": "eval_greedy/return_mean",
}
"""What a run has learned, by the word that the bar has for it: in training, then in the last evaluation."""


class RunProgress(Callback):
    """Steps per second, last returns and the time left, by whichever budget ends first."""

    def __init__(self, name: str, max_epochs: int, max_env_steps: int | None):
        self.name, self.max_epochs, self.max_env_steps = name, max_epochs, max_env_steps
        self._bar: ProgressBar | None = None
        self._started = time.monotonic()
        self._steps_at_start = 0

    def share(self, epochs: int, env_steps: int) -> float:
        """Share of the budget that is used, 0 .. 1."""
        by_steps = env_steps / self.max_env_steps if self.max_env_steps else 0.0
        return min(1.0, max(epochs / self.max_epochs, by_steps))

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        self._started = time.monotonic()
        self._steps_at_start = int(pl_module.env_steps)
        self._bar = ProgressBar(self.name, self.share(trainer.current_epoch, self._steps_at_start))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        assert self._bar is not None
        steps, epoch = int(pl_module.env_steps), trainer.current_epoch + 1
        rate = (steps - self._steps_at_start) / max(time.monotonic() - self._started, 1e-9)
        returns = last_returns(pl_module.scalars)
        counts = (f"epoch {epoch}/{self.max_epochs}", f"{steps / 1e6:.2f}M steps")
        self._bar.show(self.share(epoch, steps), [*returns[:1], f"{rate:,.0f} steps/s", *returns[1:], *counts])

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: Any, exception: BaseException) -> None:
        self._close()


def last_returns(scalars: Mapping[str, float]) -> list[str]:
    """What was obtained last, e.g. ``rollout 12.3`` and ``eval 14.0``."""
    found = [(word, scalars[tag]) for word, tag in RETURNS.items() if tag in scalars]
    return [f"{word} {value:.1f}" if abs(value) >= 10 else f"{word} {value:.2f}" for word, value in found]
