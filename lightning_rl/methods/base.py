"""What every method shares: counters, logging over env_steps, the optimiser clock, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from pydantic import ConfigDict, PositiveInt
from pydantic.dataclasses import dataclass
from pytorch_lightning import LightningModule
from torch import Tensor

from lightning_rl.data.loaders import Collector
from lightning_rl.functional.statistics import summarise
from lightning_rl.nets.policies import Policy
from lightning_rl.seeding import derive_seed
from lightning_rl.types import ActionMode, Episode, Request, UserError

STRICT = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class MethodConfig:
    """Keys that every implementation has; the values are in ``configs/<implementation>.yaml``."""

    max_epochs: PositiveInt
    max_env_steps: PositiveInt | None
    chunk_size: PositiveInt
    eval_interval: PositiveInt
    eval_episodes: PositiveInt
    checkpoint_interval: PositiveInt


class Method(LightningModule):
    """A learning method. Environments, buffers and parsing stay outside.

    hparams: plain data ``{implementation, gamename, seed, config}``: all that it takes to build the module again.
    """

    command_names: tuple[str, ...] = ()
    policy: Policy
    env_steps: Tensor
    num_updates: Tensor
    eval_env_steps: Tensor
    held_out_env_steps: Tensor

    def __init__(self, hparams: Mapping[str, Any]):
        super().__init__()
        self.automatic_optimization = False
        self.save_hyperparameters({"hparams": dict(hparams)})
        for counter in ("env_steps", "num_updates", "eval_env_steps", "held_out_env_steps"):
            self.register_buffer(counter, torch.zeros((), dtype=torch.int64))
        self._clock_hand = torch.nn.Parameter(torch.zeros(()), requires_grad=True)

    def optimisers(self) -> list[torch.optim.Optimizer]:
        """The optimisers of the method, in a fixed order."""
        raise NotImplementedError

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """A clock first: Lightning counts optimiser steps, so one tick per training_step makes global_step count those."""
        return [torch.optim.SGD([self._clock_hand], lr=0.0), *self.optimisers()]

    def tick(self) -> None:
        """Advances Lightning's global_step; the other optimisers are stepped without its wrappers."""
        self.optimizers()[0].step()  # type: ignore[index]

    def raw_optimisers(self) -> list[torch.optim.Optimizer]:
        return list(self.optimizers(use_pl_optimizer=False))[1:]  # type: ignore[arg-type]

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return batch.to(device) if hasattr(batch, "to") else batch

    def log_scalars(self, values: Mapping[str, float]) -> None:
        """Writes scalars to every logger; the x axis is env_steps."""
        for logger in self.loggers:
            logger.log_metrics(dict(values), step=int(self.env_steps))

    def check_finite(self, name: str, value: float) -> None:
        """Stops the run before a diverged network can reach a checkpoint."""
        if not np.isfinite(value):
            raise UserError(
                f"{name} is {value} in epoch {self.current_epoch}: training diverged; the last checkpoint is from "
                "before that. Start anew under another --exp_name with a lower --set learning_rate=... (and --reload that "
                "checkpoint to keep its weights)"
            )

    def validation_step(self, episodes: Sequence[Episode], batch_idx: int) -> None:
        """Evaluation during training: the sampled mean return is what the best checkpoint is chosen by."""
        self.eval_env_steps += sum(episode.length for episode in episodes)
        scalars = {"time/eval_env_steps": float(self.eval_env_steps)}
        for prefix, mode in (("eval", "sampled"), ("eval_greedy", "greedy")):
            chosen = [episode for episode in episodes if episode.request.mode == mode]
            scalars |= episode_scalars(prefix, chosen)
            value = scalars[f"{prefix}/return_mean"]
            self.log(f"{prefix}/return_mean", value, batch_size=len(chosen), logger=False)
        self.log_scalars(scalars)


def episode_scalars(prefix: str, episodes: Sequence[Episode]) -> dict[str, float]:
    """``prefix/return_mean|std|min|max`` and ``prefix/length_mean``."""
    stats = summarise([episode.ret for episode in episodes])
    return {
        f"{prefix}/return_mean": stats["mean"],
        f"{prefix}/return_std": stats["sd"],
        f"{prefix}/return_min": stats["min"],
        f"{prefix}/return_max": stats["max"],
        f"{prefix}/length_mean": float(np.mean([episode.length for episode in episodes])),
    }


@runtime_checkable
class Experience(Protocol):
    """What the trainer iterates over: one item per epoch. It owns environments and buffers, and can be resumed.

    snapshot and restore are not called state_dict, or Lightning would store a second copy with its loops.
    """

    collector: Collector

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


def evaluation_requests(run_seed: int, purpose: str, epoch: int, count: int, command: Sequence[float] | None) -> list[Request]:
    """``count`` sampled and ``count`` greedy requests on the same environment seeds."""
    first = None if command is None else tuple(float(c) for c in command)
    modes: tuple[ActionMode, ...] = ("sampled", "greedy")
    return [
        Request(f"{purpose} after epoch {epoch}, {mode} episode {i}", derive_seed(run_seed, purpose, epoch, i), mode, first)
        for mode in modes
        for i in range(count)
    ]


class Evaluation:
    """The evaluation loader: one batch of episodes, sampled and greedy, under the current policy."""

    def __init__(
        self, collector: Collector, method: Method, run_seed: int, count: int,
        command: Callable[[], Sequence[float] | None] = lambda: None,
    ):  # fmt: skip
        self.collector, self.method, self.command = collector, method, command
        self.run_seed, self.count = run_seed, count

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[list[Episode]]:
        epoch = self.method.current_epoch
        requests = evaluation_requests(self.run_seed, "evaluation", epoch, self.count, self.command())
        yield self.collector.collect(requests, self.method.policy.state_dict(), version=epoch + 1)
