"""Calibration makes what is asked of a policy a return.

A command of RCP-A counts in standard deviations of advantages, one of RCP-R in discounted returns,
and none of them is what an episode will return. Calibration plays a trained policy under commands
over their range, with more and less guidance, fits the mean return as a monotone function of the
command, and keeps the inverse in the checkpoint: ``return=150`` then means the same for all of
them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from lightning_rl.core.console import Advance, counting, silent
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.files import refuse_foreign, write_plain
from lightning_rl.core.lines import say
from lightning_rl.core.types import Array, Request
from lightning_rl.functional.ranks import rank_correlation
from lightning_rl.methods.base import Method
from lightning_rl.nets.command import Calibration
from lightning_rl.rollouts.collected import warm_up_requests
from lightning_rl.rollouts.data_module import evaluation_requests
from lightning_rl.run.checkpoints import read_checkpoint
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import is_shipped
from lightning_rl.run.state import WEIGHTS, read_state

GUIDANCES = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Guidances that calibration tries; it takes the lowest that suffices, as episodes of one
command vary more with guidance.
"""

_COARSE, _COARSE_EPISODES = 17, 16  # commands for each guidance, episodes for each of them
_ROUNDS, _FINE_EPISODES = 4, 24  # of a command for each point of the table, episodes for each
_BEYOND = 0.25  # commands reach this share of their range below what training saw
_WINDOW = 48  # episodes of neighbouring commands that one mean is of, at least
_WINDOW_SHARE = 0.1  # ... and of all episodes

CALIBRATION_EPISODES = (
    len(GUIDANCES) * _COARSE * _COARSE_EPISODES + _ROUNDS * Calibration.POINTS * _FINE_EPISODES
)
"""The most episodes that a calibration plays."""


@dataclass
class Trials:
    """Episodes of commands of one guidance."""

    first: list[float] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    def follow(self) -> bool:
        """Whether returns rise with commands, beyond 3 standard errors of a rank correlation."""
        first, returns = np.array(self.first), np.array(self.returns)
        return rank_correlation(first, returns) * len(returns) ** 0.5 > 3

    def fit(self) -> tuple[Array, Array]:
        """First numbers of commands in ascending order, and the mean return as an increasing
        function of them.

        A running mean over episodes in the order of their commands, made monotone by isotonic
        regression. A constant stretch of that is one point, at the mean of its commands; between
        points it is linear.
        """
        from scipy.optimize import isotonic_regression

        order = np.argsort(self.first, kind="stable")
        size = max(_WINDOW, round(_WINDOW_SHARE * len(self.first)))

        def running_mean(values: list[float]) -> Array:
            return np.convolve(np.asarray(values)[order], np.full(size, 1 / size), "valid")

        first, level = running_mean(self.first), running_mean(self.returns)
        blocks = isotonic_regression(level).blocks

        def block_mean(values: Array) -> Array:
            return np.add.reduceat(values, blocks[:-1]) / np.diff(blocks)

        return block_mean(first), block_mean(level)


def table(tried: Mapping[float, Trials], floor: float) -> tuple[Array, Array, Array]:
    """Returns from ``floor`` to the highest, and for each the first number of a command and the
    least guidance that obtain it.

    They begin at the lowest return that any command obtains where that is above ``floor``, or all
    of them are below it. A return that no guidance reaches gets the command, and its guidance,
    whose return is the nearest.
    """
    fits = {guidance: trials.fit() for guidance, trials in sorted(tried.items())}
    lowest = min(level[0] for _, level in fits.values())
    highest = max(level[-1] for _, level in fits.values())
    if lowest < floor < highest:
        lowest = floor
    asked = np.linspace(lowest, highest, Calibration.POINTS)
    first = np.zeros(len(asked))
    guided = np.zeros(len(asked))
    missed = np.full(len(asked), np.inf)
    for guidance, (commands, level) in fits.items():
        off = np.abs(asked - asked.clip(level[0], level[-1]))
        better = off < missed
        first[better] = np.interp(asked[better], level, commands)
        guided[better] = guidance
        missed[better] = off[better]
    return asked, first, guided


def calibrate(method: Method, num_workers: int = 0, advance: Advance = silent) -> Calibration:
    """Fits the map from the return that is asked for to the command, and the guidance, that obtain
    it.

    It is played on environment seeds of its own, actions sampled, about 4,500 episodes: first
    commands over their whole range with each guidance, then those of the table again and again.
    What can be asked for lies between what uniformly random actions get (in episodes as a run
    begins with), less a standard deviation, and what the best command gets; where that is less,
    between what the worst and the best command get. Numbers beside the first of a command stay
    those of the checkpoint, as an export has them.

    Args:
        method: with a policy that takes commands.
        num_workers: processes that play; results do not depend on it.
        advance: is called with how many more episodes were played, and of which round.
    """
    require("a calibration", "scipy")
    low, high = method.command_limits() or (0.0, 0.0)
    rest = (method.first_command() or ())[1:]
    parameters = method.policy.state_dict()
    tried = {guidance: Trials() for guidance in GUIDANCES}
    played = 0
    with contextlib.closing(method.collector(num_workers)) as collector:
        episodes = collector.collect(warm_up_requests(method.seed, 64), parameters, version=0)
        uniform = [episode.ret for episode in episodes]
        floor = float(np.mean(uniform) - np.std(uniform))
        low -= _BEYOND * (high - low)
        if method.command_names[0] == "return":
            # The best episodes, which UDRL keeps, are no measure of what can be asked for.
            low = min(low, floor)
        asked = [(c, w) for w in GUIDANCES for c in np.linspace(low, high, _COARSE).tolist()]
        for number in range(1 + _ROUNDS):
            count = _FINE_EPISODES if number else _COARSE_EPISODES
            requests: list[Request] = []
            for first, guidance in asked:
                start = played + len(requests)
                requests += evaluation_requests(
                    method.seed, "calibration", start, count, (first, *rest), "sampled", guidance
                )
            for episode in collector.collect(requests, parameters, version=0):
                trials = tried[episode.request.guidance or 0.0]
                trials.first.append((episode.request.command or ())[0])
                trials.returns.append(episode.ret)
            played += len(requests)
            advance(len(requests), f"round {number + 1} of {1 + _ROUNDS}")
            _, commands, guidances = table(tried, floor)
            asked = list(zip(commands.tolist(), guidances.tolist(), strict=True))
    if not any(trials.follow() for trials in tried.values() if trials.first):
        say(
            "the command has no effect here: whatever is asked for, the same is obtained but for "
            "chance; train it longer",
            error=True,
        )
    calibration = Calibration()
    calibration.set(*table(tried, floor))
    return calibration


def calibrate_checkpoint(path: Path, num_workers: int) -> tuple[float, float]:
    """Makes the checkpoint at ``path`` take returns as commands, see ``calibrate``; the lowest and
    the highest of them.

    The table is written into the checkpoint, of which nothing else changes. UserError where a run
    is at work in its folder, or the file has other weights when the table is there: that is of
    those which were played.
    """
    if is_shipped(path):
        raise UserError(
            "--calibrate: the agents of the package are what they are; give a checkpoint of your "
            "own"
        )
    if path.name == WEIGHTS:
        raise UserError(
            "--calibrate: an exported policy stays as it is; calibrate the checkpoint, then export"
        )
    elsewhere = "copy the checkpoint to a folder of your own and calibrate that"
    if read_state(path.parent)[0] == "running":
        raise UserError(
            f"--calibrate: a run is at work in '{path.parent}'; wait until it has ended, or "
            f"{elsewhere}"
        )
    refuse_foreign(path)
    method = load_method(path)
    if method.objectives:
        raise UserError(
            f"--calibrate: {method.implementation} is asked for returns as they are; leave it out, "
            "and see with --command sweep what it obtains"
        )
    if method.command_limits() is None:
        raise UserError(f"--calibrate: the policy of '{path}' takes no command; leave it out")
    with counting(CALIBRATION_EPISODES, "episodes") as advance:
        calibration = calibrate(method, num_workers, advance)
    limits = calibration.limits
    if limits is None:
        raise UserError(
            f"--calibrate: every command of '{path}' obtains the same return; train it longer"
        )
    checkpoint = read_checkpoint(path)
    played = method.state_dict()
    for name, value in checkpoint["state_dict"].items():
        if name not in played or not torch.equal(value, played[name]):
            raise UserError(
                f"--calibrate: '{path}' has other weights than those that were played; {elsewhere}"
            )
    for name, value in calibration.state_dict().items():
        checkpoint["state_dict"][f"calibration.{name}"] = value
    write_plain(path, checkpoint)
    return limits
