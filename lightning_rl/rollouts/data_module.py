"""The data of a run as a LightningDataModule: one training batch an epoch, and an evaluation every
few epochs.

``collected.CollectedRollouts`` is that of methods which learn from episodes of their policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from pytorch_lightning import LightningDataModule, Trainer

from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.player import Collector

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method

T = TypeVar("T")


class OneBatch:
    """A loader of one batch, which ``make`` returns; of none while the trainer checks its sanity.

    It has a length: from a loader without, Lightning would prefetch, and so train on stale data.
    """

    def __init__(self, make: Callable[[], Any], trainer: Trainer | None):
        self.make, self.trainer = make, trainer

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        if self.trainer is None or not self.trainer.sanity_checking:
            yield self.make()


class Rollouts(LightningDataModule):
    """What a method learns from and is evaluated on: environments, buffers, and the workers that
    play.

    ``state_dict`` is all that the next epoch depends on; Lightning saves and restores it with the
    rest of a checkpoint.

    Args:
        method: whose policy, commands and number of episodes an evaluation has.
        evaluator: plays the evaluations; None for methods that evaluate without a policy.
    """

    plays_beside = False  # whether an evaluation can go on in the workers while training does

    def __init__(self, method: Method, evaluator: Collector | None = None):
        super().__init__()
        self.method, self.evaluator = method, evaluator
        self.collectors = [] if evaluator is None else [evaluator]  # whose workers ``close`` stops
        self._prefixes: list[str] = []  # of the metrics of the episodes that the evaluator plays

    def next_batch(self) -> Any:
        """The training batch of the next epoch."""
        raise NotImplementedError

    def evaluate(self) -> Any:
        """What ``validation_step`` is given: here ``play_policy`` of the method's policy, as it was
        when ``start_evaluation`` was called last, or is.
        """
        if not self.evaluating:
            self.start_evaluation()
        return self.finish_playing()

    @property
    def evaluating(self) -> bool:
        """Whether an evaluation was started that ``evaluate`` has not given yet."""
        return self.evaluator is not None and self.evaluator.busy

    def start_evaluation(self) -> None:
        """Begins an evaluation of the method as it is, which goes on in the workers."""
        self.start_playing(self.method.seed, self.method.policy)

    def play_policy(self, seed: int, policy: Actor) -> dict[str, list[Episode]]:
        """``start_playing`` and ``finish_playing``."""
        self.start_playing(seed, policy)
        return self.finish_playing()

    def start_playing(self, seed: int, policy: Actor) -> None:
        """Begins to play episodes of a policy, all on the same environment seeds.

        ``eval`` (sampled actions) and ``eval_greedy`` have the method's first command, its probes
        follow under their names. A policy without noise plays the same either way, so it plays
        once, and ``with_greedy`` says so.
        """
        assert self.evaluator is not None
        epoch, count = self.method.current_epoch, self.method.cfg.eval_episodes
        requests: list[Request] = []
        self._prefixes = []
        for prefix, command, mode in self.series(policy):
            requests += evaluation_requests(seed, "evaluation", epoch, count, command, mode)
            self._prefixes += [prefix] * count
        self.evaluator.start(requests, policy.state_dict(), version=epoch + 1)

    def series(self, policy: Actor) -> Iterator[tuple[str, Any, ActionMode]]:
        """The series of an evaluation: prefix of their metrics, command, how actions are chosen."""
        first = self.method.first_command()
        yield "eval", first, "sampled"
        if policy.noise_size:
            yield "eval_greedy", first, "greedy"
        for prefix, probe in self.method.probe_commands().items():
            yield prefix, probe, "sampled"

    def finish_playing(self) -> dict[str, list[Episode]]:
        """The episodes, by the prefix of their metrics."""
        assert self.evaluator is not None
        played: dict[str, list[Episode]] = {}
        for prefix, episode in zip(self._prefixes, self.evaluator.finish(), strict=True):
            played.setdefault(prefix, []).append(episode)
        return played

    def train_dataloader(self) -> OneBatch:
        return OneBatch(self.next_batch, self.trainer)

    def val_dataloader(self) -> OneBatch:
        return OneBatch(self.evaluate, self.trainer)

    test_dataloader = val_dataloader

    def transfer_batch_to_device(
        self, batch: Any, device: torch.device, dataloader_idx: int
    ) -> Any:
        """Moves a training batch of tensors; lists, e.g. of episodes, and evaluations stay."""
        assert self.trainer is not None
        moved = self.trainer.training and not isinstance(batch, list)
        if not moved:
            return batch
        return super().transfer_batch_to_device(batch, device, dataloader_idx)

    def on_exception(self, exception: BaseException) -> None:  # Lightning tears nothing down then
        self.teardown("fit")

    def close(self) -> None:
        """Ends all processes for good."""
        self.teardown("fit")

    def teardown(self, stage: str) -> None:
        for collector in self.collectors:
            collector.close()


def with_greedy(series: Mapping[str, T]) -> dict[str, T]:
    """``series``, in which a policy without noise, which played once, has a greedy entry, too."""
    return {**series, "eval_greedy": series.get("eval_greedy", series["eval"])}


def evaluation_requests(
    run_seed: int,
    purpose: str,
    epoch: int,
    count: int,
    command: tuple[float, ...] | None,
    mode: ActionMode,
    guidance: float | None = None,
) -> list[Request]:
    """``count`` requests; for other commands and modes the environment seeds are the same."""
    return [
        Request(
            f"{purpose} after epoch {epoch}, {mode} episode {i}",
            derive_seed(run_seed, purpose, epoch, i),
            mode,
            command,
            guidance=guidance,
        )
        for i in range(count)
    ]
