"""Classic control as compiled functions: twins of the ``FuncEnv``s, which tests compare them with.

State and action are of one environment, in single precision; a discrete action is a number ``[1]``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lightning_rl.core.compiled import compiled
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Pendulum
from lightning_rl.envs.twins import TWINS
from lightning_rl.nets.fused import F

_CARTPOLE = TWINS.index(CartPole)

_MASS = F(CartPole.CART_MASS + CartPole.POLE_MASS)
_POLE = F(CartPole.POLE_MASS * CartPole.HALF_LENGTH)
_SHARE = F(CartPole.POLE_MASS / (CartPole.CART_MASS + CartPole.POLE_MASS))
_HALF_LENGTH, _FORCE, _CARTPOLE_DT = F(CartPole.HALF_LENGTH), F(CartPole.FORCE), F(CartPole.DT)
_CARTPOLE_GRAVITY, _FOUR_THIRDS = F(CartPole.GRAVITY), F(4 / 3)
_MAX_POSITION, _MAX_ANGLE = F(CartPole.MAX_POSITION), F(CartPole.MAX_ANGLE)
_PI, _TWO_PI = F(math.pi), F(2 * math.pi)
_DT, _MAX_TORQUE = F(Pendulum.DT), F(Pendulum.MAX_TORQUE)
_PULL = F(1.5 * Pendulum.GRAVITY)


@compiled
def step(kind: int, state: Any, action: Any, obs: Any) -> tuple[Any, bool]:
    """One step of ``TWINS[kind]``: writes the next ``state`` ``[S]`` and its ``obs`` ``[O]``.

    The reward, and whether the episode terminated.
    """
    if kind == _CARTPOLE:
        return _step_cartpole(state, action, obs)
    return _step_pendulum(state, action, obs)


@compiled
def _step_cartpole(state: Any, action: Any, obs: Any) -> tuple[Any, bool]:
    velocity, angle, spin = state[1], state[2], state[3]
    sin, cos = np.sin(angle), np.cos(angle)
    force = (F(2) * action[0] - F(1)) * _FORCE
    push = (force + _POLE * spin * spin * sin) / _MASS
    inertia = _HALF_LENGTH * (_FOUR_THIRDS - _SHARE * cos * cos)
    turn = (_CARTPOLE_GRAVITY * sin - cos * push) / inertia
    state[0] += _CARTPOLE_DT * velocity
    state[1] += _CARTPOLE_DT * (push - _POLE * turn * cos / _MASS)
    state[2] += _CARTPOLE_DT * spin
    state[3] += _CARTPOLE_DT * turn
    obs[:] = state
    return F(1), abs(state[0]) > _MAX_POSITION or abs(state[2]) > _MAX_ANGLE


@compiled
def _step_pendulum(state: Any, action: Any, obs: Any) -> tuple[Any, bool]:
    angle, spin = state[0], state[1]
    torque = min(max(action[0], F(-1)), F(1)) * _MAX_TORQUE
    cost = angle * angle + F(0.1) * spin * spin + F(0.001) * torque * torque
    spin += (_PULL * np.sin(angle) + F(3) * torque) * _DT
    spin = min(max(spin, F(-8)), F(8))
    turned = angle + spin * _DT + _PI
    if turned >= _TWO_PI:
        turned -= _TWO_PI
    elif turned < 0:
        turned += _TWO_PI
    angle = turned - _PI
    state[0], state[1] = angle, spin
    obs[0], obs[1], obs[2] = np.cos(angle), np.sin(angle), spin
    return -cost, False
