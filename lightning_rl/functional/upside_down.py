"""Commands of Upside-Down RL (Srivastava et al. 2019, arXiv 1912.02877).

A command is ``(return, horizon)``: "collect this return within this many steps".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]


class CommandRange(NamedTuple):
    """Where exploratory commands come from: return in ``[low, high]``, one horizon for the iteration."""

    low: float
    high: float
    horizon: float


def command_range(returns: Floats, lengths: Ints, max_return: float) -> CommandRange:
    """Range of exploratory commands from the best episodes (paper section 2.2.4).

    returns ``[n]``, lengths ``[n]`` of those episodes. The return is asked uniformly from
    ``[M, M + S]`` with the mean ``M`` and the population standard deviation ``S``, the horizon is the
    mean length, rounded. Both ends are capped at ``max_return``, which the paper does not do: a
    return that the environment cannot give asks the network to extrapolate.
    """
    if returns.shape != lengths.shape or returns.ndim != 1 or returns.size == 0:
        raise ValueError(f"returns and lengths must share a shape [n], n > 0: got {returns.shape} and {lengths.shape}")
    mean, std = float(np.mean(returns)), float(np.std(returns))
    return CommandRange(min(mean, max_return), min(mean + std, max_return), float(round(float(np.mean(lengths)))))


def draw_commands(among: CommandRange, uniform: Floats) -> Floats:
    """First commands ``[n, 2]`` from uniform noise ``[n]`` in [0, 1): one return per episode, one horizon for all."""
    desired = among.low + (among.high - among.low) * uniform
    return np.stack([desired, np.full_like(desired, among.horizon)], axis=-1)


def next_command(command: Floats, reward: Floats, max_return: float) -> Floats:
    """The command after one step (paper Algorithm 2), for a batch of episodes.

    command ``[B, 2]``, reward ``[B]`` -> ``[B, 2]``: ``return <- min(return - reward, max_return)``,
    ``horizon <- max(horizon - 1, 1)``.
    """
    if command.ndim != 2 or command.shape[1] != 2 or reward.shape != command.shape[:1]:
        raise ValueError(f"need command [B, 2] and reward [B], got {command.shape} and {reward.shape}")
    return np.stack([np.minimum(command[:, 0] - reward, max_return), np.maximum(command[:, 1] - 1, 1)], axis=-1)


def trailing_end(start: Ints, length: Ints, uniform: Floats) -> Ints:
    """Segments run to the end of the episode, as in all the paper's experiments."""
    del start, uniform
    return length


def any_end(start: Ints, length: Ints, uniform: Floats) -> Ints:
    """Segment ends drawn uniformly from ``start + 1 .. length``; uniform in [0, 1)."""
    return start + 1 + (uniform * (length - start)).astype(start.dtype)


SEGMENTS = {"trailing": trailing_end, "any": any_end}
