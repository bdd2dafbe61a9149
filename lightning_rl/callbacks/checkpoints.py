"""Checkpoints that survive a kill at any moment and hold nothing but plain data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning_fabric.plugins import TorchCheckpointIO
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from lightning_rl.files import read_plain, remove, write_plain
from lightning_rl.methods.base import Experience
from lightning_rl.types import UserError

LAST = "last.ckpt"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Files that are always whole. ``storage_options`` are plain data that goes into the file, too."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        write_plain(Path(path), {**checkpoint, **(storage_options or {})})

    def load_checkpoint(
        self, path: Any, map_location: Callable[..., Any] | None = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        return read_checkpoint(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        remove(Path(path))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The checkpoint at ``path`` on the CPU; UserError if it is missing, damaged, foreign or not plain data."""
    checkpoint = read_plain(path, "checkpoint", "give the path of a last.ckpt or epoch=<k>.ckpt")
    try:
        hparams = checkpoint["hyper_parameters"]["hparams"]
        if {"implementation", "gamename", "seed", "config"} <= hparams.keys() and "state_dict" in checkpoint:
            return dict(checkpoint)
    except (TypeError, KeyError, AttributeError):
        pass
    raise UserError(f"checkpoint '{path}' was not written by lightning_rl: it lacks hyper_parameters; use another")


class ExperienceState(Callback):
    """Carries the experience (buffer, epoch, policy that collects) in the checkpoint.

    Lightning does not restore loaders at epoch boundaries, callbacks it does.
    """

    def __init__(self, experience: Experience):
        self.experience = experience

    def state_dict(self) -> dict[str, Any]:
        return self.experience.snapshot()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.experience.restore(state_dict)


class LastCheckpoint(Checkpoint):
    """Writes ``last.ckpt``, all that resuming needs, every ``interval`` epochs and when the run stops."""

    def __init__(self, run_dir: Path, interval: int):
        self.path, self.interval = run_dir / LAST, interval

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        done = trainer.current_epoch + 1
        if done % self.interval == 0 or done == trainer.max_epochs or trainer.should_stop:
            trainer.save_checkpoint(self.path)
