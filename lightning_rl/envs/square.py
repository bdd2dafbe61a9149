"""A toy task of images, which every method that sees images learns in a minute."""

from __future__ import annotations

import gymnasium
import numpy as np

from lightning_rl.core.types import Array
from lightning_rl.envs.spaces import OwnEnv, StepOutcome

_CELLS, _PIXELS = 4, 6
_MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])  # up, down, left, right
_GOAL, _AGENT = 120, 255


class Square(OwnEnv):
    """A bright square moves to a grey one.

    obs: uint8 ``[24, 24]``, a picture of 4 x 4 cells. action: 0 up, 1 down, 2 left, 3 right; the
    edges stop a move. reward: 1 where the grey square is reached, which terminates the episode;
    else 0. Both squares begin in different cells, drawn uniformly.
    """

    # As Gymnasium declares it.
    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None):
        side = _CELLS * _PIXELS
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, 255, (side, side), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(_MOVES))

    def begin(self) -> Array:
        cells = self.np_random.choice(_CELLS**2, size=2, replace=False)
        self._agent, self._goal = np.stack(np.divmod(cells, _CELLS), axis=-1)
        return self._picture()

    def step(self, action: int) -> StepOutcome:
        self._agent = np.clip(self._agent + _MOVES[action], 0, _CELLS - 1)
        reached = bool((self._agent == self._goal).all())
        return self._picture(), float(reached), reached, False, {}

    def render(self) -> Array:
        """The picture in colours that are all grey, uint8 ``[24, 24, 3]``."""
        return self._picture()[..., np.newaxis].repeat(3, axis=2)

    def _picture(self) -> Array:
        cells = np.zeros((_CELLS, _CELLS), np.uint8)
        cells[tuple(self._goal)] = _GOAL
        cells[tuple(self._agent)] = _AGENT
        return cells.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)
