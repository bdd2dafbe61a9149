"""``lightning-rl film``: an agent asked for one thing or several, side by side in a GIF, or in a window."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lightning_rl.core.console import put
from lightning_rl.core.errors import UserError
from lightning_rl.core.outputs import File, Out
from lightning_rl.core.types import Array, Episode, Request
from lightning_rl.envs.films import shown_env
from lightning_rl.envs.gym import can_film
from lightning_rl.lab.evaluate import parse_command, told
from lightning_rl.methods.base import Method
from lightning_rl.run.callbacks import play_filmed, story_of
from lightning_rl.run.loading import asked_names, full_command, load_method
from lightning_rl.run.shipped import results_folder
from lightning_rl.run.state import checkpoint_at

_GIF_WIDTH, _GIF_FPS, _GIF_FRAMES, _COLOURS, _GAP = 900, 12.5, 260, 64, 8
_STILL_S = 1.5  # how long the last frame stays
_MARK = b"lightning_rl film"


def show(arguments: argparse.Namespace) -> None:
    """Films an agent under each command, or shows it in a window."""
    path = checkpoint_at(Path(arguments.agent))
    method = load_method(path)
    method.prepare_evaluation()
    if not can_film(method.spec):
        raise UserError(f"film: '{method.gamename}' gives no pictures; choose an agent of another environment")
    given = [parse_command(text, asked_names(method)) for text in arguments.commands or [None]]
    if arguments.window:
        with Window() as window:
            for each in given:
                _report(each, _play(method, each, arguments.seed, window.show)[0])
        return
    out = Out(arguments.out or results_folder(path) / "film.gif", force=arguments.force)
    if out.path.suffix != ".gif":
        raise UserError(f"--out '{out.path}': a film of several commands is a GIF; e.g. film.gif")
    out.check(out.path, _owned)  # before the work
    reels, fps = [], 30.0
    for each in given:
        frames: list[Array] = []
        episode, fps = _play(method, each, arguments.seed, frames.append)
        _report(each, episode)
        reels.append(frames)
    content = gif(reels, fps)
    out.write(File(out.path, content, _owned))
    put(f"film: {out.path} ({len(content):,} bytes)")


def _play(
    method: Method, given: Mapping[str, float], seed: int, sink: Callable[[Array], None]
) -> tuple[Episode, float]:
    """An episode, whose frames go to ``sink``, and the frames of a second."""
    request = Request("a film", seed, "sampled", full_command(method, given))
    with shown_env(method.spec, story_of(method, request, told(given)), sink) as env:
        return play_filmed(method, request, env), env.fps


def _report(given: Mapping[str, float], episode: Episode) -> None:
    asked = ", ".join(f"{name}={value:g}" for name, value in given.items()) or "its own command"
    put(f"{asked}: return {episode.ret:.1f} in {episode.length} steps")


def _owned(path: Path) -> bool:
    return _MARK in path.read_bytes()


def side_by_side(reels: Sequence[Sequence[Array]]) -> list[Array]:
    """The frames of several films as one; those that end sooner keep their last frame."""
    gap = np.full((reels[0][0].shape[0], _GAP, 3), 255, dtype=np.uint8)
    frames = []
    for k in range(max(map(len, reels))):
        row = [part for reel in reels for part in (gap, reel[min(k, len(reel) - 1)])]
        frames.append(np.concatenate(row[1:], axis=1))
    return frames


def gif(reels: Sequence[Sequence[Array]], fps: float) -> bytes:
    """A small GIF: at most 900 pixels across, 260 frames, 12.5 of them a second, 64 colours."""
    every = max(1, round(fps / _GIF_FPS), -(-max(map(len, reels)) // _GIF_FRAMES))
    reels = [[*reel[:-1:every], reel[-1]] for reel in reels]
    pictures = [_shrunk(frame) for frame in side_by_side(reels)]
    some = np.concatenate([np.asarray(picture) for picture in pictures[:: 1 + len(pictures) // 8]])
    palette = Image.fromarray(some).quantize(_COLOURS, dither=Image.Dither.NONE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    duration = [round(1000 * every / fps)] * (len(frames) - 1) + [round(1000 * _STILL_S)]
    file = io.BytesIO()
    frames[0].save(
        file, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0, optimize=True, comment=_MARK
    )
    return file.getvalue()


def _shrunk(frame: Array) -> Image.Image:
    height, width = frame.shape[:2]
    share = min(1.0, _GIF_WIDTH / width)
    return Image.fromarray(frame).resize((round(width * share), round(height * share)), Image.Resampling.LANCZOS)


class Window:
    """Shows frames on the screen as they come, in the environment's time; UserError where there is no display."""

    def __init__(self) -> None:
        if sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
            raise UserError("--window: there is no display here (DISPLAY is not set); leave it out, for a film in a file")
        self._screen: Any = None
        self._clock: Any = None

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        import pygame

        pygame.quit()

    def show(self, frame: Array) -> None:
        """The next frame; KeyboardInterrupt where the user has closed the window."""
        import pygame  # of the environments; it prints a greeting unless it is asked not to

        size = frame.shape[1::-1]
        if self._screen is None or self._screen.get_size() != size:
            pygame.display.init()
            self._screen, self._clock = pygame.display.set_mode(size), pygame.time.Clock()
            pygame.display.set_caption("lightning_rl")
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            raise KeyboardInterrupt
        self._screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(50)
