"""``epoch=<k>.ckpt``: the checkpoint of the best evaluation."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from pathlib import Path

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import Checkpoint

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import remove
from lightning_rl.run.checkpoints import read_checkpoint

MONITOR = "eval/return_mean"


class BestCheckpoint(Checkpoint):
    """Keeps the weights of the best sampled evaluation return, one small file in each of ``folders``.

    Lightning's ModelCheckpoint believes the paths that stand in a checkpoint, and removes what is there. Here the files say what
    is best: each holds its score, and what is removed has a name of ours in a folder of ours. So a run may be moved.
    """

    def __init__(self, folders: Sequence[Path]):
        self.folders = folders
        self.score = -math.inf
        self._epochs: set[int] = set()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        found = [scores(folder) for folder in self.folders]
        self._epochs = set().union(*found)
        common = set.intersection(*(set(each) for each in found))
        if common and trainer.ckpt_path is not None:  # else they are of an attempt that left no last.ckpt
            best = max(common, key=lambda epoch: found[0][epoch])
            self.score = found[0][best]
            self._keep(best)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        score, epoch = float(trainer.callback_metrics[MONITOR]), trainer.current_epoch
        if score > self.score:
            trainer.save_checkpoint(_path(self.folders[0], epoch), weights_only=True, storage_options={MONITOR: score})
            self.score = score
            self._keep(epoch)

    def _keep(self, best: int) -> None:
        for epoch in sorted(self._epochs - {best}):
            for folder in self.folders:
                if (path := _path(folder, epoch)).exists():
                    remove(path)
        self._epochs = {best}


def scores(folder: Path) -> dict[int, float]:
    """The score of each best checkpoint in the folder by its epoch; files without a score are not ours to remove."""
    found = {}
    for path in folder.glob("epoch=*.ckpt"):
        if (match := re.fullmatch(r"epoch=(\d{1,12})\.ckpt", path.name)) and path == _path(folder, int(match[1])):
            with contextlib.suppress(UserError):  # damaged: it is written over when its turn comes
                score = read_checkpoint(path).get(MONITOR)
                if isinstance(score, float) and not math.isnan(score):
                    found[int(match[1])] = score
    return found


def _path(folder: Path, epoch: int) -> Path:
    return folder / f"epoch={epoch}.ckpt"
