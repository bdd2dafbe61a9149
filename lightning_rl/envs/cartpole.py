"""CartPole, the dynamics of Gymnasium 1.x in batched single precision; see ``classic``."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lightning_rl.envs.func_env import FuncEnv, State, Step, uniform_between


class CartPole(FuncEnv):
    """Barto, Sutton & Anderson 1983; Gymnasium's CartPole-v0 (200 steps, solved 195) and -v1 (500
    steps, solved 475).

    obs: position, velocity, pole angle (rad), angular velocity. Actions: push left, push
    right. Reward 1 a step, also for the last. Terminates beyond position 2.4 or 12 degrees. Starts
    uniform in -/+ 0.05.
    """

    obs_low = (-4.8, -math.inf, -24 * math.pi / 180, -math.inf)
    obs_high = (4.8, math.inf, 24 * math.pi / 180, math.inf)
    action_size = 2
    reset_noise_size = 4

    GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    MAX_POSITION, MAX_ANGLE = 2.4, 12 * math.pi / 180

    def reset(self, noise: Tensor) -> State:
        return uniform_between(noise, -0.05, 0.05)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        x, velocity, angle, spin = state.unbind(-1)
        mass, pole = self.CART_MASS + self.POLE_MASS, self.POLE_MASS * self.HALF_LENGTH
        force = (2 * action - 1) * self.FORCE
        sin, cos = angle.sin(), angle.cos()
        push = (force + pole * spin.square() * sin) / mass
        turn = (self.GRAVITY * sin - cos * push) / (
            self.HALF_LENGTH * (4 / 3 - self.POLE_MASS * cos.square() / mass)
        )
        acceleration = push - pole * turn * cos / mass
        change = torch.stack([velocity, acceleration, spin, turn], dim=-1)
        after = state + self.DT * change
        terminated = (after[..., 0].abs() > self.MAX_POSITION) | (
            after[..., 2].abs() > self.MAX_ANGLE
        )
        return Step(after, after, torch.ones_like(x), terminated)
