"""The data of a run as a LightningDataModule: one training batch an epoch, and an evaluation every few epochs.

A method's data class says what to play (``requests``), what to keep (``absorb``) and what to train on (``prepare``);
``CollectedRollouts`` plays, in worker processes and during training if that is asked for, and resumes exactly.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor

from lightning_rl.core.contents import Also, Count, ListOf, Text
from lightning_rl.core.limits import NAME_BYTES
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collector import Collector

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method


class OneBatch:
    """A loader of length 1: Lightning would prefetch from one without a length, and train on stale data."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        yield self._make()


class Rollouts(LightningDataModule):
    """What a method learns from and is evaluated on: environments, buffers, and the workers that play.

    ``state_dict`` is all that the next epoch depends on; Lightning saves and restores it with the rest of a checkpoint.

    Args:
        evaluation: what ``validation_step`` is given.
    """

    def __init__(self, evaluation: Evaluation):
        super().__init__()
        self.evaluation = evaluation

    def next_batch(self) -> Any:
        """The training batch of the next epoch."""
        raise NotImplementedError

    def layout(self, done: int) -> dict[str, Any]:
        """What ``state_dict`` may look like after ``done`` epochs: a template of ``core.contents``."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass

    def collectors(self) -> list[Collector]:
        """All collectors, whose workers ``teardown`` stops."""
        return [] if self.evaluation.collector is None else [self.evaluation.collector]

    def train_dataloader(self) -> OneBatch:
        return OneBatch(self.next_batch)

    def val_dataloader(self) -> Evaluations:
        return Evaluations(self)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Moves batches of tensors; episodes stay on the CPU."""
        return batch.to(device) if hasattr(batch, "to") else batch

    def teardown(self, stage: str) -> None:
        for collector in self.collectors():
            collector.close()


class Evaluations(OneBatch):
    """The evaluations of a run; Lightning's check before training, which plays episodes for nothing, gets none."""

    def __init__(self, rollouts: Rollouts):
        super().__init__(rollouts.evaluation.play)
        self._rollouts = rollouts

    def __iter__(self) -> Iterator[Any]:
        trainer = self._rollouts.trainer
        return iter(()) if trainer is not None and trainer.sanity_checking else super().__iter__()


class Evaluation:
    """Plays the current policy, sampled, greedy and under the method's probe commands, all on the same environment seeds.

    Args:
        method: whose policy, commands and number of episodes are used.
        collector: plays the episodes; None for methods that evaluate without a policy.
    """

    def __init__(self, method: Method, collector: Collector | None):
        self.method, self.collector = method, collector

    def play(self) -> Any:
        """What ``validation_step`` takes: here ``{prefix: episodes}``, prefixes ``eval``, ``eval_greedy`` and the probes'."""
        return self.play_policy(self.method.seed, self.method.policy)

    def play_policy(self, seed: int, policy: Policy) -> dict[str, list[Episode]]:
        """The evaluation of one policy of a run of this seed."""
        assert self.collector is not None
        method = self.method
        epoch, count = method.current_epoch, method.cfg.eval_episodes
        command = method.first_command()
        series: list[tuple[str, tuple[float, ...] | None, ActionMode]] = [
            ("eval", command, "sampled"), ("eval_greedy", command, "greedy"),
        ]  # fmt: skip
        series += [(prefix, probe, "sampled") for prefix, probe in method.probe_commands().items()]
        requests: list[Request] = []
        for _, asked, mode in series:
            requests += evaluation_requests(seed, "evaluation", epoch, count, asked, mode)
        episodes = self.collector.collect(requests, policy.state_dict(), version=epoch + 1)
        return {prefix: episodes[i * count : (i + 1) * count] for i, (prefix, _, _) in enumerate(series)}


class CollectedRollouts(Rollouts):
    """Data of a method that learns from episodes of its current policy.

    An epoch: finish the collection, ``absorb`` it, start the next one (with overlap), ``prepare`` the batch.

    Args:
        collector: plays the training episodes.
        evaluation: what ``validation_step`` is given.
        policy: whose current parameters each collection is started with.
        run_seed: the seeds of all episodes follow from it.
        overlap: play the episodes of epoch k + 1 during the training of epoch k, under the parameters before it: exactly one
            epoch of staleness. Without, they are never stale.
    """

    command: Any = None  # template of a request's command

    def __init__(self, collector: Collector, evaluation: Evaluation, policy: Policy, run_seed: int, overlap: bool):
        super().__init__(evaluation)
        self.collector, self.policy, self.run_seed, self.overlap = collector, policy, run_seed, overlap
        self.epoch = 0
        self._under_way: list[Request] = []

    def requests(self, epoch: int) -> list[Request]:
        """The episodes to play for ``epoch``; called when their collection starts."""
        raise NotImplementedError

    def absorb(self, epoch: int, episodes: list[Episode]) -> None:
        """Takes in the finished collection; called before the next one starts."""

    def prepare(self, epoch: int, episodes: list[Episode], waited: float) -> Any:
        """The epoch's batch; called when the next collection has started. waited: seconds until the episodes were there."""
        raise NotImplementedError

    def contents(self) -> dict[str, Any]:
        """The method's part of ``state_dict``: plain data that ``refill`` takes."""
        return {}

    def refill(self, contents: dict[str, Any]) -> None:
        """Restores what ``contents`` gave."""

    def contents_layout(self, done: int) -> dict[str, Any]:
        """What ``contents`` may look like after ``done`` epochs."""
        return {}

    def most_requests(self) -> int:
        """The most episodes that a collection of training can have."""
        raise NotImplementedError

    def collectors(self) -> list[Collector]:
        return [self.collector, *super().collectors()]

    def next_batch(self) -> Any:
        epoch, started = self.epoch, time.perf_counter()
        if not self.collector.busy:
            self._start(epoch)
        episodes = self.collector.finish()
        waited = time.perf_counter() - started
        self.absorb(epoch, episodes)
        self.epoch += 1
        if self.overlap:
            self._start(self.epoch)
        return self.prepare(epoch, episodes, waited)

    def _start(self, epoch: int) -> None:
        # With overlap, the collection for an epoch starts before the training of the epoch before it.
        version = max(epoch - self.overlap, 0)
        self._play(self.requests(epoch), self.policy.state_dict(), version)

    def _play(self, requests: list[Request], parameters: dict[str, Tensor], version: int) -> None:
        self._under_way = requests
        self.collector.start(requests, parameters, version)

    def state_dict(self) -> dict[str, Any]:
        """The epoch, ``contents``, and of a collection under way its requests and the behaviour policy: it is played again."""
        state: dict[str, Any] = {"epoch": self.epoch, **self.contents()}
        if self.overlap:
            state["under_way"] = {
                "requests": [(r.name, r.seed, r.mode, r.command) for r in self._under_way],
                "behaviour": {k: v.clone() for k, v in self.collector.behaviour.state_dict().items()},
                "version": int(self.collector.version),
            }
        return state

    def layout(self, done: int) -> dict[str, Any]:
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
        expected = training_requests(self.run_seed, done, [request.command for request in given])
        return None if given == expected else f"its episodes are not those of epoch {done} of seed {self.run_seed}"

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        self.refill(state_dict)
        if self.overlap:
            under_way = state_dict["under_way"]
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


def evaluation_requests(
    run_seed: int, purpose: str, epoch: int, count: int, command: tuple[float, ...] | None, mode: ActionMode
) -> list[Request]:
    """``count`` requests; for other commands and modes the environment seeds are the same."""
    return [
        Request(f"{purpose} after epoch {epoch}, {mode} episode {i}", derive_seed(run_seed, purpose, epoch, i), mode, command)
        for i in range(count)
    ]
