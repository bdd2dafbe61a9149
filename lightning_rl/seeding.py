"""Counter-based randomness: every random number is a function of (run seed, purpose, index).

Nothing depends on how many numbers were drawn before, so worker processes, resuming and the
order of execution cannot change a run. A purpose always has the same number of indices: numpy reads a missing one as 0.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch


def _sequence(run_seed: int, purpose: str, index: tuple[int, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence([run_seed, zlib.crc32(purpose.encode()), *index])


def derive_seed(run_seed: int, purpose: str, *index: int) -> int:
    """A 63-bit seed for (run_seed, purpose, index)."""
    return int(_sequence(run_seed, purpose, index).generate_state(1, np.uint64)[0] >> 1)


def generator(run_seed: int, purpose: str, *index: int) -> np.random.Generator:
    """An independent numpy generator for (run_seed, purpose, index)."""
    return np.random.Generator(np.random.Philox(_sequence(run_seed, purpose, index)))


def seed_torch(run_seed: int, purpose: str, *index: int) -> None:
    """Seeds torch's global generator, the one that layer constructors draw from."""
    torch.manual_seed(derive_seed(run_seed, purpose, *index))
