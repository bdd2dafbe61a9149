"""Sets of vector returns: which of them no other beats, and how good a whole set is.

Points are ``[E, K]``, ``E`` returns of ``K`` objectives, of which more is better.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_TINY = 1e-8  # divisor of an objective in which the points do not differ


def non_dominated(points: Points) -> Mask:
    """Whether no other point is as good in each objective and better in one, ``[E]``.

    Of equal points all are, or none.
    """
    as_good = (points[:, None] >= points).all(-1)
    better = (points[:, None] > points).any(-1)
    return ~np.logical_or.reduce(as_good & better, axis=0)


def in_ranges(points: Points) -> Points:
    """The points in units of each objective's range, from 0 to 1."""
    low = points.min(0)
    return (points - low) / (points.max(0) - low + _TINY)


def crowding_distance(points: Points) -> Points:
    """How far apart the neighbours of each point are, summed over objectives, ``[E]``.

    In units of each objective's range; a point at an end counts 1 there. From NSGA-II (Deb et al.
    2002), as PCN has it (Reymond et al. 2022, arXiv 2204.05036).
    """
    points = in_ranges(points)
    order = points.argsort(0, kind="stable")
    ranked = np.take_along_axis(points, order, 0)
    apart = np.ones_like(points)
    apart[1:-1] = ranked[2:] - ranked[:-2]
    crowding = np.empty_like(points)
    np.put_along_axis(crowding, order, apart, 0)
    return crowding.sum(-1)


def hypervolume(points: Points, reference: Points) -> float:
    """The volume of what is dominated by a point and dominates the ``reference`` ``[K]``.

    Zitzler and Thiele 1999; by slices along the last objective, which takes long for many points of
    more than four objectives.
    """
    points = points[(points > reference).all(-1)]
    if not len(points):
        return 0.0
    if points.shape[1] == 1:
        return float(points.max() - reference[0])
    points = points[non_dominated(points)]
    points = points[points[:, -1].argsort()[::-1]]
    floors = np.append(points[1:, -1], reference[-1])
    volume = 0.0
    for count, height in enumerate(points[:, -1] - floors, 1):
        if height > 0:
            volume += height * hypervolume(points[:count, :-1], reference[:-1])
    return float(volume)
