"""Films of episodes: what an environment draws, and below it what was asked for, the step, and
the return so far.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lightning_rl.core.errors import UserError
from lightning_rl.core.files import write_bytes
from lightning_rl.core.lines import three_digits
from lightning_rl.core.types import Array, FloatArray
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.spaces import Env, ResetOutcome, StepOutcome, Wrapper
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.envs.vector_reward import VECTOR

_NARROWEST = 400  # pixels: a line of text has room
_PAPER, _INK = (24, 28, 38), (238, 241, 247)


@dataclass(frozen=True)
class Story:
    """What is asked of an episode.

    names, command: the first command, empty for a policy that takes none; rule: the command after a
    step, None: it stays.
    asked: what to show instead of the command, e.g. the return that a calibrated policy was asked
    for. of_vectors: the rule takes the rewards of each objective.
    """

    names: Sequence[str] = ()
    command: Sequence[float] = ()
    rule: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    asked: str | None = None
    of_vectors: bool = False


class Filmed(Wrapper):
    """Gives ``show`` the frames of every episode, with its story on them.

    at_most: about so many frames in a second of the environment's time, and the last; None: all.
    """

    def __init__(
        self, env: Env, story: Story, show: Callable[[Array], None], at_most: float | None = None
    ):
        super().__init__(env)
        self.story, self.show = story, show
        fps = float(env.metadata.get("render_fps") or 30)
        self._every = 1
        if at_most is not None:
            self._every = max(1, round(fps / at_most))
        self.fps = fps / self._every  # of what is shown
        self._steps, self._return, self._command = 0, 0.0, np.zeros((1, 0), dtype=np.float32)

    def reset(self, **kwargs: Any) -> ResetOutcome:
        outcome = self.env.reset(**kwargs)
        self._steps, self._return = 0, 0.0
        self._command = np.array([self.story.command], dtype=np.float32)
        self._draw()
        return outcome

    def step(self, action: Any) -> StepOutcome:
        outcome = self.env.step(action)
        reward = float(outcome[1])
        self._steps, self._return = self._steps + 1, self._return + reward
        if self.story.rule is not None and self.story.names:
            paid: Any = [reward]
            if self.story.of_vectors:
                paid = [outcome[4].get(VECTOR, paid)]
            self._command = self.story.rule(self._command, np.array(paid, dtype=np.float32))
        over = outcome[2] or outcome[3]
        if over or self._steps % self._every == 0:
            self._draw()
        return outcome

    def _draw(self) -> None:
        asked = self.story.asked
        if asked is None:
            command = zip(self.story.names, self._command[0], strict=False)
            asked = ", ".join(f"{name} {value:.4g}" for name, value in command)
        lines = [f"return {three_digits(self._return)}   step {self._steps}"]
        if asked:
            lines = [f"asked: {asked}", *lines]
        self.show(captioned(np.asarray(self.env.render()), lines))


def captioned(frame: Array, lines: Sequence[str]) -> Array:
    """A frame uint8 ``[height, width, 3]`` above lines of text, both sides even, small frames
    magnified. A line that is too long for the width is written smaller.
    """
    from PIL import Image, ImageDraw, ImageFont  # of films alone

    times = math.ceil(_NARROWEST / frame.shape[1])
    frame = frame.repeat(times, axis=0).repeat(times, axis=1)
    height, width = frame.shape[0] & ~1, frame.shape[1] & ~1
    size = 2 * (width // 36)
    page = Image.new("RGB", (width, height + size // 2 + len(lines) * size * 5 // 4 & ~1), _PAPER)
    page.paste(Image.fromarray(frame[:height, :width]))
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        fits = size
        while ImageFont.load_default(fits).getlength(line) > width - size and fits > 6:
            fits -= 1
        where = (size // 2, height + size * 7 // 8 + number * size * 5 // 4)
        pen.text(where, line, fill=_INK, font=ImageFont.load_default(fits), anchor="lm")
    return np.asarray(page)


@contextlib.contextmanager
def shown_env(
    spec: EnvSpec, story: Story, show: Callable[[Array], None], at_most: float | None = None
) -> Iterator[Filmed]:
    """An environment that gives ``show`` its frames, see ``Filmed``; needs no display."""
    # macOS has neither
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        # pygame asks for a display unless told otherwise; MuJoCo aborts the process without one
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("MUJOCO_GL", "egl")
    env = Filmed(rollout_env(spec, render=True), story, show, at_most)
    try:
        yield env
    finally:
        env.close()


@contextlib.contextmanager
def filming_env(spec: EnvSpec, path: Path, story: Story | None = None) -> Iterator[Filmed]:
    """An environment whose episodes are encoded as they are played, and written to ``path``
    (mp4) on leaving; its last frame stays for a second.
    """
    writer: Any = None
    size: tuple[int, ...] = ()
    last: Array | None = None

    def show(frame: Array) -> None:
        nonlocal writer, size, last
        if writer is None:
            # or moviepy takes the program that encodes from any .env above it
            os.environ["PYTHON_DOTENV_DISABLED"] = "1"
            # seconds of imports, for films alone
            from moviepy.video.io.ffmpeg_writer import FFMPEG_VideoWriter

            size = frame.shape
            writer = encoding.enter_context(FFMPEG_VideoWriter(film, size[1::-1], env.fps))
        if frame.shape != size:  # the encoder takes bytes
            raise ValueError(
                f"a film has frames of one size, but there are some of {size} and {frame.shape}; "
                "draw all alike"
            )
        writer.write_frame(frame)
        last = frame

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as encoding:
        film = f"{folder}/film.mp4"
        with shown_env(spec, story or Story(), show) as env:
            yield env
            if last is not None:
                for _ in range(round(env.fps)):
                    writer.write_frame(last)
        encoder = None if writer is None else writer.proc
        encoding.close()
        if encoder is not None and encoder.returncode:
            raise UserError(
                f"the film for '{path}' could not be encoded in '{folder}'; free space there, or "
                "let TMPDIR name another folder"
            )
        write_bytes(path, Path(film).read_bytes())
