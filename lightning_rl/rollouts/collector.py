"""Collecting episodes with a torch DataLoader whose worker processes play whole chunks of requests."""

from __future__ import annotations

import atexit
import copy
from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.core.types import Episode, Request
from lightning_rl.core.workers import begin_worker
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.player import CommandRule, Player

Chunk = list[Request]

_MAX_OUTSTANDING = 1000  # chunks queued per worker, so that a whole collection starts at once


class _ChunkDataset(Dataset[object]):
    """Index: a chunk of requests. Item: its episodes, or the RolloutError that ended it.

    The error travels as a value: raised in a worker it would arrive wrapped in a page of traceback.
    """

    def __init__(self, player: Player):
        self.player = player

    def __getitem__(self, chunk: Chunk) -> list[Episode] | RolloutError:
        try:
            return self.player.play(chunk)
        except UserError as error:
            return RolloutError(str(error))


class _ChunkSampler(Sampler[Chunk]):
    """The chunks of the collection that starts next."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self.chunks)

    def __len__(self) -> int:
        return len(self.chunks)


class Collector:
    """Plays collections of requests under a frozen copy of the policy, the behaviour policy.

    ``start`` copies the parameters and sets the workers going; ``finish`` waits for the episodes. What is done between the two
    overlaps with the playing. Results do not depend on ``num_workers``.

    Args:
        spec: of the environment.
        policy: the behaviour policy is a copy of it.
        num_workers: processes that play; with 0 this process does.
        chunk_size: episodes that are played in lock-step; results may depend on it by rounding.
        next_command: how a command changes after a step; None: it stays.
    """

    def __init__(
        self,
        spec: EnvSpec,
        policy: Policy,
        num_workers: int,
        chunk_size: int,
        next_command: CommandRule | None = None,
    ):
        self.behaviour = copy.deepcopy(policy).cpu().requires_grad_(False)
        self.version = torch.full((), -1, dtype=torch.int64)
        if num_workers:  # only then: each shared tensor keeps a file descriptor open
            self.behaviour.share_memory()
            self.version.share_memory_()
        self.chunk_size = chunk_size
        self.player = Player(spec, self.behaviour, self.version, next_command)
        self.num_workers = num_workers
        self._sampler = _ChunkSampler()
        self._loader: DataLoader[object] | None = None
        self._results: Iterator[object] | None = None
        self._waiting: list[Chunk] = []
        # Runs before the exit handler of multiprocessing, which sends SIGTERM and waits.
        atexit.register(self.close)

    def _open(self) -> DataLoader[object]:
        return DataLoader(
            _ChunkDataset(self.player),
            sampler=self._sampler,
            batch_size=None,
            num_workers=self.num_workers,
            persistent_workers=self.num_workers > 0,
            prefetch_factor=_MAX_OUTSTANDING if self.num_workers else None,
            worker_init_fn=begin_worker,
            generator=torch.Generator(),  # or each collection would draw from torch's global generator
        )

    @property
    def busy(self) -> bool:
        """Whether a collection is under way."""
        return self._results is not None

    def start(self, requests: Sequence[Request], policy: dict[str, torch.Tensor], version: int) -> None:
        """Begins to play ``requests`` under the parameters ``policy`` (a state dict), stamped ``version``."""
        if self.busy:
            raise RuntimeError("a collection is already under way")
        self.behaviour.load_state_dict(policy)
        self.version.fill_(version)
        size = self.chunk_size
        self._sampler.chunks = self._waiting = [list(requests[i : i + size]) for i in range(0, len(requests), size)]
        self._loader = self._loader or self._open()
        self._results = iter(self._loader)

    def finish(self) -> list[Episode]:
        """The episodes of the collection under way. RolloutError names the request that failed."""
        if self._results is None:
            raise RuntimeError("no collection is under way")
        episodes: list[Episode] = []
        for result in self._results:
            if isinstance(result, RolloutError):
                raise result
            assert isinstance(result, list)
            episodes += result
            self._waiting = self._waiting[1:]
        self._results = None
        return episodes

    def collect(self, requests: Sequence[Request], policy: dict[str, torch.Tensor], version: int) -> list[Episode]:
        """``start`` and ``finish``."""
        self.start(requests, policy, version)
        return self.finish()

    def close(self) -> None:
        """Stops the workers until the next ``start``; a collection under way is thrown away."""
        self._results = None
        iterator = getattr(self._loader, "_iterator", None)
        if iterator is not None:
            iterator._shutdown_workers()  # torch does this when the iterator dies, but a traceback may keep it alive
            for worker in getattr(iterator, "_workers", ()):
                worker.kill()  # one that is still there is in a step that does not return
        self._loader = None

    @property
    def outstanding(self) -> list[str]:
        """Names of the requests that have no episode yet."""
        return [request.name for chunk in self._waiting for request in chunk]


def worker_died(cause: BaseException, collectors: Sequence[Collector]) -> RolloutError | None:
    """What ``cause`` is reported as if it says that a worker of one of ``collectors`` died, else None.

    torch raises ``cause`` from a signal handler, at any point of the main process: also while a collection is being
    started, or when none is under way.
    """
    if "DataLoader worker" not in str(cause):
        return None
    names = [name for collector in collectors for name in collector.outstanding]
    what = f"{names[0]} .. {names[-1]} ({len(names)} requests) were outstanding" if names else "no episode was outstanding"
    return RolloutError(f"a roll-out worker died ({cause}) while {what}; free memory or lower --num_workers, then --resume")
