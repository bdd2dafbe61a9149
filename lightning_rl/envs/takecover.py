"""TakeCover, the environment of images in the paper on upside-down RL: a scenario of ViZDoom's."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import EzPickle

from lightning_rl.core.checks import (
    NOT_RESET,
    check_render_mode,
    whole_number,
)
from lightning_rl.core.errors import UserError
from lightning_rl.core.extras import require
from lightning_rl.core.types import Array
from lightning_rl.envs.doom import Doom
from lightning_rl.envs.spaces import STEPS, OwnEnv, StepOutcome, checked_action

TICS = 2100
"""The longest episode, a minute of the game's time."""
_TICS_A_SECOND = 35
_MOVES = ((True, False), (False, True))  # left, right


class TakeCover(OwnEnv, EzPickle):
    """Monsters at the far wall throw fireballs, ever more of them; the player can step aside.

    obs: uint8 ``[120, 160]``, the grey screen; at death the screen before the last action.
    action: 0 goes left, 1 goes right, for ``frame_skip`` tics (of 35 a second).
    reward: the number of tics that the action took; ``info["lightning_rl/steps"]`` has it, too.

    An episode terminates at death and is truncated after 2,100 tics. It is a function of the seed
    and the actions alone. The game starts, in a process of its own, at the first reset, in the
    process that resets; pickles and copies are environments that have not started.
    """

    # As Gymnasium declares it.
    metadata = {"render_modes": ["rgb_array"], "render_fps": _TICS_A_SECOND}  # noqa: RUF012

    def __init__(self, frame_skip: int = 1, render_mode: str | None = None):
        EzPickle.__init__(self, frame_skip, render_mode)
        require("TakeCover", "vizdoom")
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.frame_skip = whole_number("TakeCover: frame_skip", frame_skip, 1, TICS)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": _TICS_A_SECOND / self.frame_skip}
        self.observation_space = gymnasium.spaces.Box(0, 255, (120, 160), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(_MOVES))
        self._games: list[Doom] = []  # what is seen and, for films, the same in colour
        self._tics = 0

    def begin(self) -> Array:
        if not self._started:
            self._games = [Doom("take_cover", "RES_160X120", "GRAY8")]
            if self.render_mode is not None:
                self._games.append(Doom("take_cover", "RES_640X480", "RGB24"))
        number = int(self.np_random.integers(2**32))
        for game in self._games:
            game.begin(number)
        self._tics = 0
        return self._games[0].screen

    @property
    def _started(self) -> bool:
        """Whether there is something to play: a forked process has nothing of its parent's."""
        return bool(self._games) and all(game.running for game in self._games)

    def require_begun(self) -> None:
        if not self._started:
            raise UserError(NOT_RESET)

    def step(self, action: Any) -> StepOutcome:
        self.require_begun()
        move = _MOVES[checked_action(self.action_space, action)]
        most = min(self.frame_skip, TICS - self._tics)
        tics, *_ = [game.act(move, most) for game in self._games]
        self._tics += tics
        terminated = not self._games[0].alive
        truncated = not terminated and self._tics >= TICS
        return self._games[0].screen, float(tics), terminated, truncated, {STEPS: tics}

    def render(self) -> Array:
        """The screen in colour, uint8 ``[480, 640, 3]``."""
        if self.render_mode is None:
            raise UserError("TakeCover: make it with render_mode='rgb_array' to render it")
        self.require_begun()
        return self._games[1].screen

    def close(self) -> None:
        for game in self._games:
            game.close()
        self._games = []
