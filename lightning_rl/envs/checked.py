"""The one place that calls the code of a user's environment, Gymnasium's or a ``FuncEnv``: mistakes
in it are reported with file and line.
"""

from __future__ import annotations

import inspect
import math
import os
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.checks import episode_seed, one_number, reset_options
from lightning_rl.core.contents import describe
from lightning_rl.core.errors import RolloutError
from lightning_rl.core.limits import shorten, shown
from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.spaces import (
    STEPS,
    Env,
    ResetOutcome,
    StepOutcome,
    Wrapper,
    flat_space,
    flattened,
    is_image,
    is_numbers,
    is_vector,
)

_TRUTHS = (bool, np.bool_)
_LARGEST, _SHORT = float(np.finfo(np.float32).max), 64
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


class CheckedEnv(Wrapper, gymnasium.utils.RecordConstructorArgs):
    """An environment within its time limit of ``horizon`` steps, its observations as vectors or
    images.

    RolloutError where it raises or calls ``sys.exit``, or breaks Gymnasium's interface: a reward or
    an observation that is not finite in single precision (in which all is stored), an observation
    of another shape, return values of the old Gym.
    """

    def __init__(self, env: Env, gamename: str, horizon: int):
        gymnasium.utils.RecordConstructorArgs.__init__(self, gamename=gamename, horizon=horizon)
        super().__init__(env)
        self.gamename, self.horizon = gamename, horizon
        self.seed: int | None = None
        self.length = 0
        space = env.observation_space
        self._space = None if is_vector(space) or is_image(space) else space
        if self._space is not None:
            self.observation_space = flat_space(self._space)
        self._shape = self.observation_space.shape
        self._is_image = is_image(space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> ResetOutcome:
        self.seed, self.length = episode_seed(seed), 0
        if self.seed is not None:
            of_spaces = derive_seed(self.seed, "spaces")  # it may draw samples of them
            self.unwrapped.observation_space.seed(of_spaces)
            self.unwrapped.action_space.seed(of_spaces)
        outcome = self._call("reset", seed=self.seed, options=reset_options(options))
        if not (isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[1], dict)):
            raise self._wrong("reset", f"returned {_form(outcome)}, expected (obs, info)")
        return self._observation("reset", outcome[0]), outcome[1]

    def step(self, action: Any) -> StepOutcome:
        try:
            outcome: Any = self.env.step(action)  # not by _call: this is once a step
        except (Exception, SystemExit) as error:
            raise self._raised("step", error) from error
        try:
            obs, reward, terminated, truncated, info = outcome
            right = (
                self._space is None
                and obs.shape == self._shape
                and abs(reward) <= _REWARD
                and type(info) is dict
                and type(terminated) in _TRUTHS
                and type(truncated) in _TRUTHS
                and (obs.dtype == np.uint8 if self._is_image else obs.dtype.kind in "biuf")
                and math.isfinite(reward)
                and _all_finite(obs)
            )
        except (AttributeError, OverflowError, TypeError, ValueError):
            right = False
        if not right:
            obs, reward, terminated, truncated, info = self._judged(outcome)
        self.length += info.get(STEPS, 1)
        return obs, reward, terminated, truncated or self.length >= self.horizon, info

    def render(self) -> Any:
        frame = self._call("render")
        if self.render_mode == "rgb_array" and not _is_picture(frame):
            raise self._wrong(
                "render",
                f"gave {_form(frame)}, expected a picture: an array of uint8 [height, width, 3]",
            )
        return frame

    def close(self) -> None:
        self._call("close")

    def _call(self, call: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self.env, call)(*args, **kwargs)
        except (Exception, SystemExit) as error:
            raise self._raised(call, error) from error

    def _raised(self, call: str, error: BaseException) -> RolloutError:
        return raised(error, call, type(self.env.unwrapped), self._when())

    def _judged(self, outcome: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A step's answer that is unusual, e.g. a list as the observation; RolloutError where it
        is wrong.
        """
        if not isinstance(outcome, tuple) or len(outcome) != 5:
            expected = "(obs, reward, terminated, truncated, info)"
            raise self._wrong("step", f"returned {_form(outcome)}, expected {expected}")
        obs, reward, terminated, truncated, info = outcome
        number = reward_number(reward)
        if number is None:
            raise self._wrong("step", f"gave the reward {shown(reward)}, expected {REWARDS}")
        if not isinstance(info, dict):
            raise self._wrong("step", f"gave the info {shown(info)}, expected a dict")
        terminated = self._truth("terminated", terminated)
        truncated = self._truth("truncated", truncated)
        return self._observation("step", obs), number, terminated, truncated, info

    def _truth(self, name: str, end: Any) -> bool:
        """True or False, also as 1 or 0, or as an array of one."""
        number = one_number(end)
        if number not in (0, 1):
            raise self._wrong("step", f"gave {name} {shown(end)}, expected True or False")
        return bool(number)

    def _observation(self, call: str, obs: Any) -> Array:
        """An observation as a vector; RolloutError where it is none of the space, or not finite."""
        try:
            found = np.asarray(obs) if self._space is None else flattened(self._space, obs)
        except ValueError:  # also of lists of different lengths
            lacks = "is no array" if self._space is None else f"is not in {shown(self._space)}"
            what = f"gave the observation {shown(obs)}, which {lacks}"
            raise self._wrong(call, what) from None
        if not is_numbers(found, self._shape):
            numbers = "" if found.dtype.kind in "biuf" else f" of {found.dtype}"
            raise self._wrong(
                call,
                f"gave an observation of shape {found.shape}{numbers}, its space says "
                f"{self._shape} numbers",
            )
        if self._is_image and found.dtype != np.uint8:
            as_bytes = found.astype(np.uint8)
            if (as_bytes != found).any():
                raise self._wrong(
                    call,
                    f"gave an image of {found.dtype} whose numbers are no bytes, expected uint8",
                )
            return as_bytes
        if not _all_finite(found):
            raise self._wrong(
                call,
                f"gave the observation {shown(obs)}, expected finite numbers of at most "
                f"{_LARGEST:.2g} (single precision)",
            )
        return found

    def _wrong(self, call: str, what: str) -> RolloutError:
        return wrong(what, call, type(self.env.unwrapped), self._when())

    def _when(self) -> str:
        return f"gamename {self.gamename}, seed {self.seed}, step {self.length}"


class CheckedFunc(FuncEnv):
    """A user's ``FuncEnv``.

    RolloutError where it raises, or returns what ``FuncEnv`` does not allow: another shape or
    dtype, numbers that are not finite, observations other than 0 and 1 although ``binary_obs``. On
    a GPU only shapes and dtypes are checked: reading numbers would wait for the device.
    """

    def __init__(self, env: FuncEnv, gamename: str):
        self.env, self.gamename = env, gamename
        for name in FuncEnv.__annotations__:
            setattr(self, name, getattr(env, name))

    def reset(self, noise: Tensor) -> State:
        state = self._call("reset", noise)
        batch = noise.shape[:-1]
        if not isinstance(state, Tensor) or state.shape[:-1] != batch or state.dim() == 0:
            raise self._wrong("reset", "states", state, [*batch, "S"])
        return state

    def observe(self, state: State) -> Tensor:
        obs: Tensor = self._call("observe", state)
        self._check_obs("observe", obs, state.shape[:-1])
        return obs

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        step = self._call("step", state, action, noise)
        if not isinstance(step, Step):
            raise self._wrong("step", "an answer", step, "a Step of lightning_rl.envs.func_env")
        batch = state.shape[:-1]
        self._check("step", "states", step.state, state.shape, state.dtype)
        self._check_obs("step", step.obs, batch)
        self._check("step", "rewards", step.reward, batch, torch.float32)
        self._check("step", "terminated", step.terminated, batch, torch.bool)
        if step.continuation is not None:
            self._check("step", "continuation", step.continuation, batch, torch.float32)
        return step

    def require_possible(self, state: State, obs: Tensor) -> None:
        self.env.require_possible(state, obs)

    def draw(self, obs: Tensor) -> Array:
        return self.env.draw(obs)

    def keep(self, rows: Tensor) -> FuncEnv:
        return CheckedFunc(self.env.keep(rows), self.gamename)

    def to(self, device: torch.device) -> FuncEnv:
        return CheckedFunc(self.env.to(device), self.gamename)

    def _call(self, call: str, *inputs: Tensor) -> Any:
        try:
            return getattr(self.env, call)(*inputs)
        except (Exception, SystemExit) as error:
            raise raised(error, call, type(self.env), f"gamename {self.gamename}") from error

    def _check_obs(self, call: str, obs: Any, batch: Sequence[int]) -> None:
        self._check(call, "observations", obs, (*batch, self.obs_size), torch.float32)
        if not self.binary_obs or obs.device.type != "cpu":
            return
        bits = (obs == 0) | (obs == 1)
        if not bool(bits.all()):
            expected = "bits, as its binary_obs says: 0 and 1"
            raise self._wrong(call, "an observation with", obs[~bits][0].item(), expected)

    def _check(
        self, call: str, what: str, found: Any, shape: Sequence[int], dtype: torch.dtype
    ) -> None:
        if not isinstance(found, Tensor) or found.shape != shape or found.dtype != dtype:
            expected = f"{str(dtype).removeprefix('torch.')} {list(shape)}"
            raise self._wrong(call, what, found, expected)
        if not found.is_floating_point() or found.device.type != "cpu":
            return
        # a sum takes half the time
        if not math.isfinite(float(found.sum())) and not bool(found.isfinite().all()):
            raise self._wrong(call, what, found[~found.isfinite()][0].item(), "finite numbers")

    def _wrong(self, call: str, what: str, found: Any, expected: object) -> RolloutError:
        said = f"gave {what} {describe(found)}, expected {expected}"
        return wrong(said, call, type(self.env), f"gamename {self.gamename}")


def wrong(what: str, call: str, kind: type, when: str) -> RolloutError:
    """What a method of a user's class did wrong, with its place."""
    file, line = definition(kind, call)
    return RolloutError(f"{call}() {what} -- from {kind.__name__} at {file}:{line} ({when})")


def raised(error: BaseException, call: str, kind: type, when: str) -> RolloutError:
    """What a method of a user's class raised, with its place."""
    defined = definition(kind, call)
    file, line = own_place(error, defined[0]) or defined
    where = f"{kind.__name__} at {file}:{line} ({when})"
    return RolloutError(f"{described(error)} -- raised in {call}() of {where}")


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
    if numbers.dtype == np.uint8:
        return True
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
    file, line = own_place(error) or _frames(error)[-1]
    return f"{described(error)} at {file}:{line}"


def own_place(error: BaseException, own: str = "") -> Place | None:
    """The innermost place that an exception came through in the file ``own``, else in a file that
    is no library's.
    """
    frames = _frames(error)
    in_own_file = [place for place in frames if place[0] == own]
    others = [place for place in frames if not place[0].startswith((*_LIBRARIES, "<"))]
    places = in_own_file or others
    return places[-1] if places else None


def _frames(error: BaseException) -> list[Place]:
    """Where an exception came through, outermost first."""
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame.f_code.co_filename, line) for frame, line in frames]


def definition(kind: type, call: str) -> Place:
    """Where the class of an environment defines a method."""
    code = inspect.unwrap(getattr(kind, call)).__code__
    return code.co_filename, code.co_firstlineno


def _is_picture(frame: Any) -> bool:
    """Also one with transparency."""
    is_bytes = isinstance(frame, np.ndarray) and frame.dtype == np.uint8
    return is_bytes and frame.ndim == 3 and frame.shape[2] in (3, 4)


def _form(outcome: Any) -> str:
    if isinstance(outcome, np.ndarray):
        return f"an array of {outcome.dtype} {list(outcome.shape)}"
    return f"{len(outcome)} values" if isinstance(outcome, tuple) else f"a {type(outcome).__name__}"
