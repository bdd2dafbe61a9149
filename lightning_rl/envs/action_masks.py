"""Environments that say in ``info["action_mask"]`` which of their discrete actions may be taken.

The mask becomes the end of the observation: so it is kept with each step, and goes wherever
observations go, to networks, memories, checkpoints and exports.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.types import Array, FloatArray
from lightning_rl.envs.checked import wrong
from lightning_rl.envs.gym import MASK, gives_masks
from lightning_rl.envs.spaces import Env, ResetOutcome, StepOutcome, Wrapper, flattened, is_vector
from lightning_rl.envs.spec import EnvSpec


def checked_mask(mask: Any, space: spaces.Space[Any]) -> FloatArray | None:
    """A mask as numbers ``[A]``, 1 where an action may be taken; None for what is no mask of the
    space, or allows nothing. Of several discrete actions the masks lie one behind another.
    """
    try:
        if isinstance(mask, tuple):
            mask = np.hstack(mask)
        found = np.asarray(mask, np.float32)
    except (TypeError, ValueError):
        return None
    if found.shape != (spaces.flatdim(space),) or not np.isin(found, (0, 1)).all():
        return None
    parts = [found]
    if isinstance(space, spaces.MultiDiscrete):
        parts = np.split(found, np.cumsum(space.nvec)[:-1])
    return found if all(part.any() for part in parts) else None


class MaskedObs(Wrapper, RecordConstructorArgs):
    """Observations ``[O]`` end with the mask, ``[O + A]``; when an episode is over every action is
    said to be possible.
    """

    def __init__(self, env: Env, gamename: str):
        RecordConstructorArgs.__init__(self, gamename=gamename)
        super().__init__(env)
        self.gamename, self._seed, self._length = gamename, None, 0
        self._all = np.ones(spaces.flatdim(env.action_space), np.float32)
        own: Any = env.observation_space
        low = np.append(own.low, np.zeros_like(self._all))
        high = np.append(own.high, self._all)
        self.observation_space = spaces.Box(low, high, dtype=np.float32)

    def reset(self, **options: Any) -> ResetOutcome:
        obs, info = self.env.reset(**options)
        self._seed, self._length = options.get("seed"), 0
        return np.append(obs, self._mask("reset", info)), info

    def step(self, action: Any) -> StepOutcome:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._length += 1
        mask = self._all if terminated or truncated else self._mask("step", info)
        return np.append(obs, mask), reward, terminated, truncated, info

    def _mask(self, call: str, info: dict[str, Any]) -> FloatArray:
        mask = checked_mask(info.get(MASK), self.action_space)
        if mask is None:
            expected = f"{len(self._all)} numbers 0 or 1, at least one of them 1"
            when = f"gamename {self.gamename}, seed {self._seed}, step {self._length}"
            what = f"gave the {MASK} {shown(info.get(MASK))} in info, expected {expected}"
            raise wrong(what, call, type(self.env.unwrapped), when)
        return mask


def require_masks(spec: EnvSpec) -> None:
    """UserError where an environment gives no masks, or none that methods here use."""
    reason = "gives no action_mask in info"
    if spec.frames is not None:
        reason = "has images for observations, beside which no mask is seen"
    elif spec.continuous:
        reason = "has continuous actions"
    elif gives_masks(spec):
        return
    raise UserError(f"action_masks: gamename '{spec.gamename}' {reason}; leave it out")


def with_mask(spec: EnvSpec, obs: Any, mask: Any) -> Array:
    """An environment's own observation, or a flattened one, with its mask, as policies see it."""
    assert spec.action_space is not None
    assert spec.observation_space is not None
    found = checked_mask(mask, spec.action_space)
    if found is None:
        raise UserError(
            f"action_mask {shown(mask)}: give {spec.action_size} numbers 0 or 1, at least one of "
            f"them 1, as info['{MASK}'] has them"
        )
    if not is_vector(spec.observation_space):
        with contextlib.suppress(ValueError):
            obs = flattened(spec.observation_space, obs)
    return np.append(obs, found)
