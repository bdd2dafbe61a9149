"""The training data of a roll-out method: one collection of episodes per epoch."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from lightning_rl.core.contents import Also, Count, ListOf, Text
from lightning_rl.core.limits import NAME_BYTES
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import Episode, Request
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collector import Collector


class RolloutExperience:
    """Collects episodes, hands them over for training, and can be resumed to the bit.

    With ``overlap`` the episodes of epoch k + 1 are played during the training of epoch k, under the
    parameters that it started from: exactly one epoch of staleness. Without, they are never stale.
    A family says what to ask for (``requests``), what to keep (``absorb``) and what to train on (``prepare``).
    """

    run_seed: int
    command: Any = None  # template of a request's command

    def __init__(self, collector: Collector, policy: Policy, overlap: bool):
        self.collector, self.policy, self.overlap = collector, policy, overlap
        self.epoch = 0
        self._under_way: list[Request] = []

    def requests(self, epoch: int) -> list[Request]:
        """What to play for ``epoch``; drawn when its collection starts."""
        raise NotImplementedError

    def absorb(self, epoch: int, episodes: list[Episode]) -> None:
        """Takes in the finished collection; called before the next one starts."""

    def prepare(self, epoch: int, episodes: list[Episode], waited: float) -> Any:
        """The epoch's batch; called after the next collection has started. waited: for the episodes, in seconds."""
        raise NotImplementedError

    def contents(self) -> dict[str, Any]:
        """Plain data that ``refill`` restores the store of episodes from."""
        return {}

    def refill(self, contents: dict[str, Any]) -> None:
        """Restores the store of episodes."""

    def contents_layout(self, done: int) -> dict[str, Any]:
        """What ``contents`` may look like after ``done`` epochs."""
        return {}

    def most_requests(self) -> int:
        """The most episodes that a collection of training can have."""
        raise NotImplementedError

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        epoch, started = self.epoch, time.perf_counter()
        if not self.collector.busy:
            self._start(epoch)
        episodes = self.collector.finish()
        waited = time.perf_counter() - started
        self.absorb(epoch, episodes)
        self.epoch += 1
        if self.overlap:
            self._start(self.epoch)
        yield self.prepare(epoch, episodes, waited)

    def _start(self, epoch: int) -> None:
        # The policy has been trained for as many epochs as were begun, less the one that begins now.
        version = max(epoch - self.overlap, 0)
        self._play(self.requests(epoch), self.policy.state_dict(), version)

    def _play(self, requests: list[Request], parameters: dict[str, Tensor], version: int) -> None:
        self._under_way = requests
        self.collector.start(requests, parameters, version)

    def snapshot(self) -> dict[str, Any]:
        """All that the next epoch depends on; a collection under way is described by what is played and by whom."""
        state: dict[str, Any] = {"epoch": self.epoch, **self.contents()}
        if self.overlap:
            state["under_way"] = {
                "requests": [(r.name, r.seed, r.mode, r.command) for r in self._under_way],
                "behaviour": {k: v.clone() for k, v in self.collector.behaviour.state_dict().items()},
                "version": int(self.collector.version),
            }
        return state

    def layout(self, done: int) -> dict[str, Any]:
        """What ``snapshot`` may look like after ``done`` epochs."""
        template = {"epoch": done, **self.contents_layout(done)}
        if self.overlap:
            request = (Text(NAME_BYTES), Count(0, 2**63 - 1), "sampled", self.command)
            under_way = {
                "requests": ListOf(request, low=1, high=self.most_requests()),
                "behaviour": dict(self.collector.behaviour.state_dict()),
                "version": max(done - 1, 0),
            }
            template["under_way"] = Also(under_way, functools.partial(self._foreign_request, done))
        return template

    def _foreign_request(self, done: int, under_way: dict[str, Any]) -> str | None:
        given = [Request(*request) for request in under_way["requests"]]
        own = training_requests(self.run_seed, done, [request.command for request in given])
        return None if given == own else f"its episodes are not those of epoch {done} of seed {self.run_seed}"

    def restore(self, state: dict[str, Any]) -> None:
        self.epoch = state["epoch"]
        self.refill(state)
        if self.overlap:
            under_way = state["under_way"]
            requests = [Request(name, seed, mode, command) for name, seed, mode, command in under_way["requests"]]
            self._play(requests, under_way["behaviour"], under_way["version"])


def warm_up_requests(run_seed: int, count: int) -> list[Request]:
    """Episodes of uniformly random actions."""
    seeds = (derive_seed(run_seed, "warm-up", i) for i in range(count))
    return [Request(f"warm-up, episode {i}", seed, "uniform") for i, seed in enumerate(seeds)]


def training_requests(run_seed: int, epoch: int, commands: Sequence[tuple[float, ...] | None]) -> list[Request]:
    """One training episode per first command, None for policies that take none."""
    return [
        Request(f"epoch {epoch}, episode {i}", derive_seed(run_seed, "rollout", epoch, i), "sampled", command)
        for i, command in enumerate(commands)
    ]
