"""Classic control besides CartPole, the dynamics of Gymnasium 1.x in batched single precision.

Gymnasium computes in double precision: single steps agree to about 1e-6, long episodes of Acrobot
drift apart as two chaotic pendulums do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.envs.func_env import FuncEnv, State, Step, uniform_between


class Acrobot(FuncEnv):
    """Sutton 1996, with the book's dynamics; Gymnasium's Acrobot-v1 (500 steps, solved -100).

    state: both angles (rad) and angular velocities; obs: cos and sin of each angle, then the
    velocities. Actions: torque -1, 0, 1 on the joint between the links. Reward -1 a step, 0 for the
    one that lifts the tip a link's length above the bar, which terminates. Starts uniform in -/+
    0.1.
    """

    obs_low = (-1.0, -1.0, -1.0, -1.0, -4 * math.pi, -9 * math.pi)
    obs_high = (1.0, 1.0, 1.0, 1.0, 4 * math.pi, 9 * math.pi)
    action_size = 3
    reset_noise_size = 4

    DT, GRAVITY, CENTRE = 0.2, 9.8, 0.5  # links of length, mass and moment of inertia 1

    def reset(self, noise: Tensor) -> State:
        return uniform_between(noise, -0.1, 0.1)

    def observe(self, state: State) -> Tensor:
        angles = state[..., :2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack(
            [cos[..., 0], sin[..., 0], cos[..., 1], sin[..., 1], state[..., 2], state[..., 3]],
            dim=-1,
        )

    def _change(self, state: State, torque: Tensor) -> Tensor:
        first, second, first_speed, second_speed = state.unbind(-1)
        g, c = self.GRAVITY, self.CENTRE
        cos, sin = second.cos(), second.sin()
        d1 = c**2 + 1 + c**2 + 2 * c * cos + 2
        d2 = c**2 + c * cos + 1
        phi2 = c * g * (first + second).sin()  # cos(x - pi/2) = sin(x)
        phi1 = (
            -c * second_speed.square() * sin
            - 2 * c * second_speed * first_speed * sin
            + (c + 1) * g * first.sin()
            + phi2
        )
        second_turn = (torque + d2 / d1 * phi1 - c * first_speed.square() * sin - phi2) / (
            c**2 + 1 - d2.square() / d1
        )
        first_turn = -(d2 * second_turn + phi1) / d1
        return torch.stack([first_speed, second_speed, first_turn, second_turn], dim=-1)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        torque, dt = (action - 1).to(state.dtype), self.DT
        k1 = self._change(state, torque)  # fourth-order Runge-Kutta
        k2 = self._change(state + dt / 2 * k1, torque)
        k3 = self._change(state + dt / 2 * k2, torque)
        k4 = self._change(state + dt * k3, torque)
        after = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        angles = torch.remainder(after[..., :2] + math.pi, 2 * math.pi) - math.pi
        speeds = torch.stack(
            [
                after[..., 2].clamp(-4 * math.pi, 4 * math.pi),
                after[..., 3].clamp(-9 * math.pi, 9 * math.pi),
            ],
            dim=-1,
        )
        after = torch.cat([angles, speeds], dim=-1)
        terminated = -angles[..., 0].cos() - angles.sum(-1).cos() > 1
        return Step(after, self.observe(after), terminated.to(state.dtype) - 1, terminated)


class MountainCarContinuous(FuncEnv):
    """Moore 1990; Gymnasium's MountainCarContinuous-v0 (999 steps, solved 90).

    obs: position, velocity. Action: force in [-1, 1]. Reward -0.1 force^2, and 100 for the step
    that reaches position 0.45, which terminates. Starts at rest, uniform in -0.6 .. -0.4.
    """

    obs_low = (-1.2, -0.07)
    obs_high = (0.6, 0.07)
    action_size = 1
    continuous = True
    reset_noise_size = 1

    POWER, SLOPE, GOAL = 0.0015, 0.0025, 0.45

    def reset(self, noise: Tensor) -> State:
        position = uniform_between(noise, -0.6, -0.4)
        return torch.cat([position, torch.zeros_like(position)], dim=-1)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        position, velocity = state.unbind(-1)
        force = action[..., 0].clamp(-1, 1)
        velocity = (velocity + force * self.POWER - self.SLOPE * (3 * position).cos()).clamp(
            -0.07, 0.07
        )
        position = (position + velocity).clamp(-1.2, 0.6)
        velocity = torch.where(
            (position == -1.2) & (velocity < 0), torch.zeros_like(velocity), velocity
        )  # the left wall
        terminated = (position >= self.GOAL) & (velocity >= 0)
        after = torch.stack([position, velocity], dim=-1)
        return Step(
            after, after, 100 * terminated.to(state.dtype) - 0.1 * force.square(), terminated
        )


class Pendulum(FuncEnv):
    """Gymnasium's Pendulum-v1 (200 steps, no registered solved return).

    state: angle (rad in -pi .. pi, 0 is up) and angular velocity; obs: cos, sin, velocity. Action:
    torque in units of 2, the largest. Reward -(angle^2 + 0.1 velocity^2 + 0.001 torque^2), angle
    and velocity before the step. Never terminates.
    """

    obs_low = (-1.0, -1.0, -8.0)
    obs_high = (1.0, 1.0, 8.0)
    action_size = 1
    continuous = True
    reset_noise_size = 2

    DT, GRAVITY, MAX_TORQUE = 0.05, 10.0, 2.0
    _WIDTH = Constant(torch.tensor([math.pi, 1.0]))  # of the first states

    def reset(self, noise: Tensor) -> State:
        return uniform_between(noise, -1, 1) * self._WIDTH.on(noise.device)

    def observe(self, state: State) -> Tensor:
        angle, spin = state.unbind(-1)
        return torch.stack([angle.cos(), angle.sin(), spin], dim=-1)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        angle, spin = state.unbind(-1)
        torque = action[..., 0].clamp(-1, 1) * self.MAX_TORQUE
        cost = angle.square() + 0.1 * spin.square() + 0.001 * torque.square()
        spin = (spin + (1.5 * self.GRAVITY * angle.sin() + 3 * torque) * self.DT).clamp(-8, 8)
        # Gymnasium lets the angle grow and wraps it for the reward; wrapped at once it keeps its
        # digits.
        angle = torch.remainder(angle + spin * self.DT + math.pi, 2 * math.pi) - math.pi
        after = torch.stack([angle, spin], dim=-1)
        return Step(after, self.observe(after), -cost, torch.zeros_like(cost, dtype=torch.bool))
