"""Playing episodes: an episode is a pure function of the policy's parameters and its ``Request``.

A chunk of requests is played in lock-step, with one batched forward pass per step, in this process
(``Player``) or in worker processes (``Collector``). A matrix product may round differently for
another batch size, so chunks have a fixed size: results do not depend on the number of workers.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.util import Finalize
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils import signal_handling

from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.core.seeding import kept_generators, seed_generators
from lightning_rl.core.types import Array, Episode, FloatArray, Request
from lightning_rl.core.workers import begin_worker, check_may_start, check_sendable
from lightning_rl.envs.gym import doubled, rollout_env
from lightning_rl.envs.spaces import STEPS, Env
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.nets.acting import Act, compile_acting, playing
from lightning_rl.nets.policies import Actor

CommandRule = Callable[[FloatArray, FloatArray], FloatArray]
"""(command [B, C], reward [B]) -> command of the next step [B, C]."""

_NOISE_BLOCK = 64  # steps of action noise drawn at a time
_LOG_STEPS = 1024  # that a log has room for at first: a time limit may be as good as none
_CHUNKS = 2  # that a collection has at least
_MAX_OUTSTANDING = 100  # chunks queued per worker, so that a whole collection starts at once


class UniformActions(Actor):
    """Uniformly random actions, from uniform noise ``[B, A]``, or from Gumbel noise if discrete."""

    def __init__(self, spec: EnvSpec):
        super().__init__()
        self.spec, self.noise_size = spec, spec.action_size

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        if self.spec.continuous:
            return rng.random(shape, dtype=np.float32)
        return self.spec.distribution().draw_noise(rng, shape)

    def act(self, obs: Tensor, command: Tensor | None, noise: Tensor) -> Tensor:
        if self.spec.continuous:
            return 2 * noise - 1
        logits = torch.zeros_like(noise)
        if self.spec.masked:
            from lightning_rl.nets.masked import masked

            logits = masked(logits, obs)
        return self.spec.distribution()(logits).sample(noise)


def held(noise: FloatArray, keep: Array, before: FloatArray) -> FloatArray:
    """Noise ``[T, A]`` of which the steps in keep ``[T]`` repeat that of the step before; before
    ``[A]``: that of the first.

    The marginal distribution of each step's noise is unchanged, but successive steps are
    correlated, so exploration goes in one direction for longer (as with the coloured noise of
    Eberhard et al. 2023, here for any policy).
    """
    source = np.maximum.accumulate(np.where(keep, -1, np.arange(len(noise))))
    return np.where(source[:, None] < 0, before, noise[source])


class ActionNoise:
    """The noise that turns distributions into actions, one independent stream per request."""

    def __init__(self, requests: Sequence[Request], actor: Actor):
        self._actor, self._shape = actor, (_NOISE_BLOCK, actor.noise_size)
        self._block = np.zeros((_NOISE_BLOCK, len(requests), actor.noise_size), dtype=np.float32)
        self._streams = [
            (row, request.noise_hold, np.random.Generator(np.random.Philox(request.seed)))
            for row, request in enumerate(requests)
            if request.mode != "greedy"
        ]

    def at(self, step: int, rows: Array) -> FloatArray:
        """Noise ``[len(rows), size]`` for time ``step``, 0 for greedy requests; steps in order."""
        position = step % _NOISE_BLOCK
        if position == 0:
            for row, hold, rng in self._streams:
                noise = self._actor.draw_noise(rng, self._shape)
                if hold:
                    keep = rng.random(_NOISE_BLOCK) < hold
                    keep[0] &= step > 0
                    noise = held(noise, keep, self._block[-1, row])
                self._block[:, row] = noise
        return self._block[position].take(rows, 0)


class _Chunk:
    """``n`` episodes that are played in lock-step, and what has happened in them, ``[T, n, ..]``.

    There is room for the longest, which grows with it.
    """

    def __init__(self, spec: EnvSpec, requests: Sequence[Request], envs: Sequence[Env]):
        self.requests, self.envs = requests, envs
        n, room = len(requests), min(spec.horizon, _LOG_STEPS)
        self.stack = spec.stack
        dtype = np.float32 if spec.frames is None else np.uint8
        self.obs: Array = np.empty((room + 1, n, spec.stored_size), dtype=dtype)
        self.action = spec.actions(room, n)
        self.reward = np.empty((room, n), dtype=np.float32)
        command_size = len(requests[0].command or ())
        self.command = np.empty((room + 1, n, command_size), dtype=np.float32)
        self.command[0] = [request.command or () for request in requests]
        self.ends = [(0, False, False)] * n  # length, terminated, truncated, of those that are over
        self.env_steps = [0] * n

    def make_room(self, step: int) -> None:
        """Makes room for ``step``."""
        if step < len(self.reward):
            return
        self.obs = doubled(self.obs)
        self.action = doubled(self.action)
        self.reward = doubled(self.reward)
        self.command = doubled(self.command)

    def seen(self, step: int, rows: Array) -> Array:
        """What a policy sees in the episodes ``rows`` at time ``step``, ``[B, O]``."""
        if self.stack == 1:
            return self.obs[step].take(rows, 0)
        times = np.maximum(np.arange(step + 1 - self.stack, step + 1), 0)
        return self.obs[times[np.newaxis], rows[:, np.newaxis]].reshape(len(rows), -1)

    def reset(self) -> None:
        """Begins all episodes."""
        for row, request in enumerate(self.requests):
            try:
                self.obs[0, row] = self.envs[row].reset(seed=request.seed % 2**31)[0]
            except RolloutError as error:
                raise self._failure(row, error) from error

    def step(self, step: int, rows: Array, actions: Array) -> Array:
        """Takes the actions of time ``step`` in the episodes ``rows``; those that go on."""
        self.action[step, rows] = actions
        listed = actions.tolist() if actions.ndim == 1 else actions
        envs, obs, reward = self.envs, self.obs[step + 1], self.reward[step]
        over = []
        try:
            for row, action in zip(rows.tolist(), listed, strict=True):
                obs[row], reward[row], terminated, truncated, info = envs[row].step(action)
                self.env_steps[row] += info.get(STEPS, 1)  # of a repeated action
                if terminated or truncated:
                    self.ends[row] = step + 1, bool(terminated), bool(truncated)
                    over.append(row)
        except RolloutError as error:
            raise self._failure(row, error) from error
        return np.setdiff1d(rows, over, assume_unique=True) if over else rows

    def _failure(self, row: int, error: RolloutError) -> RolloutError:
        request = self.requests[row]
        return RolloutError(f"{error}; this was {request.name} (request seed {request.seed})")

    def episodes(self, version: int) -> list[Episode]:
        """The episodes, when all are over."""
        episodes = []
        for row, request in enumerate(self.requests):
            length, terminated, truncated = self.ends[row]
            episode = Episode(
                obs=self.obs[: length + 1, row].copy(),
                action=self.action[:length, row].copy(),
                reward=self.reward[:length, row].copy(),
                terminated=terminated,
                truncated=truncated,
                command=self.command[:length, row].copy() if self.command.size else None,
                request=request,
                policy_version=version,
                env_steps=self.env_steps[row],
                stack=self.stack,
            )
            episodes.append(episode)
        return episodes


class Player(Dataset["list[Episode] | RolloutError"]):
    """Plays chunks of requests in copies of one environment under one policy.

    The global generators are seeded for each chunk, so that environments that draw from them meet
    the same again. The environments are made on first use, in the process that plays. As a torch
    dataset, its index is a chunk.

    Args:
        spec: of the environment.
        policy: on the CPU; it may be in shared memory.
        version: a number ``[]`` that each episode carries, to tell which parameters it was played
            with.
        next_command: how a command changes after a step; None: it stays.
    """

    def __init__(
        self,
        spec: EnvSpec,
        policy: Actor,
        version: Tensor | int = 0,
        next_command: CommandRule | None = None,
    ):
        self.spec, self.policy, self.next_command = spec, policy, next_command
        self.version = version
        self._envs: list[Env] = []

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_envs": []}

    def __getitem__(self, chunk: Sequence[Request]) -> list[Episode] | RolloutError:
        """The episodes of a chunk, or its error, which from a worker would come as a traceback."""
        try:
            return self.play(chunk)
        except UserError as error:
            return RolloutError(str(error))

    @torch.inference_mode()
    def play(self, requests: Sequence[Request], envs: Sequence[Env] | None = None) -> list[Episode]:
        """Plays a chunk.

        Args:
            requests: what to play; either all in mode ``uniform`` or none, all with a command or
                none, all with a guidance or none.
            envs: one environment for each request, e.g. rendering ones; None for those of the
                player.

        Returns:
            The episodes, in the order of the requests.

        Raises:
            RolloutError: an environment raised; the message names the request.
        """
        if envs is None:
            if multiprocessing.parent_process() is not None and not self._envs:
                Finalize(None, self.close, exitpriority=0)  # a worker ends its environments itself
            while len(self._envs) < len(requests):
                self._envs.append(rollout_env(self.spec))
            envs = self._envs
        actor = UniformActions(self.spec) if requests[0].mode == "uniform" else self.policy
        guidance: FloatArray | None = None
        if requests[0].guidance is not None:
            guidance = np.array([request.guidance for request in requests], dtype=np.float32)
        chunk = _Chunk(self.spec, requests, envs)
        noise = ActionNoise(requests, actor)
        seed_generators(requests[0].seed)  # an environment may draw from them
        chunk.reset()
        with playing(actor) as act:
            self._play(chunk, noise, act, guidance)
        return chunk.episodes(int(self.version))

    def close(self) -> None:
        """Ends the environments: they may have processes of their own."""
        while self._envs:
            with contextlib.suppress(RolloutError):
                self._envs.pop().close()

    def _play(
        self, chunk: _Chunk, noise: ActionNoise, act: Act, guidance: FloatArray | None
    ) -> None:
        """All steps of all episodes."""
        rows = np.arange(len(chunk.requests))  # the episodes that are not over
        step = 0
        while rows.size:
            chunk.make_room(step)
            command: FloatArray | None = None
            if chunk.command.size:
                command = chunk.command[step].take(rows, 0)
            guided = None if guidance is None else guidance[rows]
            obs = chunk.seen(step, rows)
            played = rows
            rows = chunk.step(step, rows, act(obs, command, noise.at(step, rows), guided))
            if command is not None:
                if self.next_command is not None:
                    reward = chunk.reward[step].take(played)
                    command = self.next_command(command, reward)
                chunk.command[step + 1, played] = command
            step += 1


class Collector:
    """Plays collections of requests under the behaviour policy, a frozen copy of the policy.

    ``start`` copies the parameters and sets the workers going; ``finish`` waits for the episodes.
    What is done between the two overlaps with the playing. Results do not depend on
    ``num_workers``.

    Args:
        spec: of the environment.
        policy: the behaviour policy is a copy of it, in evaluation mode: an own network may have
            dropout or batch norm.
        num_workers: processes that play; with 0 this process does.
        chunk_size: episodes that are played in lock-step, but at most half of a collection, so that
            two workers have something to play; results may depend on it by rounding.
        next_command: how a command changes after a step; None: it stays.
        nice: of the workers, see ``begin_worker``.
    """

    def __init__(
        self,
        spec: EnvSpec,
        policy: Actor,
        num_workers: int,
        chunk_size: int,
        next_command: CommandRule | None = None,
        nice: int = 0,
    ):
        self.behaviour = copy.deepcopy(policy).cpu().requires_grad_(False).eval()
        self.version = torch.full((), -1, dtype=torch.int64)
        self.player = Player(spec, self.behaviour, self.version, next_command)
        if num_workers:  # only then: each shared tensor keeps a file descriptor open
            self.behaviour.share_memory()
            self.version.share_memory_()
            check_may_start(f"num_workers {num_workers}", "give num_workers=0")
            check_sendable(self.player)
        self.num_workers, self.chunk_size, self.nice = num_workers, chunk_size, nice
        self._chunks: list[Sequence[Request]] = []  # those of the collection that was started last
        self._finished = 0  # chunks of it
        self._loader: DataLoader[list[Episode] | RolloutError] | None = None
        self._results: Iterator[list[Episode] | RolloutError] | None = None

    def _open(self) -> DataLoader[list[Episode] | RolloutError]:
        # before the exit handler of multiprocessing, which sends SIGTERM and waits
        atexit.register(self.close)
        if self.num_workers:
            compile_acting(self.behaviour)
        return DataLoader(
            self.player,
            sampler=self._chunks,
            batch_size=None,
            num_workers=self.num_workers,
            persistent_workers=self.num_workers > 0,
            prefetch_factor=_MAX_OUTSTANDING if self.num_workers else None,
            worker_init_fn=functools.partial(begin_worker, nice=self.nice),
            # or each collection would draw from torch's global generator
            generator=torch.Generator(),
        )

    @property
    def busy(self) -> bool:
        """Whether a collection is under way."""
        return self._results is not None

    @property
    def outstanding(self) -> list[str]:
        """Names of the requests that have no episode yet."""
        return [request.name for chunk in self._chunks[self._finished :] for request in chunk]

    def start(self, requests: Sequence[Request], policy: dict[str, Tensor], version: int) -> None:
        """Begins to play ``requests`` under the state dict ``policy``, stamped ``version``."""
        if self.busy:
            raise RuntimeError("a collection is already under way; call finish() or close() first")
        self.behaviour.load_state_dict(policy)
        self.version.fill_(version)
        size = min(self.chunk_size, math.ceil(len(requests) / _CHUNKS))
        self._chunks[:] = [requests[i : i + size] for i in range(0, len(requests), size)]
        self._finished = 0
        self._loader = self._loader or self._open()
        self._results = iter(self._loader)

    def finish(self) -> list[Episode]:
        """The episodes of the collection under way. RolloutError names the request that failed."""
        if self._results is None:
            raise RuntimeError("no collection is under way; call start() first")
        episodes: list[Episode] = []
        # played in this process, environments may draw from the global generators
        generators = contextlib.nullcontext() if self.num_workers else kept_generators()
        try:
            with generators:
                for result in self._results:
                    if isinstance(result, RolloutError):
                        raise result
                    episodes += result
                    self._finished += 1
        except BaseException:
            self.close()  # or the rest of it would pass for the next collection
            raise
        self._results = None
        return episodes

    def collect(
        self, requests: Sequence[Request], policy: dict[str, Tensor], version: int
    ) -> list[Episode]:
        """``start`` and ``finish``."""
        self.start(requests, policy, version)
        return self.finish()

    def close(self) -> None:
        """Stops the workers until the next ``start``; a collection under way is thrown away."""
        iterator: Any = getattr(self._loader, "_iterator", None)
        workers = getattr(iterator, "_workers", ())
        if workers and self.busy:
            # they would go on to the end of their chunks, or are in a step that does not return;
            # torch, which would report that they have died, must forget them first
            cast(Any, signal_handling)._remove_worker_pids(id(iterator))
            iterator._worker_pids_set = False
            for worker in workers:
                worker.kill()
        self._results = None
        if workers:
            # torch does this when the iterator dies, but a traceback may keep it alive
            iterator._shutdown_workers()
        self._loader = None
        self.player.close()
        atexit.unregister(self.close)
