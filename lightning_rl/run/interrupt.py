"""Leaving on Ctrl-C, SIGTERM, or when the budget of environment steps is spent."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

from pytorch_lightning import Callback, LightningModule, Trainer

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal(Callback):
    """Finishes the epoch, so that ``last.ckpt`` is exact, then stops. A second signal leaves at once.

    ``received`` is the signal's number, or 0.
    """

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may set handlers; a Ray worker trains in another
        for number in _SIGNALS:  # after Lightning has set its own handlers
            self._before[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = number
        print(
            f"\n{signal.Signals(number).name}: finishing this epoch and writing last.ckpt; once more to leave at once",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.received:
            trainer.should_stop = True

    def _restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._restore()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._restore()


class StopAtEnvSteps(Callback):
    """Stops after the epoch in which ``max_env_steps`` training steps are reached; that epoch is evaluated.

    Methods that can stop within an epoch make the last one shorter; others end with the collection that reaches the budget.
    """

    def __init__(self, max_env_steps: int):
        self.max_env_steps = max_env_steps

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        trainer.should_stop = int(pl_module.env_steps) >= self.max_env_steps  # resumed with nothing left to do

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *args: Any) -> None:
        if int(pl_module.env_steps) >= self.max_env_steps:
            trainer.should_stop = True
