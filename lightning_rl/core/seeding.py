"""Counter-based randomness: every random number is a function of (run seed, purpose, index).

Nothing depends on how many numbers were drawn before, so worker processes, resuming and the
order of execution cannot change a run. A purpose always has the same number of indices: numpy reads
a missing one as 0.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch


def _sequence(run_seed: int, purpose: str, index: tuple[int, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence([run_seed, zlib.crc32(purpose.encode()), *index])


def derive_seed(run_seed: int, purpose: str, *index: int) -> int:
    """A 63-bit seed for (run_seed, purpose, index)."""
    return int(_sequence(run_seed, purpose, index).generate_state(1, np.uint64)[0] >> 1)


def generator(run_seed: int, purpose: str, *index: int) -> np.random.Generator:
    """An independent numpy generator for (run_seed, purpose, index)."""
    return np.random.Generator(np.random.Philox(_sequence(run_seed, purpose, index)))


@contextmanager
def seeded_torch(run_seed: int, purpose: str, *index: int) -> Iterator[None]:
    """Inside, torch's global generator, which layer constructors draw from, is seeded;
    afterwards its old state is restored.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(derive_seed(run_seed, purpose, *index))
        yield


States = tuple[Any, Any, torch.Tensor]
"""Of the global generators that an environment may draw from: Python's, numpy's, torch's."""


def seed_generators(seed: int) -> None:
    """Seeds the global generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)


def generator_states() -> States:
    """The states of the global generators."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state()


def set_generators(states: States) -> None:
    """Puts the global generators back into these states."""
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


def drawn_between(before: States, after: States) -> bool:
    """Whether a number was drawn from one of the global generators."""
    (_, keys, *rest), (_, keys_after, *rest_after) = before[1], after[1]
    numpy_same = rest == rest_after and np.array_equal(keys, keys_after)
    return not (before[0] == after[0] and numpy_same and torch.equal(before[2], after[2]))


@contextmanager
def kept_generators() -> Iterator[None]:
    """Gives the global generators back as they were: they are the user's."""
    states = generator_states()
    try:
        yield
    finally:
        set_generators(states)


NOISE: dict[str, Callable[[np.random.Generator, tuple[int, ...]], npt.NDArray[np.floating]]] = {
    "uniform": lambda rng, shape: rng.random(shape, dtype=np.float32),
    # fine enough for indices into millions of rows
    "uniform64": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.standard_normal(shape, dtype=np.float32),
    "gumbel": lambda rng, shape: rng.gumbel(size=shape).astype(np.float32),
}

NOISE_BLOCK = 128
"""Steps of noise drawn at a time by default."""
AHEAD = {"cuda"}
"""Device types for which a thread draws the next block ahead of time; a GPU would otherwise wait
for it most of the time.
"""


@cache
def _helpers() -> ThreadPoolExecutor:
    # numpy draws without the interpreter's lock
    return ThreadPoolExecutor(4, thread_name_prefix="noise")


class MemberNoise:
    """Noise for ``N`` members, step by step: what member ``n`` gets at step ``t`` depends on
    (seeds[n], purpose, t) alone.

    Drawn a block of steps at a time, so that the work per member is not done at every step.
    lengths: for each member, how many entries of the first dimension of ``shape`` it draws; the
    padding behind them repeats its first entry, so a member of a stack sees no noise that it would
    not see alone.
    block: steps drawn at a time; the numbers depend on it.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        purpose: str,
        shape: tuple[int, ...],
        kind: str,
        device: torch.device | str | None = None,
        lengths: Sequence[int] | None = None,
        block: int = NOISE_BLOCK,
    ):
        self.block, self.seeds, self.purpose = block, list(seeds), purpose
        self.shape, self.kind, self.device = shape, kind, device
        self.lengths = None if lengths is None else list(lengths)
        self._number, self._block = -1, torch.empty(0)
        self._held: tuple[int, torch.Tensor] | None = None
        self._ahead: tuple[int, Future[npt.NDArray[np.floating]]] | None = None

    def at(self, step: int) -> torch.Tensor:
        """The noise ``[N, *shape]`` of step ``step``; cheapest in rising order. Not to be
        written to.
        """
        if self._held is not None and self._held[0] == step:
            return self._held[1]
        number, place = divmod(step, self.block)
        return self.whole(number)[place]

    def hold(self, step: int) -> torch.Tensor:
        """Like ``at``, but copied into one fixed tensor, as CUDA graphs need it; ``at`` then
        returns that for this step.
        """
        noise = self.at(step)
        if self._held is None:
            self._held = step, noise.clone()
        elif self._held[0] != step:
            self._held = step, self._held[1].copy_(noise)
        return self._held[1]

    def whole(self, number: int) -> torch.Tensor:
        """The noise ``[block, N, *shape]`` of steps ``number * block`` and on."""
        if number != self._number:
            if self._ahead and self._ahead[0] == number:
                drawn = self._ahead[1].result()
            else:
                drawn = self._draw(number)
            self._block, self._number = torch.from_numpy(drawn).to(self.device), number
            if self._block.device.type in AHEAD:
                self._ahead = number + 1, _helpers().submit(self._draw, number + 1)
        return self._block

    def __getstate__(self) -> dict[str, Any]:
        """A pickled or deep copy does not take along the block that a thread is drawing; it
        draws that itself.
        """
        return {**vars(self), "_ahead": None}

    def _draw(self, number: int) -> npt.NDArray[np.floating]:
        draw = NOISE[self.kind]
        rngs = [generator(seed, self.purpose, number) for seed in self.seeds]
        if self.lengths is None:
            return np.stack([draw(rng, (self.block, *self.shape)) for rng in rngs], axis=1)
        rows = [
            draw(rng, (self.block, length, *self.shape[1:]))
            for rng, length in zip(rngs, self.lengths, strict=True)
        ]
        block = np.zeros((self.block, len(rows), *self.shape), dtype=rows[0].dtype)
        for n, row in enumerate(rows):
            block[:, n, : row.shape[1]] = row
            block[:, n, row.shape[1] :] = row[:, :1]
        return block

    def to(self, device: torch.device) -> None:
        """Gives the noise on this device from now on."""
        self.device, self._block, self._held = device, self._block.to(device), None

    def keep(self, rows: torch.Tensor) -> None:
        """Goes on with the members ``rows`` alone."""
        self.seeds = [self.seeds[n] for n in rows.tolist()]
        self.lengths = None if self.lengths is None else [self.lengths[n] for n in rows.tolist()]
        self._block = self._block[:, rows] if self._number >= 0 else self._block
        self._held = self._ahead = None
