"""Small methods, and their updates without a run."""

from typing import Any

from pytorch_lightning import LightningModule, Trainer
from torch.optim import Optimizer

from helpers.budgets import tiny_settings
from lightning_rl.methods.registry import IMPLEMENTATIONS


def build(name: str, gamename: str = "cartpole", preset: str | None = None, **settings: Any) -> Any:
    """A method of seed 3, small where the settings do not say otherwise."""
    config = {**tiny_settings(name), **settings}
    return IMPLEMENTATIONS[name](
        gamename, implementation=name, seed=3, preset=preset, config=config
    )


def quiet_trainer(max_epochs: int = 1, **settings: Any) -> Trainer:
    """A Trainer on the CPU that shows nothing and writes nothing."""
    return Trainer(
        **{
            "max_epochs": max_epochs,
            "accelerator": "cpu",
            "devices": 1,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            **settings,
        }
    )


def attach(method: LightningModule, *optimizers: Optimizer) -> None:
    """Lets a method's updates run without a fit, with its own optimizers or these."""
    trainer = quiet_trainer()
    trainer.strategy.connect(method)
    method.trainer = trainer
    (clock, *own), _ = method.configure_optimizers()
    trainer.strategy.optimizers = [clock, *(optimizers or own)]
