"""Small tasks in which chance decides, and what every behaviour obtains on average is known."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.grids import GridWorld

_PAYS = ((1.0, 1.0), (-15.0, 5.0), (-6.0, 1.0))


class Gamble(FuncEnv):
    """One decision, in the shape of ESPER's gambling task (Paster et al. 2022, arXiv 2205.15967).

    action: 0 pays 1; 1 pays 5 or -15, 2 pays 1 or -6, each with probability 1/2. On average they
    pay 1, -5 and -2.5, see ``means``: the highest return, 5, is nothing that one can ask for.
    obs: the constant 1. An episode has one step.
    """

    obs_low, obs_high = (1.0,), (1.0,)
    action_size = len(_PAYS)
    step_noise_size = 1

    def __init__(self) -> None:
        pays = torch.tensor(_PAYS)
        self.means = pays.mean(1)
        self._pays = Constant(pays)

    def reset(self, noise: Tensor) -> State:
        return torch.ones((*noise.shape[:-1], 1), device=noise.device)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        side = (noise[..., 0] < 0.5).long()
        reward = self._pays.on(state.device)[action, side]
        return Step(state, state, reward, torch.ones_like(reward, dtype=torch.bool))


class NoisyRoom(GridWorld):
    """A grid world in which some moves are random, whatever the action (as in arXiv 2502.05672).

    The short way to the goal leads past holes, the long one is safe. -0.01 a step, 1 for the goal,
    -1 for a hole.
    percent: of the moves, a uniformly drawn action is taken.
    """

    step_noise_size = 1

    def __init__(self, percent: int = 25):
        rows = (". . . . .", ". . . . .", "S O O O G")
        super().__init__(rows, cost=-0.01, goal=1.0, hole=-1.0)
        self.noise = percent / 100

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        share = noise[..., 0]
        if self.noise > 0:
            drawn = (share / self.noise * self.action_size).long()
            action = torch.where(share < self.noise, drawn.clamp(max=self.action_size - 1), action)
        return super().step(state, action, noise)
