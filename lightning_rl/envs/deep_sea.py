"""Deep Sea Treasure (Vamplew et al. 2011), the two-objective task with a known front."""

from __future__ import annotations

from typing import Literal

import gymnasium
import numpy as np

from lightning_rl.core.types import Array
from lightning_rl.envs.spaces import OwnEnv, StepOutcome

_SIDE, _PIXELS = 11, 24
_DEPTHS = (1, 2, 3, 4, 4, 4, 7, 7, 9, 10)  # of the sea floor in the columns from the left
_TREASURES = {
    # with the values of Yang et al. 2019 (arXiv 1908.08342), and of Vamplew et al. 2011
    "convex": (0.7, 8.2, 11.5, 14.0, 15.1, 16.1, 19.6, 20.3, 22.4, 23.7),
    "concave": (1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 24.0, 50.0, 74.0, 124.0),
}
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right
_SEA, _ROCK, _GOLD, _BOAT = (70, 120, 170), (60, 52, 46), (226, 178, 60), (240, 240, 240)


class DeepSeaTreasure(OwnEnv):
    """A submarine looks for treasures, of which the larger ones are further away.

    obs: float32 ``[2]``, depth and distance from the left, from 0 to 1. action: 0 up, 1 down,
    2 left, 3 right; rock and edges stop a move. reward: that of ``info["reward_vector"]`` summed,
    which is (treasure, time): the treasure that is reached, which terminates the episode, and -1 a
    step. Episodes begin at the top left.

    front: ``convex``, where every treasure is best for some weights of the two, or ``concave``,
    where only the nearest and the furthest are.
    """

    # As Gymnasium declares it.
    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self, front: Literal["convex", "concave"] = "convex", render_mode: str | None = None
    ):
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(_MOVES))
        self._treasures = _TREASURES[front]
        low, high = np.array([0.0, -1.0]), np.array([max(self._treasures), -1.0])
        self.reward_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self._row = self._column = 0

    def begin(self) -> Array:
        self._row = self._column = 0
        return self._seen()

    def step(self, action: int) -> StepOutcome:
        down, right = _MOVES[action]
        row, column = self._row + down, self._column + right
        if 0 <= row < _SIDE and 0 <= column < _SIDE and row <= _floor(column):
            self._row, self._column = row, column
        found = column < len(_DEPTHS) and (self._row, self._column) == (_floor(column), column)
        treasure = self._treasures[self._column] if found else 0.0
        vector = np.array([treasure, -1.0])
        return self._seen(), float(vector.sum()), found, False, {"reward_vector": vector}

    def render(self) -> Array:
        """A picture, uint8 ``[264, 264, 3]``."""
        cells = np.full((_SIDE, _SIDE, 3), _SEA, np.uint8)
        for column in range(len(_DEPTHS)):
            cells[_floor(column) :, column] = _ROCK
            cells[_floor(column), column] = _GOLD
        cells[self._row, self._column] = _BOAT
        return cells.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)

    def _seen(self) -> Array:
        return np.array([self._row, self._column], np.float32) / (_SIDE - 1)


class DeepSeaTreasureConcave(DeepSeaTreasure):
    """The same with the treasures of Vamplew et al. 2011."""

    def __init__(self, render_mode: str | None = None):
        super().__init__("concave", render_mode)


def _floor(column: int) -> int:
    """The lowest row of a column that can be reached: where its treasure is, if it has one."""
    return _DEPTHS[column] if column < len(_DEPTHS) else _SIDE - 1
