"""Speed of RCP-A on LunarLander: updates alone, and the whole training loop.

    python benchmarks/bench_rcp.py [--steps 100000] [--num_workers 1] [--set KEY=VALUE ...]

Updates are timed on a window of random episodes, apart from everything else, beside their matrix products alone. The
loop is the one that ``trainer.py`` runs, with evaluation, logging and checkpoints, and its speed is measured after the
warm-up. Run it by itself: other work on the cores makes every number wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Trainer
from rich.console import Console
from rich.table import Table
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lightning_rl.core.config import build_config, merged_values, parse_settings
from lightning_rl.methods.upside_down import RCPA
from lightning_rl.methods.upside_down_config import UpsideDownConfig
from lightning_rl.run.options import RunOptions
from lightning_rl.run.train import train_and_report

SKIP = 10  # first epochs: warm-up, start of the workers


def seconds_per_1000(call: Callable[[], object], repeats: int = 2000) -> float:
    """Seconds for 1000 calls, after a warm-up."""
    for _ in range(100):
        call()
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats * 1000


def update_speeds(config: UpsideDownConfig) -> dict[str, float]:
    """Seconds per 1000 updates of the policy and of the critic, and of the policy's matrix products."""
    torch.set_num_threads(1)
    method = RCPA("lunarlander", seed=0, config=dataclasses.asdict(config))
    trainer = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, enable_model_summary=False)
    trainer.strategy.connect(method)
    method.trainer, trainer.strategy.optimizers = trainer, method.configure_optimizers()[0]
    batch, critic = config.batch_size, method.critic
    assert critic is not None
    obs, command, weight = torch.randn(batch, 8), torch.randn(batch, 1), torch.ones(batch)
    action, target = torch.randint(4, (batch,)), torch.randn(batch)
    sizes = [8, *config.hidden, 4]
    factors = [(torch.randn(batch, i), torch.randn(i, o), torch.randn(batch, o)) for i, o in itertools.pairwise(sizes)]

    def products() -> None:
        for number, (x, w, g) in enumerate(factors):
            x @ w  # forward
            x.T @ g  # gradient of the weights
            if number:
                g @ w.T  # gradient of the layer's input

    return {
        "policy update": seconds_per_1000(lambda: method.update(obs, command, action, weight)),
        "its matrix products alone": seconds_per_1000(products),
        "critic update": seconds_per_1000(lambda: method.update_critic(critic, obs, target)),
    }


def loop_speed(settings: dict[str, Any], num_workers: int) -> tuple[float, float]:
    """(environment steps per second, share of the time that training waited for episodes) of a run."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions("RCP-A", "lunarlander", num_workers=num_workers, logdir=Path(folder), settings=settings)
        train_and_report(options)
        events = EventAccumulator(str(options.run_dir / "logger" / "version_0"))
        events.Reload()
        points, waits = (events.Scalars(tag)[SKIP:] for tag in ("train/policy_loss", "time/collection_wait"))
    seconds = points[-1].wall_time - points[0].wall_time
    return (points[-1].step - points[0].step) / seconds, sum(w.value for w in waits[1:]) / seconds


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description="Speed of RCP-A on LunarLander.")
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps of the measured run")
    parser.add_argument("--num_workers", type=int, default=1)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    settings = {"max_env_steps": arguments.steps, **parse_settings(arguments.settings)}
    config = build_config(UpsideDownConfig, [*merged_values("RCP-A", "lunarlander"), ("--set", settings)])
    table = Table("", "seconds", title=f"RCP-A on LunarLander, batches of {config.batch_size}, one thread")
    for name, seconds in update_speeds(config).items():
        table.add_row(f"1000 x {name}", f"{seconds:.3f}")
    rate, waited = loop_speed(settings, arguments.num_workers)
    console = Console()
    console.print(table)
    console.print(f"whole loop: {rate:,.0f} environment steps/s, 1M steps in {1e6 / rate / 60:.1f} min; waiting {waited:.0%}")


if __name__ == "__main__":
    main()
