"""Games of ViZDoom, in processes that end with the one that plays them."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import sys
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Array
from lightning_rl.envs import doom_keeper

_SHARED_BYTES = 2 * 2**20  # more than a game writes; it reserves five times as much


class Doom:
    """A game of a scenario of ViZDoom's, without window and sound. It is of the process that made
    it: another one, forked from this, must make its own.

    What it writes is in a folder of its own, which goes with it.
    """

    def __init__(self, scenario: str, resolution: str, screen_format: str):
        """Starts it.

        Args:
            scenario: Its name, e.g. ``"take_cover"``; buttons and difficulty are the scenario's.
            resolution: Of the screen, e.g. ``"RES_160X120"``.
            screen_format: ``"GRAY8"``, or ``"RGB24"`` for colours in the last axis.

        Raises:
            UserError: ViZDoom cannot start, which would crash this process.
        """
        import vizdoom

        _check_shared_memory()
        self._owner = os.getpid()
        self._game: Any = vizdoom.DoomGame()
        game = self._game
        game.load_config(str(Path(vizdoom.scenarios_path, f"{scenario}.cfg")))
        folder = tempfile.mkdtemp(prefix="lightning_rl-doom-")
        game.set_vizdoom_path(_launcher(folder, vizdoom.exe_path))
        game.set_doom_config_path(str(Path(folder, "vizdoom.ini")))
        game.set_screen_resolution(getattr(vizdoom.ScreenResolution, resolution))
        game.set_screen_format(getattr(vizdoom.ScreenFormat, screen_format))
        game.set_mode(vizdoom.Mode.PLAYER)
        game.set_window_visible(False)
        game.set_sound_enabled(False)
        game.set_episode_timeout(0)
        weakref.finalize(self, _end, game, self._owner)
        game.init()
        self._screen = self._now()

    def begin(self, seed: int) -> None:
        """Starts the episode of a seed, from 0 to 2**32 - 1."""
        self._game.set_seed(seed)
        self._game.new_episode()
        self._screen = self._now()

    def act(self, buttons: Sequence[bool], tics: int) -> int:
        """Holds the buttons for so many tics, or until the player dies; the number of tics that it
        took.
        """
        before = self._game.get_episode_time()
        self._game.make_action(buttons, tics)
        if self.alive:
            self._screen = self._now()
        return int(self._game.get_episode_time() - before)

    @property
    def running(self) -> bool:
        """Whether this process has it, and nobody has ended it."""
        return self._owner == os.getpid() and bool(self._game.is_running())

    @property
    def alive(self) -> bool:
        """Whether the episode goes on."""
        return not self._game.is_episode_finished()

    @property
    def screen(self) -> Array:
        """What the player sees, uint8; after death what was seen last."""
        return self._screen

    def _now(self) -> Array:
        return np.array(self._game.get_state().screen_buffer)

    def close(self) -> None:
        """Ends the game's process."""
        _end(self._game, self._owner)


def _launcher(folder: str, program: str) -> str:
    """A program in the folder that runs ViZDoom in the care of ``doom_keeper``; UserError where no
    program may run.

    By a shell, as the line ``#!`` of a script takes neither spaces nor long paths.
    """
    words = [sys.executable, "-I", "-S", doom_keeper.__file__, str(os.getpid()), folder, program]
    path = Path(folder, "vizdoom")
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o700)
    if not os.access(path, os.X_OK):
        shutil.rmtree(folder)
        raise UserError(
            f"ViZDoom does not start: no program may run in {Path(folder).parent}; let TMPDIR name "
            "another folder"
        )
    return str(path)


def _check_shared_memory() -> None:
    if not Path(doom_keeper.SHARED_MEMORY).is_dir():  # as on macOS
        return
    disk = os.statvfs(doom_keeper.SHARED_MEMORY)
    free = disk.f_bavail * disk.f_frsize
    if free < _SHARED_BYTES:
        raise UserError(
            f"ViZDoom does not start: {doom_keeper.SHARED_MEMORY} has {free / 2**20:.0f} MiB left, "
            f"a game takes {_SHARED_BYTES / 2**20:.0f}; play with fewer workers, or enlarge it "
            "(docker run --shm-size)"
        )


def _end(game: Any, owner: int) -> None:
    """Ends a game, unless it is the parent's of a process that was forked: there the object never
    goes, as it would wait for ever for threads that only the parent has.
    """
    if os.getpid() == owner:
        game.close()
    else:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(game))
