"""PanFlute of Young et al. 2023 (arXiv 2211.02222), on which planning with a model pays."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.pictures import BLUE, GREY, picture


class PanFlute(FuncEnv):
    """Notes that must arrive together: a note travels one bit a step, and all ends set at once pay
    1.

    Pipe ``i`` of ``num_pipes`` holds ``i + 1`` bits.
    Action ``i`` blows pipe ``i`` (there is no action that does nothing). obs, and state: the pipes'
    bits one after the other, each from its blown end. A step that *starts* with the last bit of
    every pipe set pays 1. Playing pipes n-1, n-2, .., 0 in a row fills all ends together, so 1 / n
    is the best rate; at each step all ends are set at random with probability ``1 / n^2``. Never
    terminates.
    """

    binary_obs = small_state = drawable = True
    episodic = False
    step_noise_size = 1

    def __init__(self, num_pipes: int = 5):
        if num_pipes < 2:
            raise UserError(
                f"a PanFlute with {num_pipes} pipes pays always; it takes 2 or more, e.g. "
                "panflute-5"
            )
        n = self.num_pipes = self.action_size = num_pipes
        bits = n * (n + 1) // 2
        self.obs_low, self.obs_high = (0.0,) * bits, (1.0,) * bits
        self.event = 1 / n**2
        first = [i * (i + 1) // 2 for i in range(n)]
        last = torch.tensor([i * (i + 3) // 2 for i in range(n)])
        self._last = Constant(last)
        self._ends = Constant(torch.zeros(bits, dtype=torch.bool).index_fill(0, last, True))
        # Where each bit comes from, in the old bits followed by one bit for each action.
        source = torch.arange(bits) - 1
        source[first] = bits + torch.arange(n)
        self._source = Constant(source)

    def reset(self, noise: Tensor) -> State:
        return torch.zeros(*noise.shape[:-1], self.obs_size, device=noise.device)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        device = state.device
        reward = state.index_select(-1, self._last.on(device)).amin(-1)
        blown = torch.nn.functional.one_hot(action, self.num_pipes).to(state.dtype)
        shifted = torch.cat([state, blown], dim=-1).index_select(-1, self._source.on(device))
        after = torch.where((noise < self.event) & self._ends.on(device), 1.0, shifted)
        return Step(after, after, reward, torch.zeros_like(reward, dtype=torch.bool))

    def draw(self, obs: Tensor) -> Array:
        n = self.num_pipes
        note, outside = torch.zeros(n, n), torch.ones(n, n)
        for i, pipe in enumerate(obs.split(list(range(1, n + 1)))):
            note[i, n - 1 - i :] = pipe  # so that the ends are in one column
            outside[i, n - 1 - i :] = 0
        return picture((note, BLUE), (outside, GREY))
