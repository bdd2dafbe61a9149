"""Pictures of boards of cells, for films of episodes and of what a model imagines."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from lightning_rl.core.types import Array

Colour = tuple[int, int, int]
Layer = tuple[Tensor, Colour]
"""Presence ``[height, width]`` in 0 .. 1 of something in each cell, and its colour."""

EMPTY, WALL, LINE = (240, 240, 235), (60, 60, 70), 200
BLUE, GREEN, RED, GREY = (50, 110, 220), (60, 170, 90), (200, 70, 60), (120, 120, 125)
PIXELS = 32
"""Height and width of a cell."""


def picture(*layers: Layer, dot: Layer | None = None) -> Array:
    """A picture uint8 ``[height, width, 3]`` of layers, the last on top, with lines between the
    cells.

    dot: a layer above them that fills the middle of a cell alone.
    """
    height, width = layers[0][0].shape
    cells = np.broadcast_to(np.array(EMPTY, dtype=np.float64), (height, width, 3))
    for layer in layers:
        cells = _covered(cells, layer)
    board = _magnified(cells)
    if dot is not None:
        place = np.abs(np.arange(PIXELS) - PIXELS / 2) < PIXELS / 4
        rows, columns = np.tile(place, height), np.tile(place, width)
        inside = rows[:, None] & columns
        board[inside] = _magnified(_covered(cells, dot))[inside]
    return board


def _covered(cells: Array, layer: Layer) -> Array:
    presence, colour = layer
    share = presence.detach().clamp(0, 1).double().numpy()[..., None]
    return np.asarray((1 - share) * cells + share * np.array(colour, dtype=np.float64))


def _magnified(cells: Array) -> Array:
    board = cells.round().astype(np.uint8).repeat(PIXELS, axis=0).repeat(PIXELS, axis=1)
    board[::PIXELS] = board[:, ::PIXELS] = LINE
    return board
