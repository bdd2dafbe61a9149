"""Videos of the policy during training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytorch_lightning import Callback, Trainer

from lightning_rl.core.types import ActionMode
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.rollouts.player import Player, record_episode


class Recorder(Callback):
    """Every ``interval`` epochs, films one sampled and one greedy episode to ``recordings/epoch_<k>/<mode>.mp4``."""

    def __init__(self, run_dir: Path, interval: int):
        self.run_dir, self.interval = run_dir, interval

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        epoch = trainer.current_epoch
        if (epoch + 1) % self.interval:
            return
        player = Player(pl_module.spec, pl_module.policy, next_command=pl_module.command_rule())
        modes: tuple[ActionMode, ...] = ("sampled", "greedy")
        for mode in modes:
            command = pl_module.first_command()
            (request,) = evaluation_requests(pl_module.seed, "recording", epoch, 1, command, mode)
            path = self.run_dir / "recordings" / f"epoch_{epoch}" / f"{mode}.mp4"
            pl_module.eval_env_steps += record_episode(player, request, path).env_steps
