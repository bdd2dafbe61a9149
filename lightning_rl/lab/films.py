"""``lightning-rl film``: an agent asked for one thing or several, in a GIF, as strips of frames
in a PNG, or in a window.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from lightning_rl.core.console import put
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import three_digits
from lightning_rl.core.outputs import File, Out, head
from lightning_rl.core.types import Array, Episode, Request
from lightning_rl.envs.films import Filmed, shown_env
from lightning_rl.envs.gym import can_film
from lightning_rl.lab.words import asked_text, parse_command
from lightning_rl.methods.base import Method
from lightning_rl.run.asking import asked_names, full_command
from lightning_rl.run.callbacks import play_filmed, story_of
from lightning_rl.run.loading import load_method
from lightning_rl.run.shipped import results_folder
from lightning_rl.run.state import checkpoint_at

FPS = 12.5  # of a film in a file; drawing a frame takes longer than playing its step
_GIF_WIDTH, _GIF_FRAMES = 900, 260
_STRIP_WIDTH, _STRIP_FRAMES = 1800, 6
_COLOURS, _GAP = 64, 8
_FLAT = Image.Dither.NONE
_STILL_S = 3.0  # how long the last frame stays
_MARK = b"lightning_rl film"
_INSTEAD = "leave it out, for a film in a file"


def show(arguments: Namespace) -> None:
    """Films an agent under each command, or shows it in a window."""
    path = checkpoint_at(Path(arguments.agent))
    method = load_method(path)
    if not can_film(method.spec):
        raise UserError(
            f"film: '{method.gamename}' gives no pictures; choose an agent of another environment"
        )
    given = [parse_command(text, asked_names(method)) for text in arguments.commands or [None]]
    scenes = []
    for each in given:
        command, guidance = full_command(method, each)
        mode, seed = method.action_mode, arguments.seed
        scenes.append((Request("a film", seed, mode, command, guidance=guidance), each))
    out = Out(arguments.out or results_folder(path) / "film.gif", force=arguments.force)
    form = None if arguments.window else begin_film(out)
    method.prepare_evaluation()
    if form is None:
        show_scenes(method, scenes, _report)
    else:
        write_film(out, film_scenes(method, scenes, form, _report))


Form = Callable[[Sequence[Sequence[Array]], float], bytes]
"""(frames of each film, frames a second) -> the content of a file."""
Scene = tuple[Request, Mapping[str, float]]
"""An episode, and what is asked for, by name."""
Told = Callable[[Mapping[str, float], Episode], None]
"""Is told of each episode of a scene."""


def show_scenes(method: Method, scenes: Iterable[Scene], told: Told) -> None:
    """Plays scenes in a window, one after another, or as far as the user looks on."""
    with contextlib.suppress(WindowClosedError), Window() as window:
        for request, given in scenes:
            with _stage(method, request, given, window.show) as env:
                window.fps = env.fps
                told(given, play_filmed(method, request, env))
            window.rest()


def film_scenes(method: Method, scenes: Iterable[Scene], form: Form, told: Told) -> bytes:
    """A film of scenes, as a file has it."""
    reels = []
    fps = 30.0
    for request, given in scenes:
        frames: list[Array] = []
        with _stage(method, request, given, frames.append, FPS) as env:
            told(given, play_filmed(method, request, env))
            fps = env.fps
        reels.append(frames)
    return form(reels, fps)


def begin_film(out: Out) -> Form:
    """How a film of this name is made; UserError, before the work, where it cannot be written."""
    form: Form | None = {".gif": gif, ".png": strips}.get(out.path.suffix)
    if form is None:
        raise UserError(
            f"--out '{out.path}': films are written as GIF, or as strips of frames in a PNG; e.g. "
            "film.gif"
        )
    out.check(out.path, _owned)
    return form


def write_film(out: Out, content: bytes) -> None:
    """Writes a film and says where it is."""
    out.write(File(out.path, content, _owned))
    put(f"film: {out.path} ({len(content):,} bytes)")


def _stage(
    method: Method,
    request: Request,
    given: Mapping[str, float],
    sink: Callable[[Array], None],
    at_most: float | None = None,
) -> contextlib.AbstractContextManager[Filmed]:
    """The environment of a scene, which gives ``sink`` its frames."""
    story = story_of(method, request, asked_text(given))
    return shown_env(method.spec, story, sink, at_most)


def _report(given: Mapping[str, float], episode: Episode) -> None:
    asked = ", ".join(f"{name}={value:g}" for name, value in given.items())
    if not asked:
        asked = "no command" if episode.command is None else "its own command"
    put(f"{asked}: return {three_digits(episode.ret)} in {episode.length} steps")


def _owned(path: Path) -> bool:
    return _MARK in head(path)


def side_by_side(reels: Sequence[Sequence[Array]]) -> list[Array]:
    """The frames of several films as one; those that end sooner keep their last frame."""
    frames = []
    for k in range(max(map(len, reels))):
        row = [_framed(reel[min(k, len(reel) - 1)]) for reel in reels]
        frames.append(np.concatenate(row, axis=1)[:-_GAP, :-_GAP])
    return frames


def gif(reels: Sequence[Sequence[Array]], fps: float) -> bytes:
    """A small GIF: at most 900 pixels across, about 260 frames at most, about 12.5 a second, 64
    colours.
    """
    every = max(1, round(fps / FPS), math.ceil(max(map(len, reels)) / _GIF_FRAMES))
    reels = [[*reel[:-1:every], reel[-1]] for reel in reels]
    pictures = [_shrunk(frame, _GIF_WIDTH) for frame in side_by_side(reels)]
    some = [np.asarray(picture) for picture in pictures[:: 1 + len(pictures) // 8]]
    palette = Image.fromarray(np.concatenate(some)).quantize(_COLOURS, dither=_FLAT)
    durations = [round(1000 * every / fps)] * (len(pictures) - 1) + [round(1000 * _STILL_S)]
    return animation(pictures, palette, durations, comment=_MARK)


def animation(
    pictures: Sequence[Image.Image], palette: Image.Image, durations: Sequence[int], **more: Any
) -> bytes:
    """A GIF that is shown again and again. durations: of its pictures, in milliseconds."""
    first, *others = (each.quantize(palette=palette, dither=_FLAT) for each in pictures)
    file = io.BytesIO()
    look = {"save_all": True, "loop": 0, "optimize": True, **more}
    first.save(file, "GIF", append_images=others, duration=list(durations), **look)
    return file.getvalue()


def strips(reels: Sequence[Sequence[Array]], fps: float) -> bytes:
    """A small PNG: a row of six frames of each film, from its first to its last, at most 1,800
    pixels across, 64 colours.
    """
    rows = []
    for reel in reels:
        frames = [_framed(reel[k]) for k in evenly(len(reel))]
        rows.append(np.concatenate(frames, axis=1))
    picture = _shrunk(np.concatenate(rows)[:-_GAP, :-_GAP], _STRIP_WIDTH)
    small = picture.quantize(_COLOURS, dither=_FLAT)
    comment = PngInfo()
    comment.add_text("Comment", _MARK.decode())
    file = io.BytesIO()
    small.save(file, "PNG", optimize=True, pnginfo=comment)
    return file.getvalue()


def evenly(count: int) -> list[int]:
    """Which of so many frames a strip shows."""
    return [round(k * (count - 1) / (_STRIP_FRAMES - 1)) for k in range(_STRIP_FRAMES)]


def _framed(frame: Array) -> Array:
    """The frame with a white rim on the right and below."""
    return np.pad(frame, ((0, _GAP), (0, _GAP), (0, 0)), constant_values=255)


def _shrunk(frame: Array, most: int) -> Image.Image:
    height, width = frame.shape[:2]
    share = min(1.0, most / width)
    size = (round(width * share), round(height * share))
    # whole pixels are averaged first, where the picture is twice as large: a fifth of the time
    return Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS, reducing_gap=1.0)


class WindowClosedError(Exception):
    """The user has closed the window."""


class Window:
    """Shows frames on the screen as they come, ``fps`` of them a second; UserError where there
    is no display.
    """

    fps = 30.0

    def __enter__(self) -> Window:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        import pygame  # of the environments

        named = {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"} & os.environ.keys()
        if sys.platform.startswith("linux") and not named:
            raise UserError(f"--window: there is no display here (DISPLAY is not set); {_INSTEAD}")
        cannot = "--window: the display cannot be used"
        try:
            pygame.display.init()
        except pygame.error as error:
            raise UserError(f"{cannot} ({error}); {_INSTEAD}") from error
        # What SDL falls back to where a display does not answer.
        if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
            raise UserError(f"{cannot} (DISPLAY={os.environ.get('DISPLAY')}); {_INSTEAD}")
        self._clock = pygame.time.Clock()
        return self

    def __exit__(self, *_: object) -> None:
        import pygame

        pygame.quit()

    def show(self, frame: Array) -> None:
        """The next frame; WindowClosedError where the user has closed the window."""
        import pygame

        size = frame.shape[1::-1]
        screen = pygame.display.get_surface()
        if screen is None or screen.get_size() != size:
            pygame.display.init()  # some environments end it when they are closed
            screen = pygame.display.set_mode(size)
            pygame.display.set_caption("lightning_rl")
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            raise WindowClosedError
        screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        self._clock.tick(self.fps)

    def rest(self) -> None:
        """Leaves the last frame for a moment."""
        import pygame

        pygame.time.wait(round(1000 * _STILL_S))
