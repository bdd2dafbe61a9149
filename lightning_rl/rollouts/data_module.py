"""The data of a run as a LightningDataModule: one training batch an epoch, and an evaluation every
few epochs.

A method's data class says what to play (``requests``), what to keep (``store_episodes``) and what
to train on (``make_batch``); ``CollectedRollouts`` plays, in worker processes and during training
if that is asked for, and resumes exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor

from lightning_rl.core.limits import shown
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.player import Collector

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method

T = TypeVar("T")


class OneBatch:
    """A loader of one batch. It has a length, as Lightning would prefetch from one without, and so
    train on stale data.

    make: returns the batch. wanted: whether there is a batch this time.
    """

    def __init__(self, make: Callable[[], Any], wanted: Callable[[], bool] = lambda: True):
        self._make, self._wanted = make, wanted

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        if self._wanted():
            yield self._make()


class Rollouts(LightningDataModule):
    """What a method learns from and is evaluated on: environments, buffers, and the workers that
    play.

    ``state_dict`` is all that the next epoch depends on; Lightning saves and restores it with the
    rest of a checkpoint.

    Args:
        method: whose policy, commands and number of episodes an evaluation has.
        evaluator: plays the evaluations; None for methods that evaluate without a policy.
    """

    def __init__(self, method: Method, evaluator: Collector | None = None):
        super().__init__()
        self.method, self.evaluator = method, evaluator

    def next_batch(self) -> Any:
        """The training batch of the next epoch."""
        raise NotImplementedError

    def evaluate(self) -> Any:
        """What ``validation_step`` is given: here ``play_policy`` of the method's policy."""
        return self.play_policy(self.method.seed, self.method.policy)

    def play_policy(self, seed: int, policy: Actor) -> dict[str, list[Episode]]:
        """Episodes of a policy of a run of this seed, by the prefix of their metrics, all on the
        same environment seeds.

        ``eval`` (sampled actions) and ``eval_greedy`` have the method's first command, its probes
        follow under their names. A policy without noise plays the same either way, so it plays
        once.
        """
        assert self.evaluator is not None
        method, epoch, count = self.method, self.method.current_epoch, self.method.cfg.eval_episodes
        first = method.first_command()
        series: dict[str, tuple[tuple[float, ...] | None, ActionMode]] = {
            "eval": (first, "sampled")
        }
        if policy.noise_size:
            series["eval_greedy"] = (first, "greedy")
        series |= {
            prefix: (command, "sampled") for prefix, command in method.probe_commands().items()
        }
        requests: list[Request] = []
        for command, mode in series.values():
            requests += evaluation_requests(seed, "evaluation", epoch, count, command, mode)
        episodes = self.evaluator.collect(requests, policy.state_dict(), version=epoch + 1)
        played = {prefix: episodes[i * count : (i + 1) * count] for i, prefix in enumerate(series)}
        return {
            "eval": played["eval"],
            "eval_greedy": played.get("eval_greedy", played["eval"]),
            **played,
        }

    def collectors(self) -> list[Collector]:
        """All collectors, whose workers ``teardown`` stops."""
        return [] if self.evaluator is None else [self.evaluator]

    def train_dataloader(self) -> OneBatch:
        return OneBatch(self.next_batch)

    def val_dataloader(self) -> OneBatch:
        """The evaluations; Lightning's check before training, which would play episodes for
        nothing, gets none.
        """
        return OneBatch(
            self.evaluate, lambda: self.trainer is None or not self.trainer.sanity_checking
        )

    test_dataloader = val_dataloader

    def transfer_batch_to_device(
        self, batch: Any, device: torch.device, dataloader_idx: int
    ) -> Any:
        """Lightning moves tensors, also in dicts, tuples and dataclasses; evaluations and lists,
        as of episodes, stay.
        """
        assert self.trainer is not None
        moved = self.trainer.training and not isinstance(batch, list)
        return super().transfer_batch_to_device(batch, device, dataloader_idx) if moved else batch

    def on_exception(self, exception: BaseException) -> None:  # Lightning tears nothing down then
        self.teardown("fit")

    def close(self) -> None:
        """Ends all processes for good."""
        self.teardown("fit")

    def teardown(self, stage: str) -> None:
        for collector in self.collectors():
            collector.close()


def distinct(series: Mapping[str, T]) -> Iterable[T]:
    """The distinct values of ``series``, each once: a policy without noise has the same episodes
    under two prefixes.
    """
    return {id(played): played for played in series.values()}.values()


class CollectedRollouts(Rollouts):
    """Data of a method that learns from episodes of its current policy.

    An epoch: finish the collection, ``store_episodes``, start the next collection (with overlap),
    ``make_batch``.

    Args:
        method: whose policy plays.
        num_workers: processes that play, apart for training and for evaluation; 0: this one.
        overlap: play the episodes of epoch k + 1 during the training of epoch k, under the
            parameters before it: exactly one epoch of staleness. Without, they are never stale.
    """

    def __init__(self, method: Method, num_workers: int, overlap: bool = False):
        super().__init__(method, method.collector(num_workers))
        self.collector, self.run_seed, self.overlap = (
            method.collector(num_workers),
            method.seed,
            overlap,
        )
        self.epoch = 0
        self._under_way: list[Request] = []

    def requests(self, epoch: int) -> list[Request]:
        """The episodes to play for ``epoch``; called when their collection starts."""
        raise NotImplementedError

    def noise_hold(self) -> float:
        """Share of the steps of training episodes that keep the action noise of the step before;
        0 without such a key.
        """
        return getattr(self.method.cfg, "noise_hold", 0.0)

    def behaviour(self, version: int) -> tuple[dict[str, Tensor], int]:
        """The parameters that a collection is played with, and their version; called when it
        starts. version: the newest.
        """
        return self.method.policy.state_dict(), version

    def store_episodes(self, epoch: int, episodes: list[Episode]) -> None:
        """Takes in the finished collection; called before the next one starts."""

    def make_batch(self, epoch: int, episodes: list[Episode], waited: float) -> Any:
        """The epoch's batch; called when the next collection has started. waited: seconds until
        the episodes were there.
        """
        raise NotImplementedError

    def next_batch(self) -> Any:
        epoch, started = self.epoch, time.perf_counter()
        if not self.collector.busy:
            self._start()
        episodes = self.collector.finish()
        waited = time.perf_counter() - started
        self.store_episodes(epoch, episodes)
        self.epoch += 1
        if self.overlap:
            self._start()
        return self.make_batch(epoch, episodes, waited)

    def _start(self) -> None:
        """Begins the collection for the epoch; with overlap, the training of the epoch before it
        is still to come.
        """
        self._under_way = self.requests(self.epoch)
        self.collector.start(self._under_way, *self.behaviour(max(self.epoch - self.overlap, 0)))

    def state_dict(self) -> dict[str, Any]:
        """The epoch and, of a collection under way, its first commands and behaviour policy: on
        resuming it is played again.
        """
        if not self.overlap:
            return {"epoch": self.epoch}
        behaviour = {
            name: value.clone() for name, value in self.collector.behaviour.state_dict().items()
        }
        return {
            "epoch": self.epoch,
            "commands": [request.command for request in self._under_way],
            "behaviour": behaviour,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        if self.overlap:
            commands = state_dict["commands"]
            size = len(self.method.command_names)
            if not commands:
                raise ValueError("commands: none, of a collection under way")
            for command in commands:
                if np.shape(command or ()) != (size,) or not np.isfinite(command or ()).all():
                    raise ValueError(f"commands: {shown(command)}, expected {size} numbers")
            self._under_way = training_requests(
                self.run_seed, self.epoch, commands, self.noise_hold()
            )
            self.collector.start(self._under_way, state_dict["behaviour"], max(self.epoch - 1, 0))

    def collectors(self) -> list[Collector]:
        return [self.collector, *super().collectors()]


def warm_up_requests(run_seed: int, count: int) -> list[Request]:
    """Episodes of uniformly random actions."""
    return [
        Request(f"warm-up, episode {i}", derive_seed(run_seed, "warm-up", i), "uniform")
        for i in range(count)
    ]


def training_requests(
    run_seed: int, epoch: int, commands: Sequence[tuple[float, ...] | None], noise_hold: float = 0.0
) -> list[Request]:
    """One training episode per first command, None for policies that take none."""
    return [
        Request(
            f"epoch {epoch}, episode {i}",
            derive_seed(run_seed, "rollout", epoch, i),
            "sampled",
            command,
            noise_hold,
        )
        for i, command in enumerate(commands)
    ]


def evaluation_requests(
    run_seed: int,
    purpose: str,
    epoch: int,
    count: int,
    command: tuple[float, ...] | None,
    mode: ActionMode,
) -> list[Request]:
    """``count`` requests; for other commands and modes the environment seeds are the same."""
    return [
        Request(
            f"{purpose} after epoch {epoch}, {mode} episode {i}",
            derive_seed(run_seed, purpose, epoch, i),
            mode,
            command,
        )
        for i in range(count)
    ]
