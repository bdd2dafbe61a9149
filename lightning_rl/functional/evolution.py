"""Evolution strategies: noise, score transforms and search directions.

``P`` scored candidates, ``D`` parameters. Scores are to be maximised; a direction is what is to be
added to the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lightning_rl.core.seeding import generator

_BETTER = 1e-6  # a score counts as better only if it is above the baseline by more than this


def standard_noise(run_seed: int, generation: int, members: Sequence[int], size: int) -> Tensor:
    """Standard normal ``[len(members), size]``; a member's row is a function of (run_seed,
    generation, member) alone.
    """
    rows = [
        generator(run_seed, "evolution noise", generation, member).standard_normal(size, "float32")
        for member in members
    ]
    return torch.stack([torch.from_numpy(row) for row in rows]) if rows else torch.empty(0, size)


def best_of_pair(plus: Tensor, minus: Tensor) -> tuple[Tensor, Tensor]:
    """The better score of each mirrored pair and its sign, ``[P]`` each; a tie goes to plus.

    The published form of "mirrored sampling": the worse half of the evaluations is thrown away, so
    this is no antithetic estimate of a gradient.
    """
    return torch.maximum(plus, minus), torch.where(minus > plus, -1.0, 1.0).to(plus)


def linear(scores: Tensor, _: float = 0.0) -> Tensor:
    """0 for the worst to 1 for the best, proportional."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low + 1e-9)


def rank(scores: Tensor, _: float = 0.0) -> Tensor:
    """0 for the worst to 1 for the best, by rank."""
    count = len(scores)
    return _by_rank(scores, torch.arange(count - 1, -1, -1) / (count - 1))


def nes_utilities(scores: Tensor) -> Tensor:
    """``max(0, ln(P / 2 + 1) - ln r)`` for rank r, scaled to sum 1, less 1 / P (Wierstra et al.
    2014, section 3.1).
    """
    return _by_rank(scores, _log_utilities(len(scores)) - 1 / len(scores))


def nes(scores: Tensor, _: float = 0.0) -> Tensor:
    """``nes_utilities`` scaled to 1 for the best."""
    u = _log_utilities(len(scores)) - 1 / len(scores)
    return _by_rank(scores, u / u[0])


def nes_unnormalised(scores: Tensor, _: float = 0.0) -> Tensor:
    """As ``nes`` without the shift: 1 for the best, 0 for the worse half."""
    u = _log_utilities(len(scores))
    return _by_rank(scores, u / u[0])


def single_best(scores: Tensor, _: float = 0.0) -> Tensor:
    """1 for the best (divided among equal best ones), 0 for the others."""
    return _by_rank(scores, (torch.arange(len(scores)) == 0).double())


def single_better(scores: Tensor, baseline: float) -> Tensor:
    """As ``single_best``, but all 0 if no score is above the baseline."""
    return single_best(scores) * (scores.max() > baseline + _BETTER)


def all_better_max(scores: Tensor, baseline: float) -> Tensor:
    """The improvement over the baseline, 0 where there is none, scaled to 1 for the best."""
    w = _improvement(scores, baseline)
    return w / w.max() if w.max() > 0 else w


def all_better_sum(scores: Tensor, baseline: float) -> Tensor:
    """The improvement over the baseline, 0 where there is none, scaled to sum 1."""
    w = _improvement(scores, baseline)
    return w / w.sum() if w.max() > 0 else w


TRANSFORMS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "linear": linear,
    "rank": rank,
    "nes": nes,
    "nes_unnormalised": nes_unnormalised,
    "single_best": single_best,
    "single_better": single_better,
    "all_better_max": all_better_max,
    "all_better_sum": all_better_sum,
}
"""Score transforms: weights ``[P]`` from scores ``[P]`` and the mean score of the unperturbed
parameters.

The order is that of the numbers 0 to 7 in the code of arXiv 2202.02790. Equal scores share their
weights equally.
"""

NEED_TWO = ("linear", "rank", "nes")
"""Transforms that compare candidates with each other: for a single candidate they give 0, or
divide by 0.
"""


def _log_utilities(count: int) -> Tensor:
    ranks = torch.arange(1, count + 1, dtype=torch.float64)
    u = (math.log(count / 2 + 1) - ranks.log()).clamp(min=0)
    return u / u.sum()


def _by_rank(scores: Tensor, values: Tensor) -> Tensor:
    """``values[0]`` for the best score and so on; equal scores share their mean. ``[P]``, at
    least single precision.
    """
    order = scores.argsort(descending=True, stable=True)
    groups, inverse = torch.unique(scores, return_inverse=True)
    total = torch.zeros(len(groups), dtype=torch.float64).index_add_(
        0, inverse[order], values.double()
    )
    mean = total / torch.bincount(inverse, minlength=len(groups))
    return mean[inverse].to(scores.dtype if scores.is_floating_point() else torch.float32)


def _improvement(scores: Tensor, baseline: float) -> Tensor:
    share = (scores - baseline) / (scores.max() - baseline + 1e-9)
    return torch.where(scores > baseline + _BETTER, share, 0.0)


def weighted_noise(weights: Tensor, noise: Tensor) -> Tensor:
    """``sum_i w_i eps_i`` ``[D]``, the published direction, for noise ``[P, D]`` as it was added
    (with its sign and scale).

    Divided neither by the scale nor by P.
    """
    return weights.to(noise.dtype) @ noise


def antithetic_gradient(plus: Tensor, minus: Tensor, noise: Tensor, std: float) -> Tensor:
    """``1 / (2 P std) sum_i (f_i+ - f_i-) z_i`` ``[D]`` (arXiv 1703.03864) for standard noise z
    ``[P, D]``.
    """
    return (plus - minus).to(noise.dtype) @ noise / (2 * len(noise) * std)


def snes_directions(utilities: Tensor, noise: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    """Natural gradients for mean and log std, ``[D]`` each (Schaul et al. 2011; Wierstra et al.
    2014, algorithm 6).

    utilities ``[P]``, standard noise ``[P, D]``, std ``[D]``. Steps of 1 and of ``snes_std_rate``
    are the papers'.
    """
    u = utilities.to(noise.dtype)
    return std * (u @ noise), 0.5 * (u @ (noise.square() - 1))


def snes_std_rate(size: int) -> float:
    """The papers' step for the log std: ``(3 + ln D) / (5 sqrt(D))``."""
    return (3 + math.log(size)) / (5 * math.sqrt(size))
