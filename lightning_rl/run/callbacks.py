"""Callbacks of a run: they stop it, show its progress, record films, and write checkpoints."""

from __future__ import annotations

import copy
import math
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from lightning_rl.core.console import ProgressBar
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import is_foreign, is_recorded, remove
from lightning_rl.core.lines import say, three_digits
from lightning_rl.core.seeding import kept_generators
from lightning_rl.core.stopping import (
    EPOCH_S,
    LEAVE_S,
    REPEATED_S,
    SIGNALS,
    Stopped,
    after,
    give_back,
)
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.envs.films import Story, filming_env
from lightning_rl.envs.spaces import Env
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.state import LAST, write_state

RETURNS = {
    "rollout": "rollout/return_mean",
    "fitness": "es/fitness_mean",
    "eval": "eval/return_mean",
    "greedy": "eval_greedy/return_mean",
}
"""The scalars that the progress bar shows, by their labels there: of training first, then of the
last evaluation.
"""


class StopOnSignal(Callback):
    """Finishes the epoch, so that ``last.ckpt`` is exact, then stops. A second signal leaves at
    once, as does an epoch that takes too long.

    folders: of the runs, whose state is written if the process does not get out of what it is at;
    signal: its number, or 0.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders, self.signal = folders, 0
        self._since = 0.0
        self._before: dict[int, Any] = {}
        self._timers: list[threading.Timer] = []
        self._written: list[LastCheckpoint] = []

    def on_train_start(self, trainer: Any, pl_module: LightningModule) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may set handlers; a Ray worker trains in another
        self._written = [each for each in trainer.callbacks if isinstance(each, LastCheckpoint)]
        for number in SIGNALS:  # after Lightning has set its own handlers
            self._before[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.signal and now - self._since > REPEATED_S:
            done = max((each.epochs for each in self._written), default=0)
            raise Stopped(self.signal, f"goes on from epoch {done}" if done else "begins anew")
        if self.signal:
            return
        self.signal, self._since = number, now
        self._timers = [after(EPOCH_S, os.kill, os.getpid(), number), after(LEAVE_S, self._end)]
        what = (
            f"finishing this epoch and writing last.ckpt, for {EPOCH_S:.0f} seconds at most; "
            "once more to leave at once"
        )
        say("", f"{signal.Signals(number).name}: {what}", error=True)

    def _end(self) -> None:
        for folder in self.folders:
            with suppress(UserError):
                write_state(folder, "interrupted")
        os._exit(128 + self.signal)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.signal:
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.restore()

    def restore(self) -> None:
        """Gives the signals back."""
        give_back(self._before, self._timers)
        self._before, self._timers = {}, []


BUDGETS = {
    "max_env_steps": "environment steps",
    "max_episodes": "training episodes",
    "max_epochs": "epochs",
}
"""Keys of budgets, and what they are called on an axis."""


class StopAtBudget(Callback):
    """Stops after the epoch in which so much of one of ``BUDGETS`` is done; that epoch is
    evaluated.

    Methods that can stop within an epoch make the last one of ``max_env_steps`` shorter; others end
    with the collection that reaches the budget.
    """

    def __init__(self, key: str, budget: int):
        self.key, self.budget = key, budget

    def _stop_if_spent(self, trainer: Trainer, method: Any, epochs: int) -> None:
        done = {
            "max_env_steps": method.env_steps,
            "max_episodes": method.episodes,
            "max_epochs": epochs,
        }
        if int(done[self.key]) >= self.budget:
            trainer.should_stop = True

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        # resumed with nothing left to do
        self._stop_if_spent(trainer, pl_module, trainer.current_epoch)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *args: Any) -> None:
        self._stop_if_spent(trainer, pl_module, trainer.current_epoch + 1)


class StopAtReturn(Callback):
    """Stops once the mean evaluation return has been ``target`` or more in so many evaluations in a
    row.

    Args:
        target: of the method's ``monitor``; None: the run is not stopped by its return.
        evaluations: how many in a row; a lower one between them starts the count anew. A resumed
            run goes on counting.
    """

    def __init__(self, target: float | None, evaluations: int = 1):
        self.target = None if target is None else float(target)
        self.evaluations, self.in_a_row = evaluations, 0

    @property
    def reached(self) -> bool:
        return self.target is not None and self.in_a_row >= self.evaluations

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        if self.reached:  # resumed with nothing left to do
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, pl_module: Any) -> None:
        if self.target is None:
            return
        is_enough = float(trainer.callback_metrics[pl_module.monitor]) >= self.target
        self.in_a_row = self.in_a_row + 1 if is_enough else 0
        if self.reached:
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        return {} if self.target is None else {"target": self.target, "in_a_row": self.in_a_row}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if state_dict["target"] == self.target:
            self.in_a_row = int(state_dict["in_a_row"])


class RunProgress(Callback):
    """How much is used of the budget that ends first, in its unit, the time left, the last return
    and the speed.

    max_episodes: of each seed. offline: updates per second, as no steps are taken. epoch: what an
    epoch is called.
    """

    def __init__(
        self,
        name: str,
        max_epochs: int,
        max_env_steps: int | None,
        max_episodes: int | None = None,
        offline: bool = False,
        epoch: str = "epoch",
    ):
        self.name, self.max_epochs, self.epoch = name, max_epochs, epoch
        self.max_env_steps, self.max_episodes = max_env_steps, max_episodes
        self.counter, self.unit = ("num_updates", "updates") if offline else ("env_steps", "steps")
        self._bar: ProgressBar | None = None
        self._started = time.monotonic()
        self._done_at_start = 0

    def used(self, epochs: int, env_steps: int, episodes: float = 0.0) -> tuple[float, str]:
        """Share of the budget that is used, 0 .. 1, and how much that is, in its unit."""
        share, words = 0.0, ""
        for done, most, unit in (
            (epochs, self.max_epochs, f"{self.epoch}s"),
            (episodes, self.max_episodes, "episodes"),
            (env_steps, self.max_env_steps, "steps"),
        ):
            if most and done / most >= share:
                share, words = done / most, f"{done:,.0f} of {most:,} {unit}"
        return min(1.0, share), words

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        self._started = time.monotonic()
        self._done_at_start = int(getattr(pl_module, self.counter))
        counts_epochs = self.max_env_steps is None and self.max_episodes is None
        epoch = 1 / self.max_epochs if counts_epochs else 0.0
        steps = int(pl_module.env_steps)
        share, used = self.used(trainer.current_epoch, steps, float(pl_module.episodes))
        self._bar = ProgressBar(self.name, share, used, epoch, self.epoch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        assert self._bar is not None
        steps, epoch = int(pl_module.env_steps), trainer.current_epoch + 1
        count, unit = int(getattr(pl_module, self.counter)), self.unit
        rate = (count - self._done_at_start) / max(time.monotonic() - self._started, 1e-9)
        returns = last_returns(pl_module.scalars)
        share, used = self.used(epoch, steps, pl_module.scalars.get("time/episodes", 0.0))
        self._bar.epoch = max(0.0, share - self._bar.share)
        speed, counts = f"{rate:,.0f}/s", [f"{self.epoch} {epoch:,}"]
        if not used.endswith(f" {unit}"):
            speed = f"{rate:,.0f} {unit}/s"
            counts.append(f"{count:,} {unit}")
        self._bar.show(share, used, [*returns[:1], speed, *returns[1:], *counts])

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
    return [f"{word} {three_digits(value)}" for word, value in found]


class Recorder(Callback):
    """Every ``interval`` epochs, films one sampled and one greedy episode to
    ``recordings/epoch_<k>/<mode>.mp4``.
    """

    def __init__(self, run_dir: Path, interval: int):
        self.run_dir, self.interval = run_dir, interval

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        epoch = trainer.current_epoch
        if (epoch + 1) % self.interval:
            return
        try:
            pl_module.prepare_evaluation()
        except UserError as error:  # no reason to end a search
            warnings.warn(f"epoch {epoch} is not recorded: {error}", stacklevel=2)
            return
        modes: tuple[ActionMode, ...] = ("sampled", "greedy")
        for mode in modes:
            command = pl_module.first_command()
            (request,) = evaluation_requests(pl_module.seed, "recording", epoch, 1, command, mode)
            path = self.run_dir / "recordings" / f"epoch_{epoch}" / f"{mode}.mp4"
            if is_foreign(path):  # no reason to end a run
                warnings.warn(
                    f"epoch {epoch} is not recorded: '{path}' was not written by this run",
                    stacklevel=2,
                )
                continue
            pl_module.count_evaluation(record_episode(pl_module, request, path).env_steps)


def record_episode(
    method: Method, request: Request, path: Path, asked: str | None = None
) -> Episode:
    """Plays ``request`` on a rendering environment and writes the film to ``path`` (mp4); asked:
    see ``Story``.
    """
    with filming_env(method.spec, path, story_of(method, request, asked)) as env:
        return play_filmed(method, request, env)


def story_of(method: Method, request: Request, asked: str | None = None) -> Story:
    """The caption of the frames of a request."""
    rule = method.command_rule()
    of_vectors = bool(method.objectives)
    return Story(method.command_names, request.command or (), rule, asked, of_vectors)


def play_filmed(method: Method, request: Request, env: Env) -> Episode:
    """The episode of a request in an environment of its own."""
    with kept_generators():
        (episode,) = method.collector(0).player.play([request], [env])
    return episode


def checkpoint_is_due(trainer: Trainer, interval: int) -> bool:
    """Whether ``last.ckpt`` is written at the end of this epoch."""
    done = trainer.current_epoch + 1
    return done % interval == 0 or done == trainer.max_epochs or trainer.should_stop


class LastCheckpoint(Checkpoint):
    """Writes ``last.ckpt``, all that resuming needs, every ``interval`` epochs and when the run
    stops.
    """

    def __init__(self, run_dir: Path, interval: int):
        self.path, self.interval = run_dir / LAST, interval
        self.epochs = 0  # that the file has

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.epochs = trainer.current_epoch

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if checkpoint_is_due(trainer, self.interval):
            # False: not the weights alone; said, or Lightning logs that it was not
            trainer.save_checkpoint(self.path, False)
            self.epochs = trainer.current_epoch + 1


class BestCheckpoint(Checkpoint):
    """Keeps the weights of the best evaluation return, of the method's ``monitor``, one small file
    in each of ``folders``.

    Lightning's ModelCheckpoint trusts the paths in a checkpoint, and removes the files there. Here
    each file holds its score, and only files that this run has written are removed. So a run may be
    moved.
    """

    def __init__(self, folders: Sequence[Path]):
        self.folders = folders
        self.score = -math.inf
        self._scores: dict[str, float] = {}
        """Of the files that are there, of this start or an earlier one, by their names."""

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        found = [scores(folder, pl_module.monitor) for folder in self.folders]
        self._scores = {
            name: max(each.get(name, -math.inf) for each in found) for name in set().union(*found)
        }
        common = set.intersection(*(set(each) for each in found))
        if trainer.ckpt_path is not None and common:
            best = max(common, key=lambda name: found[0][name])
            self.score = found[0][best]
            self._keep(best, math.inf)

    def on_validation_end(self, trainer: Trainer, pl_module: Any) -> None:
        score = float(trainer.callback_metrics[pl_module.monitor])
        self.judge(trainer, pl_module.monitor, score, {"epoch": trainer.current_epoch})

    def judge(
        self, trainer: Trainer, monitor: str, score: float, moment: Mapping[str, int]
    ) -> None:
        """Keeps the method as it is, if no score was higher.

        moment: what Lightning wrote of the time that it is from, ``epoch`` at least.
        """
        if score > self.score:
            epoch = moment["epoch"]
            name = self._free_name(epoch)
            named = {**moment, monitor: score}
            trainer.save_checkpoint(
                self.folders[0] / name, weights_only=True, storage_options=named
            )
            self.score = score
            self._scores[name] = score
            self._keep(name, epoch)

    def _free_name(self, epoch: int) -> str:
        """The name of a checkpoint of the epoch; ``epoch=7-v1.ckpt`` where a file of the user
        has the first one.
        """
        name = f"epoch={epoch}.ckpt"
        version = 0
        while any(is_foreign(folder / name) for folder in self.folders):
            version += 1
            name = f"epoch={epoch}-v{version}.ckpt"
        return name

    def _keep(self, best: str, until: float) -> None:
        """Removes the others that are no better, up to an epoch: an attempt that began anew
        comes to later ones again.
        """
        for name, score in list(self._scores.items()):
            if name == best or score > self.score or _epoch(name) > until:
                continue
            for folder in self.folders:
                if not is_foreign(folder / name):
                    remove(folder / name)
            del self._scores[name]


class EvaluateBeside(Callback):
    """Evaluates in the workers, beside the training of the epochs that follow, where Lightning's
    validation waits: every ``interval`` epochs.

    An evaluation is taken up before the next one, before a checkpoint is written, and when training
    ends: no checkpoint has one under way. What it is about is kept until then, and logged and
    judged as if training had waited. That of the epoch that training stops with is Lightning's.

    Args:
        interval: epochs between evaluations.
        checkpoint_interval: epochs between ``last.ckpt``.
        best: which is told of each evaluation.
    """

    def __init__(self, interval: int, checkpoint_interval: int, best: BestCheckpoint | None):
        self.interval, self.checkpoint_interval, self.best = interval, checkpoint_interval, best
        self._moment: Mapping[str, int] = {}
        self._state: Mapping[str, Any] = {}

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        is_due = (trainer.current_epoch + 1) % self.interval == 0
        if is_due or trainer.should_stop:
            self._take_up(trainer, pl_module)
            self._state = copy.deepcopy(pl_module.state_dict())
            self._moment = {"epoch": trainer.current_epoch, "global_step": trainer.global_step}
            trainer.datamodule.start_evaluation()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        if checkpoint_is_due(trainer, self.checkpoint_interval):
            self._take_up(trainer, pl_module)

    def _take_up(self, trainer: Any, method: Method) -> None:
        if not trainer.datamodule.evaluating:
            return
        evaluated = trainer.datamodule.evaluate()
        with as_it_was(method, self._state):
            method.validation_step(evaluated, 0)
            if self.best is not None:
                score = method.scalars[method.monitor]
                self.best.judge(trainer, method.monitor, score, self._moment)


@contextmanager
def as_it_was(method: Method, state: Mapping[str, Any]) -> Iterator[None]:
    """Meanwhile the parameters and counters of an earlier ``state_dict``; but steps of evaluations
    are counted on.
    """
    now = copy.deepcopy(method.state_dict())
    method.load_state_dict({**state, "eval_env_steps": now["eval_env_steps"]})
    yield
    method.load_state_dict({**now, "eval_env_steps": method.eval_env_steps.clone()})


def scores(folder: Path, monitor: str) -> dict[str, float]:
    """The score of each best checkpoint that the run in the folder has written, by its name."""
    found = {}
    for path in folder.glob("epoch=*.ckpt"):
        if re.fullmatch(_BEST, path.name) and is_recorded(path):
            with suppress(UserError):  # damaged: it is written over when its turn comes
                score = read_checkpoint(path).get(monitor)
                if isinstance(score, float) and not math.isnan(score):
                    found[path.name] = score
    return found


_BEST = r"epoch=(\d{1,12})(-v\d+)?\.ckpt"


def _epoch(name: str) -> int:
    match = re.fullmatch(_BEST, name)
    assert match is not None
    return int(match[1])
