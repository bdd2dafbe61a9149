"""Environments of all members in compiled loops of many steps, see ``Agent.play``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.compiled import compiled, inlined
from lightning_rl.envs.batch import EnvBatch, FuncBatch
from lightning_rl.envs.fused_worlds import World, step, world_of
from lightning_rl.nets.fused import F

if TYPE_CHECKING:
    from lightning_rl.agents.base import Progress


class Play(NamedTuple):
    """``N`` environments, and the episodes under way in them.

    cap_ends: the time limit of ``horizon`` steps is a termination. state ``[N, S]``, obs
    ``[N, O]``, length, total ``[N]``: steps and sum of rewards. ended ``[N]``: whether the last
    step was the last of an episode.
    """

    world: World
    horizon: int
    cap_ends: bool
    gamma: float
    state: Any
    obs: Any
    length: Any
    total: Any
    ended: Any


def begun(envs: EnvBatch, progress: Progress) -> Play | None:
    """Copies of where the environments are; ``total`` is the training's own.

    None where they have no compiled form.
    """
    if type(envs) is not FuncBatch or envs.repeat != 1:
        return None
    world = world_of(envs.env)
    if world is None:
        return None
    return Play(
        world,
        envs.horizon,
        envs.cap_ends,
        progress.gamma,
        envs.state.numpy().copy(),
        envs.obs.numpy().copy(),
        envs.length.numpy().copy(),
        progress.total.numpy(),
        np.zeros(len(envs.length), np.bool_),
    )


def finished(play: Play, envs: EnvBatch, progress: Progress, steps: int) -> tuple[int, Tensor]:
    """The environments are where so many steps have led; what ``Agent.play`` gives."""
    state, obs, length = map(torch.from_numpy, (play.state, play.obs, play.length))
    cast(FuncBatch, envs).advance(state, obs, length, steps)
    progress.length.add_(steps)
    return steps, torch.from_numpy(play.ended)


@compiled
def move(play: Play, n: int, action: Any) -> tuple[Any, Any]:
    """A step of member ``n`` by ``action`` ``[A]``, or the number of one ``[1]``.

    Its reward, and the discount of what follows.
    """
    reward, follows, terminated = step(play.world, n, play.state[n], action, play.obs[n])
    play.length[n] += 1
    play.total[n] += reward
    truncated = play.length[n] >= play.horizon and not terminated
    play.ended[n] = terminated or truncated
    if truncated and play.cap_ends:
        follows = F(0)
    return reward, F(play.gamma) * follows


@inlined
def copy(source: Any, into: Any) -> None:
    """Numbers ``[I]`` into others; compiles far sooner than ``into[:] = source``."""
    for i in range(len(source)):
        into[i] = source[i]
