"""A progress bar that a person can follow, or one line now and then where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from pytorch_lightning import Callback, Trainer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_EVERY_S = 30.0


class RunProgress(Callback):
    """Epoch, environment steps per second, last returns and the time left, by whichever budget ends first."""

    def __init__(self, name: str, max_epochs: int, max_env_steps: int | None):
        self.name, self.max_epochs, self.max_env_steps = name, max_epochs, max_env_steps
        self._console = Console(file=sys.stderr)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._started = self._printed = time.monotonic()
        self._done_at_start = 0.0
        self._steps_at_start = 0

    def share(self, epochs: int, env_steps: int) -> float:
        """Share of the budget that is used, 0 .. 1."""
        by_steps = env_steps / self.max_env_steps if self.max_env_steps else 0.0
        return min(1.0, max(epochs / self.max_epochs, by_steps))

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        self._started = self._printed = time.monotonic()
        self._done_at_start = self.share(trainer.current_epoch, int(pl_module.env_steps))
        self._steps_at_start = int(pl_module.env_steps)
        if self._console.is_terminal:
            columns = ("{task.description}", BarColumn(24), "{task.percentage:>5.1f}%", "{task.fields[status]}")
            self._bar = Progress(
                *(TextColumn(c, markup=False) if isinstance(c, str) else c for c in columns),
                TimeElapsedColumn(), TextColumn("ETA"), TimeRemainingColumn(elapsed_when_finished=False),
                console=self._console, refresh_per_second=4,
            )  # fmt: skip
            self._task = self._bar.add_task(self.name, total=1.0, status="")
            self._bar.start()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        steps, now = int(pl_module.env_steps), time.monotonic()
        done = self.share(trainer.current_epoch + 1, steps)
        rate = (steps - self._steps_at_start) / max(now - self._started, 1e-9)
        status = f"epoch {trainer.current_epoch + 1}/{self.max_epochs} · {steps / 1e6:.2f}M steps · {rate:,.0f} steps/s"
        for label, key in (("sampled", "eval/return_mean"), ("greedy", "eval_greedy/return_mean")):
            if key in trainer.callback_metrics:
                status += f" · {label} {float(trainer.callback_metrics[key]):.1f}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, status=status)
        elif now - self._printed >= _LINE_EVERY_S:
            self._printed = now
            left = (now - self._started) * (1 - done) / max(done - self._done_at_start, 1e-9)
            print(f"{self.name}: {status} · {done:.1%} · ETA {left / 60:.0f} min", file=sys.stderr, flush=True)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        self._stop()

    def on_exception(self, trainer: Trainer, pl_module: Any, exception: BaseException) -> None:
        self._stop()
