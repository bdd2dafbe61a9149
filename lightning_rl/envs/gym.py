"""Gymnasium environments, made from an ``EnvSpec``."""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec as GymSpec

from lightning_rl.core.files import write_bytes
from lightning_rl.core.limits import shown
from lightning_rl.core.types import UserError
from lightning_rl.envs.checked import CheckedEnv, frames_of, own_place, say
from lightning_rl.envs.spec import EnvSpec

Env = gymnasium.Env[Any, Any]


class SparseReturn(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays nothing until the last step of the episode, which carries the sum of all rewards.

    It must wrap the time limit, so that a truncated episode is paid too.
    """

    def __init__(self, env: Env):
        super().__init__(env)
        self._sum = 0.0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self._sum = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._sum += float(reward)
        return obs, self._sum if terminated or truncated else 0.0, terminated, truncated, info


class RepeatAction(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes each action ``repeat`` times, rewards summed, until the episode ends; ``info`` counts the steps."""

    def __init__(self, env: Env, repeat: int):
        super().__init__(env)
        self.repeat = repeat

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        total, over, count, length = 0.0, False, 0, 0
        while count < self.repeat and not over:
            obs, reward, terminated, truncated, info = self.env.step(action)
            total, over, count = total + float(reward), terminated or truncated, count + 1
            length += info.get("length", 1)
        return obs, total, terminated, truncated, {**info, "length": length}


def _entry(env_id: str) -> GymSpec:
    """Gymnasium's registry entry; imports the module of a ``module:Id-v0`` first."""
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    return gymnasium.spec(name)


@contextlib.contextmanager
def _quiet_mujoco(entry: GymSpec) -> Iterator[None]:
    """Without what MuJoCo says of deprecated attributes in Gymnasium's own models, to the terminal and a file, at every start."""
    if not str(entry.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    import mujoco  # type: ignore[import-untyped]

    def warn(text: str) -> None:
        if "deprecated" not in text:
            print(f"MuJoCo: {text}", file=sys.stderr)

    mujoco.set_mju_user_warning(warn)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def _check_sizes(spec: EnvSpec, env: Env) -> None:
    """UserError where no policy fits the actions, or the spec does not describe the environment."""
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
        size, continuous = int(space.shape[0]), True
    elif isinstance(space, gymnasium.spaces.Discrete):
        size, continuous = int(space.n), False
    else:
        raise UserError(
            f"the action space of {spec.env_id} is {space}, which no policy here fits; those that do: "
            "Discrete (categorical policy) and Box of one dimension (Gaussian policy). Wrap the environment"
        )
    if isinstance(space, gymnasium.spaces.Box) and not space.is_bounded():
        raise UserError(
            f"the action space of {spec.env_id} is {shown(space)}, without bounds; policies act in [-1, 1], which "
            "is scaled to the box: give it finite bounds"
        )
    found = (env.observation_space.shape, size, continuous)
    stated = ((spec.obs_size,), spec.action_size, spec.continuous)
    if found != stated:
        raise UserError(
            f"the EnvSpec of '{spec.gamename}' says (obs shape, action_size, continuous) = {stated}, "
            f"but {spec.env_id} has {found}; correct the EnvSpec"
        )


def make_env(spec: EnvSpec, render: bool = False) -> Env:
    """The environment of ``spec``; continuous actions are rescaled so that the box is [-1, 1], and clipped to it.

    render: ``env.render()`` gives RGB pictures; no display is needed.
    """
    try:
        entry = copy.deepcopy(_entry(spec.env_id))
        entry.order_enforce = False  # the roll-out loop resets before it steps
        with _quiet_mujoco(entry):
            env: Env = gymnasium.make(
                entry,
                max_episode_steps=-1,  # CheckedEnv keeps the time limit
                disable_env_checker=True,
                **dict(spec.kwargs),
                **({"render_mode": "rgb_array"} if render else {}),
            )
    except (gymnasium.error.Error, ImportError) as error:
        raise UserError(f"cannot make '{spec.env_id}' for gamename '{spec.gamename}': {error}") from error
    except Exception as error:  # of the environment's own code
        file, line = own_place(frames_of(error)) or frames_of(error)[-1]
        raise UserError(f"cannot make '{spec.env_id}' for gamename '{spec.gamename}': {say(error)} at {file}:{line}") from error
    _check_sizes(spec, env)
    env = CheckedEnv(env, spec.gamename, spec.horizon)
    start = int(getattr(env.action_space, "start", 0))
    if start:
        env = gymnasium.wrappers.TransformAction(env, lambda action: action + start, gymnasium.spaces.Discrete(spec.action_size))
    if spec.continuous:
        env = gymnasium.wrappers.ClipAction(gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1)))
    if spec.repeat > 1:
        env = RepeatAction(env, spec.repeat)
    return SparseReturn(env) if spec.sparse else env


def can_film(spec: EnvSpec) -> bool:
    """Whether the environment gives RGB pictures."""
    env = make_env(spec)
    env.close()
    return "rgb_array" in env.metadata.get("render_modes", ())


@contextlib.contextmanager
def filming_env(spec: EnvSpec, path: Path) -> Iterator[Env]:
    """An environment whose next episode is written to ``path`` (mp4) on leaving; needs no display."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame asks for a display unless told otherwise
    if "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "egl")  # or MuJoCo aborts the process when it finds no display
    with tempfile.TemporaryDirectory() as parent:
        folder = f"{parent}/film"
        env: Env = gymnasium.wrappers.RecordVideo(
            make_env(spec, render=True), folder, episode_trigger=lambda episode: True, disable_logger=True
        )
        try:
            yield env
        finally:
            env.close()
        for film in Path(folder).glob("*.mp4"):
            write_bytes(path, film.read_bytes())
