"""Classic control as compiled functions: twins of the ``FuncEnv``s, which tests compare them with.

State and action are of one environment, in single precision; a discrete action is a number ``[1]``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lightning_rl.core.compiled import compiled
from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.classic import Acrobot, Pendulum
from lightning_rl.envs.twins import TWINS
from lightning_rl.nets.fused import F

_CARTPOLE, _ACROBOT = TWINS.index(CartPole), TWINS.index(Acrobot)

_MASS = F(CartPole.CART_MASS + CartPole.POLE_MASS)
_POLE = F(CartPole.POLE_MASS * CartPole.HALF_LENGTH)
_SHARE = F(CartPole.POLE_MASS / (CartPole.CART_MASS + CartPole.POLE_MASS))
_HALF_LENGTH, _FORCE, _CARTPOLE_DT = F(CartPole.HALF_LENGTH), F(CartPole.FORCE), F(CartPole.DT)
_CARTPOLE_GRAVITY, _FOUR_THIRDS = F(CartPole.GRAVITY), F(4 / 3)
_MAX_POSITION, _MAX_ANGLE = F(CartPole.MAX_POSITION), F(CartPole.MAX_ANGLE)
_PI, _TWO_PI = F(math.pi), F(2 * math.pi)
_DT, _MAX_TORQUE = F(Pendulum.DT), F(Pendulum.MAX_TORQUE)
_PULL = F(1.5 * Pendulum.GRAVITY)
_ACROBOT_DT, _G, _C = Acrobot.DT, Acrobot.GRAVITY, Acrobot.CENTRE
_FIRST_SPEED, _SECOND_SPEED = Acrobot.obs_high[4:]


@compiled
def step(kind: int, state: Any, action: Any, obs: Any) -> tuple[Any, bool]:
    """One step of ``TWINS[kind]``: writes the next ``state`` ``[S]`` and its ``obs`` ``[O]``.

    The reward, and whether the episode terminated.
    """
    if kind == _CARTPOLE:
        return _step_cartpole(state, action, obs)
    if kind == _ACROBOT:
        return _step_acrobot(state, action, obs)
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
    for i in range(len(obs)):
        obs[i] = state[i]
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


@compiled
def _acrobot_change(
    first: float, second: float, first_speed: float, second_speed: float, torque: float
) -> tuple[float, float]:
    """See ``Acrobot._change``; the changes of the speeds."""
    cos, sin = math.cos(second), math.sin(second)
    d1 = _C**2 + 1 + _C**2 + 2 * _C * cos + 2
    d2 = _C**2 + _C * cos + 1
    phi2 = _C * _G * math.sin(first + second)
    phi1 = (
        -_C * second_speed**2 * sin
        - 2 * _C * second_speed * first_speed * sin
        + (_C + 1) * _G * math.sin(first)
        + phi2
    )
    second_turn = (torque + d2 / d1 * phi1 - _C * first_speed**2 * sin - phi2) / (
        _C**2 + 1 - d2**2 / d1
    )
    return -(d2 * second_turn + phi1) / d1, second_turn


@compiled
def _step_acrobot(state: Any, action: Any, obs: Any) -> tuple[Any, bool]:
    torque = float(action[0]) - 1
    a, b, u, v = float(state[0]), float(state[1]), float(state[2]), float(state[3])
    half = _ACROBOT_DT / 2
    u1, v1 = _acrobot_change(a, b, u, v, torque)  # fourth-order Runge-Kutta
    du, dv = u + half * u1, v + half * v1
    u2, v2 = _acrobot_change(a + half * u, b + half * v, du, dv, torque)
    du2, dv2 = u + half * u2, v + half * v2
    u3, v3 = _acrobot_change(a + half * du, b + half * dv, du2, dv2, torque)
    du3, dv3 = u + _ACROBOT_DT * u3, v + _ACROBOT_DT * v3
    u4, v4 = _acrobot_change(a + _ACROBOT_DT * du2, b + _ACROBOT_DT * dv2, du3, dv3, torque)
    sixth = _ACROBOT_DT / 6
    a = _wrapped(a + sixth * (u + 2 * du + 2 * du2 + du3))
    b = _wrapped(b + sixth * (v + 2 * dv + 2 * dv2 + dv3))
    u = u + sixth * (u1 + 2 * u2 + 2 * u3 + u4)
    v = v + sixth * (v1 + 2 * v2 + 2 * v3 + v4)
    state[0], state[1] = a, b
    state[2] = min(max(u, -_FIRST_SPEED), _FIRST_SPEED)
    state[3] = min(max(v, -_SECOND_SPEED), _SECOND_SPEED)
    obs[0], obs[1], obs[2], obs[3] = math.cos(a), math.sin(a), math.cos(b), math.sin(b)
    obs[4], obs[5] = state[2], state[3]
    terminated = -math.cos(a) - math.cos(a + b) > 1
    return F(terminated) - F(1), terminated


@compiled
def _wrapped(angle: float) -> float:
    """Between -pi and pi."""
    return (angle + math.pi) % (2 * math.pi) - math.pi
