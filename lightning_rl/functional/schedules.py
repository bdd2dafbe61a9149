"""Schedules over the course of a training."""

from __future__ import annotations


def ramp(x: float, start: float, end: float) -> float:
    """0 up to ``start``, then linearly to 1 at ``end``, where it stays; ``start`` must be below ``end``."""
    return min(max((x - start) / (end - start), 0.0), 1.0)
