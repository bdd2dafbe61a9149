"""The TensorBoard log of a run. Imports TensorBoard, without which a run logs to CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import TensorBoardLogger
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from torch.utils.tensorboard.summary import hparams as hparams_summary

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import require_place
from lightning_rl.run.callbacks import RETURNS
from lightning_rl.run.options import RunOptions

# Names only, the values come with the scalars.
_HPARAM_METRICS = ("eval/return_mean", "eval_greedy/return_mean")


class RunLogger(TensorBoardLogger):
    """TensorBoard in the folder of a run, one curve however often it was resumed.

    Its hparams tab has method, environment, experiment and seed, then the whole config, with the
    evaluation returns as metrics.
    """

    def __init__(self, options: RunOptions):
        super().__init__(options.run_dir, name="logger", version=0, default_hp_metric=False)
        self.first_columns = {
            "implementation": options.implementation,
            "gamename": options.gamename,
            "exp_name": options.exp_name,
            "seed": options.seed,
        }
        self._begun = False

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """The first call marks a start at its step: TensorBoard drops later values of an earlier
        start that was killed.

        Returns are written under ``Returns/``, too: TensorBoard sorts groups by name and opens the
        first two.
        """
        self._require_place()
        if not self._begun:
            self._begun = True
            self.experiment.file_writer.add_event(
                Event(session_log=SessionLog(status=SessionLog.START)), step
            )
        try:
            first = {
                f"Returns/{name}": metrics[tag] for name, tag in RETURNS.items() if tag in metrics
            }
            super().log_metrics({**metrics, **first}, step)
        # what Lightning makes of whatever is raised meanwhile: a worker's death, a full disk
        except ValueError as error:
            raise (error.__cause__ or error) from None

    def _require_place(self) -> None:
        """UserError where its files are gone, of which TensorBoard's own thread would only print
        a traceback.
        """
        if self._experiment is None:
            return
        require_place(Path(self.log_dir))
        if not Path(self.log_dir).is_dir():
            raise UserError(
                f"'{self.log_dir}' was moved or removed, which has ended the run that wrote there; "
                "--resume goes on"
            )

    def finalize(self, status: str) -> None:
        """Writes what is still waiting; nothing where the folder is gone, which the run has been
        told or will be.
        """
        if self._experiment is None or Path(self.log_dir).is_dir():
            super().finalize(status)

    def log_hyperparams(self, params: Any, metrics: Any = None, step: int | None = None) -> None:
        """Lightning calls it once, with the method's ``hparams``; of several seeds' loggers each
        writes its own seed.
        """
        flat = {**self.first_columns, **params["config"]}
        plain = {
            k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in flat.items()
        }
        super().log_hyperparams(plain)  # hparams.yaml
        for summary in hparams_summary(plain, dict.fromkeys(_HPARAM_METRICS, 0.0)):
            self.experiment.file_writer.add_summary(summary)
