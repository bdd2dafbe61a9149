"""The one place that calls the code of a Gymnasium environment: errors in that code are reported
with file and line.

A step that does not return for long is reported, too; it is not interrupted, as it may just be
slow.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from lightning_rl.core.checks import episode_seed, one_number, reset_options
from lightning_rl.core.errors import RolloutError
from lightning_rl.core.limits import shorten, shown
from lightning_rl.core.lines import say
from lightning_rl.core.types import Array
from lightning_rl.envs.spaces import flat_space, flattened, is_numbers, is_vector

_STEP = "(obs, reward, terminated, truncated, info)"
_PATIENCE_S = 20.0
_TRUTHS = (bool, np.bool_)
_LARGEST, _SHORT = float(np.finfo(np.float32).max), 64
_PRECISION = f" of at most {_LARGEST:.2g} (single precision)"
_REWARD = 1e15  # the square of what a thousand of them sum up to is finite in single precision
REWARDS = f"a finite number of at most {_REWARD:g}"
"""What a reward may be, for messages."""
# Where the installed libraries are, Python's own, and ours.
_LIBRARIES = tuple(
    str(Path(file).parent)
    for file in (Path(np.__file__).parent, os.__file__, Path(__file__).parent)
)

Place = tuple[str, int]
"""(file, line)."""


class CheckedEnv(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment within its time limit of ``horizon`` steps, its observations as vectors.

    RolloutError where it raises or calls ``sys.exit``, or breaks Gymnasium's interface: a reward or
    an observation that is not finite in single precision (in which all is stored), an observation
    of another shape, return values of the old Gym.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], gamename: str, horizon: int):
        gymnasium.utils.RecordConstructorArgs.__init__(self, gamename=gamename, horizon=horizon)
        super().__init__(env)
        self.gamename, self.horizon = gamename, horizon
        self.seed: int | None = None
        self.length = 0
        self._space = None if is_vector(env.observation_space) else env.observation_space
        if self._space is not None:
            self.observation_space = flat_space(self._space)
        self._shape = self.observation_space.shape

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.seed, self.length = episode_seed(seed), 0
        options = reset_options(options)
        WATCH.enter(self)
        try:
            outcome: Any = self.env.reset(seed=self.seed, options=options)
        except (Exception, SystemExit) as error:
            raise self._raised("reset", error) from error
        finally:
            WATCH.env = None
        if not (isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[1], dict)):
            raise self._wrong("reset", f"returned {_form(outcome)}, expected (obs, info)")
        return self._observation("reset", outcome[0]), outcome[1]

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        WATCH.env = self
        try:
            outcome: Any = self.env.step(action)
        except (Exception, SystemExit) as error:
            raise self._raised("step", error) from error
        finally:
            WATCH.env = None
        try:
            obs, reward, terminated, truncated, info = outcome
            right = (
                self._space is None
                and obs.shape == self._shape
                and math.isfinite(reward)
                and type(info) is dict
            )
            right = right and type(terminated) in _TRUTHS and type(truncated) in _TRUTHS
            right = (
                right and abs(reward) <= _REWARD and obs.dtype.kind in "biuf" and _all_finite(obs)
            )
        except (AttributeError, OverflowError, TypeError, ValueError):
            right = False
        if not right:
            obs, reward, terminated, truncated, info = self._judged(outcome)
        self.length += 1
        return obs, reward, terminated, truncated or self.length >= self.horizon, info

    def render(self) -> Any:
        try:
            frame: Any = self.env.render()
        except (Exception, SystemExit) as error:
            raise self._raised("render", error) from error
        if self.render_mode == "rgb_array" and not _is_picture(frame):
            raise self._wrong(
                "render",
                f"gave {_form(frame)}, expected a picture: an array of uint8 [height, width, 3]",
            )
        return frame

    def close(self) -> None:
        try:
            self.env.close()
        except (Exception, SystemExit) as error:
            raise self._raised("close", error) from error

    def _judged(self, outcome: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step's answer that is unusual, e.g. a list as the observation; RolloutError where it
        is wrong.
        """
        if not isinstance(outcome, tuple) or len(outcome) != 5:
            raise self._wrong("step", f"returned {_form(outcome)}, expected {_STEP}")
        obs, reward, terminated, truncated, info = outcome
        if (number := reward_number(reward)) is None:
            raise self._wrong("step", f"gave the reward {shown(reward)}, expected {REWARDS}")
        if not isinstance(info, dict):
            raise self._wrong("step", f"gave the info {shown(info)}, expected a dict")
        ends = [
            self._truth(name, end)
            for name, end in (("terminated", terminated), ("truncated", truncated))
        ]
        return self._observation("step", obs), number, ends[0], ends[1], info

    def _truth(self, name: str, end: Any) -> bool:
        """True or False, also as 1 or 0, or as an array of one."""
        try:
            found = np.asarray(end)
        except ValueError:  # lists of different lengths
            found = np.asarray(None)
        if found.size != 1 or found.dtype.kind not in "biuf" or found.item() not in (0, 1):
            raise self._wrong("step", f"gave {name} {shown(end)}, expected True or False")
        return bool(found.item())

    def _observation(self, call: str, obs: Any) -> Any:
        if self._space is not None:
            try:
                flat = flattened(self._space, obs)
            except ValueError:
                raise self._wrong(
                    call, f"gave the observation {shown(obs)}, which is not in {shown(self._space)}"
                ) from None
            return self._finite(call, flat, obs)
        try:
            found = np.asarray(obs)
        except ValueError:  # lists of different lengths
            raise self._wrong(
                call, f"gave the observation {shown(obs)}, which is no array"
            ) from None
        if not is_numbers(found, self._shape):
            numbers = "" if found.dtype.kind in "biuf" else f" of {found.dtype}"
            raise self._wrong(
                call,
                f"gave an observation of shape {found.shape}{numbers}, its space says "
                f"{self._shape} numbers",
            )
        return self._finite(call, found, obs)

    def _finite(self, call: str, numbers: Array, obs: Any) -> Array:
        if not _all_finite(numbers):
            raise self._wrong(
                call, f"gave the observation {shown(obs)}, expected finite numbers{_PRECISION}"
            )
        return numbers

    def _wrong(self, call: str, what: str) -> RolloutError:
        return RolloutError(
            f"{call}() {what} -- from {self._where(definition(type(self.env.unwrapped), call))}"
        )

    def _raised(self, call: str, error: BaseException) -> RolloutError:
        place = self._own_place(frames_of(error), call)
        return RolloutError(f"{described(error)} -- raised in {call}() of {self._where(place)}")

    def _own_place(self, frames: Sequence[Place], call: str) -> Place:
        defined = definition(type(self.env.unwrapped), call)
        return own_place(frames, defined[0]) or defined

    def _where(self, place: Place) -> str:
        name, (file, line) = type(self.env.unwrapped).__name__, place
        return (
            f"{name} at {file}:{line} (gamename {self.gamename}, seed {self.seed}, step "
            f"{self.length})"
        )

    def stuck(self, frame: FrameType | None, seconds: float) -> str:
        """The line about a call that has not returned for so long; frame: where it is."""
        frames = [(each.f_code.co_filename, line) for each, line in traceback.walk_stack(frame)]
        place = self._own_place(frames[::-1], "step")
        return (
            f"no answer for {seconds:.0f} s from {self._where(place)}: waiting for it; Ctrl-C "
            "twice leaves"
        )


def reward_number(reward: Any) -> float | None:
    """A reward as a number, also of an array or tensor of one; None where it is no number, or
    none that is taken.
    """
    number = one_number(reward)
    return number if number is not None and abs(number) <= _REWARD else None


def _all_finite(numbers: Array) -> bool:
    """Whether a vector is finite in single precision; for a short one its 2-norm, which takes
    less time, mostly decides.
    """
    if numbers.size <= _SHORT and math.hypot(*numbers.tolist()) <= _LARGEST:
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(numbers.astype(np.float32)).all())


def described(error: BaseException) -> str:
    """An exception in one line."""
    try:
        said = shorten(str(error), 300)
    except Exception:  # the user's own class, whose ``__str__`` is broken, too
        said = "(its text cannot be had)"
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def located(error: BaseException) -> str:
    """The same with its place in the user's code, or where it was raised."""
    file, line = own_place(frames_of(error)) or frames_of(error)[-1]
    return f"{described(error)} at {file}:{line}"


def own_place(frames: Sequence[Place], own: str = "") -> Place | None:
    """The innermost of the frames (outermost first) that is in the file ``own``, else in a file
    that is no library's.
    """
    in_own_file = [place for place in frames if place[0] == own]
    others = [place for place in frames if not place[0].startswith((*_LIBRARIES, "<"))]
    return next(iter((in_own_file or others)[::-1]), None)


def frames_of(error: BaseException) -> list[Place]:
    """Where an exception came through, outermost first."""
    return [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]


def definition(kind: type, call: str) -> Place:
    """Where the class of an environment defines a method."""
    code = inspect.unwrap(getattr(kind, call)).__code__
    return code.co_filename, code.co_firstlineno


def _is_picture(frame: Any) -> bool:
    """Also one with transparency."""
    return (
        isinstance(frame, np.ndarray)
        and frame.dtype == np.uint8
        and frame.ndim == 3
        and frame.shape[2] in (3, 4)
    )


def _form(outcome: Any) -> str:
    if isinstance(outcome, np.ndarray):
        return f"an array of {outcome.dtype} {list(outcome.shape)}"
    return f"{len(outcome)} values" if isinstance(outcome, tuple) else f"a {type(outcome).__name__}"


class _Watch:
    """Says when an environment has been in one call for long. env: the one that is in a call
    now.
    """

    def __init__(self, patience: float):
        self.patience = patience
        self.env: CheckedEnv | None = None
        self._caller = self._pid = 0

    def enter(self, env: CheckedEnv) -> None:
        self.env, self._caller = env, threading.get_ident()
        if self._pid != os.getpid():  # threads do not survive a fork
            self._pid = os.getpid()
            threading.Thread(target=self._look, daemon=True, name="step watch").start()

    def _look(self) -> None:
        last, since, due = None, 0.0, self.patience
        while True:
            time.sleep(self.patience / 4)
            env = self.env
            now = None if env is None else (env, env.seed, env.length)
            if env is None or now != last:
                last, since, due = now, time.monotonic(), self.patience
            elif time.monotonic() - since >= due:
                seconds, due = time.monotonic() - since, 2 * due
                say(env.stuck(sys._current_frames().get(self._caller), seconds), error=True)


WATCH = _Watch(_PATIENCE_S)
