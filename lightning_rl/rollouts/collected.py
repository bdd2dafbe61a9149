"""The data of methods that learn from episodes of their current policy.

A method's data class says what to play (``requests``), what to keep (``store_episodes``) and what
to train on (``make_batch``); ``CollectedRollouts`` plays, in worker processes and during training
if that is asked for, and resumes exactly.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from lightning_rl.core.limits import shown
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import Episode, Request
from lightning_rl.rollouts.data_module import Rollouts

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method


# The process that trains goes first where cores are too few, then its next episodes.
_NICE, _NICE_EVALUATION = 4, 10


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

    plays_beside = True

    def __init__(self, method: Method, num_workers: int, overlap: bool = False):
        super().__init__(method, method.collector(num_workers, _NICE_EVALUATION))
        self.collector = method.collector(num_workers, _NICE)
        self.collectors.append(self.collector)
        self.run_seed, self.overlap = method.seed, overlap
        self.epoch = 0
        self._under_way: list[Request] = []

    def requests(self, epoch: int) -> list[Request]:
        """The episodes to play for ``epoch``; called when their collection starts."""
        raise NotImplementedError

    def noise_hold(self) -> float:
        """Share of the training steps that keep the action noise of the step before."""
        return getattr(self.method.cfg, "noise_hold", 0.0)

    def behaviour(self, version: int) -> tuple[dict[str, Tensor], int]:
        """The parameters that a collection is played with, and their version.

        Called when the collection starts; version: the newest.
        """
        return self.method.policy.state_dict(), version

    def store_episodes(self, epoch: int, episodes: list[Episode]) -> None:
        """Takes in the finished collection; called before the next one starts."""

    def make_batch(self, epoch: int, episodes: list[Episode], waited: float) -> Any:
        """The epoch's batch; called when the next collection has started.

        waited: seconds until the episodes were there.
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
        """Begins the collection for the epoch; with overlap, before the training of the last."""
        self._under_way = self.requests(self.epoch)
        # with overlap, the epoch before is still to be trained
        policy, version = self.behaviour(max(self.epoch - self.overlap, 0))
        self.collector.start(self._under_way, policy, version)

    def state_dict(self) -> dict[str, Any]:
        """The epoch; of a collection under way, which is played again, commands and policy."""
        state: dict[str, Any] = {"epoch": self.epoch}
        if self.overlap:
            behaviour = self.collector.behaviour.state_dict()
            state["commands"] = [request.command for request in self._under_way]
            state["behaviour"] = {name: value.clone() for name, value in behaviour.items()}
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = epoch = state_dict["epoch"]
        if not self.overlap:
            return
        commands = state_dict["commands"]
        size = len(self.method.command_names)
        if not commands:
            raise ValueError("commands: none, of a collection under way")
        for command in commands:
            if np.shape(command or ()) != (size,) or not np.isfinite(command or ()).all():
                raise ValueError(f"commands: {shown(command)}, expected {size} numbers")
        self._under_way = training_requests(self.run_seed, epoch, commands, self.noise_hold())
        self.collector.start(self._under_way, state_dict["behaviour"], max(epoch - 1, 0))


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
