"""The one place that calls the code of a user's ``FuncEnv``: mistakes in it are named by file
and line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.contents import describe
from lightning_rl.core.errors import RolloutError
from lightning_rl.core.types import Array
from lightning_rl.envs.checked import definition, described, frames_of, own_place
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.spec import EnvSpec


class CheckedFunc(FuncEnv):
    """A user's environment.

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
        if (
            not isinstance(state, Tensor)
            or state.shape[:-1] != noise.shape[:-1]
            or state.dim() == 0
        ):
            raise self._wrong("reset", "states", state, [*noise.shape[:-1], "S"])
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

    def fault(self, state: State, obs: Tensor) -> str | None:
        return self.env.fault(state, obs)

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
            place = own_place(frames_of(error)) or definition(type(self.env), call)
            raise RolloutError(
                f"{described(error)} -- raised in {call}() of {self._where(*place)}"
            ) from error

    def _check_obs(self, call: str, obs: Any, batch: Sequence[int]) -> None:
        self._check(call, "observations", obs, (*batch, self.obs_size), torch.float32)
        if (
            self.binary_obs
            and obs.device.type == "cpu"
            and not bool(((obs == 0) | (obs == 1)).all())
        ):
            other = obs[(obs != 0) & (obs != 1)][0].item()
            raise self._wrong(
                call, "an observation with", other, "bits, as its binary_obs says: 0 and 1"
            )

    def _check(
        self, call: str, what: str, found: Any, shape: Sequence[int], dtype: torch.dtype
    ) -> None:
        if not isinstance(found, Tensor) or found.shape != shape or found.dtype != dtype:
            raise self._wrong(
                call, what, found, f"{str(dtype).removeprefix('torch.')} {list(shape)}"
            )
        known = found.is_floating_point() and found.device.type == "cpu"
        if (
            known and not math.isfinite(float(found.sum())) and not bool(found.isfinite().all())
        ):  # a sum takes half the time
            raise self._wrong(call, what, found[~found.isfinite()][0].item(), "finite numbers")

    def _wrong(self, call: str, what: str, found: Any, expected: object) -> RolloutError:
        where = self._where(*definition(type(self.env), call))
        return RolloutError(
            f"{call}() gave {what} {describe(found)}, expected {expected} -- from {where}"
        )

    def _where(self, file: str, line: int) -> str:
        return f"{type(self.env).__name__} at {file}:{line} (gamename {self.gamename})"


def own_env(spec: EnvSpec, **kwargs: Any) -> FuncEnv:
    """The environment of ``spec`` where that is a user's class."""
    make: Any = spec.env
    return CheckedFunc(make(**kwargs), spec.gamename)
