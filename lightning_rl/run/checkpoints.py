"""Checkpoints that survive a kill at any moment and hold nothing but plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lightning_fabric.plugins import TorchCheckpointIO
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from lightning_rl.core.contents import Count, Optional
from lightning_rl.core.errors import UserError
from lightning_rl.core.files import read_plain, remove, write_plain
from lightning_rl.core.limits import shorten
from lightning_rl.methods.base import Method
from lightning_rl.rollouts.data_module import Rollouts
from lightning_rl.run.layouts import HPARAMS, data_key, require, require_weights, resume_layout

LAST = "last.ckpt"
ANOTHER = "use another checkpoint, or start anew under another --exp_name"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Files that are always whole. ``storage_options`` are plain data that goes into the file, too."""

    def __init__(self) -> None:
        super().__init__()
        self._checked: dict[str, Any] | None = None

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        write_plain(Path(path), {**checkpoint, **(storage_options or {})})

    def read(self, path: Path) -> dict[str, Any]:
        """The checkpoint of a run."""
        return read_checkpoint(path)

    def resume(self, path: Path, method: Method, data: Rollouts, callbacks: Sequence[Callback] = ()) -> None:
        """Restores the data from the checkpoint at ``path`` and keeps the rest for Lightning to load.

        Raises:
            UserError: before any of it is used, where it is not whole or not of this method.
        """
        content = self.read(path)
        require(content, resume_layout(method, data, content.get("epoch", 0), callbacks), path, ANOTHER)
        try:
            data.load_state_dict(content.pop(data_key(data), {}))
        except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = shorten(str(error) or type(error).__name__, 200)
            raise UserError(f"checkpoint '{path}': its data cannot be gone on from ({reason}); {ANOTHER}") from error
        self._checked = content

    def load_checkpoint(
        self, path: Any, map_location: Callable[..., Any] | None = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        content, self._checked = self._checked, None
        return self.read(Path(path)) if content is None else content

    def remove_checkpoint(self, path: Any) -> None:
        remove(Path(path))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The checkpoint at ``path`` on the CPU; UserError if it is missing, damaged, foreign or not plain data.

    Its ``hyper_parameters`` and ``epoch`` are checked, and ``state_dict`` is there; what that holds is not checked yet.
    """
    checkpoint = read_plain(path, "checkpoint", "give the path of a last.ckpt or epoch=<k>.ckpt")
    if not isinstance(checkpoint, dict) or not {"hyper_parameters", "state_dict"} <= checkpoint.keys():
        raise UserError(f"checkpoint '{path}' was not written by lightning_rl: it lacks hyper_parameters; use another")
    if isinstance(checkpoint["hyper_parameters"], dict) and "hparams" in checkpoint["hyper_parameters"]:
        raise UserError(f"checkpoint '{path}' is of a version before 0.2, whose runs cannot be gone on from; {ANOTHER}")
    require(checkpoint["hyper_parameters"], HPARAMS, path, ANOTHER, "hyper_parameters")
    require({key: checkpoint[key] for key in ("epoch",) if key in checkpoint}, {"epoch": Optional(Count())}, path, ANOTHER)
    return dict(checkpoint)


def load_weights(method: Method, path: Path) -> None:
    """Loads the policy of a checkpoint of the same method and environment; counters and optimisers start anew."""
    if not method.reloadable:
        raise UserError(f"--reload: a {type(method).__name__} cannot start from weights alone; leave it out")
    checkpoint = read_checkpoint(path)
    theirs, ours = checkpoint["hyper_parameters"], method.hparams
    for key in ("implementation", "gamename"):
        if theirs[key] != ours[key]:
            raise UserError(f"--reload '{path}': its {key} is '{theirs[key]}', this run's is '{ours[key]}'; they must match")
    prefix = f"{method.policy_name}."
    require_weights(checkpoint["state_dict"], method, path, "use another, or the config that it was trained with", prefix)
    weights = checkpoint["state_dict"]
    method.adopt({name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)})


class LastCheckpoint(Checkpoint):
    """Writes ``last.ckpt``, all that resuming needs, every ``interval`` epochs and when the run stops."""

    def __init__(self, run_dir: Path, interval: int):
        self.path, self.interval = run_dir / LAST, interval

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        done = trainer.current_epoch + 1
        if done % self.interval == 0 or done == trainer.max_epochs or trainer.should_stop:
            trainer.save_checkpoint(self.path)
