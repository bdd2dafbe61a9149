"""What a compiled loop plays: an environment of ``TWINS``, or synthetic ones.

Synthetic environments are those of ``synthetic``, which tests compare these with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lightning_rl.core.compiled import compiled
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.fused_classic import step as step_twin
from lightning_rl.envs.synthetic import SyntheticEnv
from lightning_rl.envs.twins import TWINS
from lightning_rl.nets.flat import shape_of_members
from lightning_rl.nets.fused import F, Net, Shape, forward, net_of
from lightning_rl.nets.members import PRELU_SLOPE

_SYNTHETIC = -1
_NOTHING = Shape((1, 1), ())


class World(NamedTuple):
    """``N`` environments of one kind: its number in ``TWINS``, or synthetic ones: what ``net``
    computes with parameters ``[N, D]``.

    classifier: see ``SyntheticEnv.done``.
    """

    kind: int
    params: Any
    net: Net
    classifier: bool


def world_of(env: FuncEnv) -> World | None:
    """The compiled form of an environment; None if it has none."""
    if type(env) in TWINS:
        return World(TWINS.index(type(env)), np.zeros((0, 0), F), net_of(_NOTHING, 1), False)
    if type(env) is not SyntheticEnv or env.one_hot or env.continuous:
        return None
    if not env.net.joined.compilable or not env.fresh_slopes:
        return None
    shape = shape_of_members(env.net.joined)
    if env.net.activation == "prelu":
        shape = shape._replace(slopes=(PRELU_SLOPE,) * len(shape.slopes))
    return World(_SYNTHETIC, env.joined.numpy(), net_of(shape, 1), env.done == "classifier")


@compiled
def step(world: World, n: int, state: Any, action: Any, obs: Any) -> tuple[Any, Any, bool]:
    """Moves the ``state`` ``[S]`` of environment ``n`` on and writes its ``obs`` ``[O]``.

    Reward, continuation and terminated, see ``Step``. action: as ``fused_classic`` takes it.
    """
    if world.kind == _SYNTHETIC:
        return _step_synthetic(world, n, state, int(action[0]), obs)
    reward, terminated = step_twin(world.kind, state, action, obs)
    return F(reward), F(not terminated), terminated


@compiled
def _step_synthetic(
    world: World, n: int, state: Any, action: int, obs: Any
) -> tuple[Any, Any, bool]:
    """See ``SyntheticEnv.step``."""
    x, out, size = world.net.inputs, world.net.out, len(state)
    actions = world.net.widths[0] - size
    for a in range(actions):
        x[a, 0] = F(a == action)
    for i in range(size):
        x[actions + i, 0] = state[i]
    forward(world.params[n], world.net)
    for i in range(size):
        state[i] = obs[i] = out[i, 0]
    done = out[size + 1, 0]
    if world.classifier:
        done = F(1) / (F(1) + np.exp(-done))
    return out[size, 0], F(1) - done, done > F(0.5)
