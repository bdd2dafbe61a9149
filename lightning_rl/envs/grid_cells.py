"""What the square grids share: cell tables and pictures. Cells are numbered row by row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.types import Array

CELL_PIXELS = 32
_MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1))  # up, left, down, right
_EMPTY = (240, 240, 235)


def neighbours(size: int) -> Tensor:
    """The cells ``[cells, 4]`` up, left, down and right of each; ``cells`` where that is off the grid."""

    def cell(row: int, column: int) -> int:
        return row * size + column if 0 <= row < size and 0 <= column < size else size * size

    rows = [[cell(r + dr, c + dc) for dr, dc in _MOVES] for r in range(size) for c in range(size)]
    return torch.tensor(rows)


def moved(size: int) -> Tensor:
    """The cell ``[cells, 5]`` that each action (0 stay, 1 up, 2 left, 3 down, 4 right) leads to without walls."""
    here = torch.arange(size * size).unsqueeze(1)
    around = neighbours(size)
    return torch.cat([here, torch.where(around < size * size, around, here)], dim=1)


def paint(*layers: tuple[Tensor, tuple[int, int, int]]) -> Array:
    """A picture ``[H, W, 3]`` of layers (presence ``[H, W]`` in 0 .. 1, colour), the last on top; empty cells are light."""
    height, width = layers[0][0].shape
    picture = np.broadcast_to(np.array(_EMPTY, dtype=np.float64), (height, width, 3)).copy()
    for presence, colour in layers:
        share = presence.detach().clamp(0, 1).double().numpy()[..., None]
        picture = (1 - share) * picture + share * np.array(colour, dtype=np.float64)
    return picture.round().astype(np.uint8)


def enlarge(picture: Array, pixels: int) -> Array:
    """Each cell as a square of ``pixels`` with a grid line around it."""
    big = picture.repeat(pixels, axis=0).repeat(pixels, axis=1)
    big[::pixels] = big[:, ::pixels] = 200
    return big
