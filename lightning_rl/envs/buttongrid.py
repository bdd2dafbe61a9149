"""ButtonGrid of Young et al. 2023 (arXiv 2211.02222), on which planning with a model pays. Cells
are numbered row by row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.grids import moved
from lightning_rl.envs.pictures import BLUE, GREEN, RED, picture


class ButtonGrid(FuncEnv):
    """Switch on all ``num_buttons`` buttons on ``grid_size`` x ``grid_size`` cells: 1 for each
    success, then a new layout.

    A move off the grid stays. Moving onto a button toggles it, off as well; standing still or
    bumping into the edge does not. obs: for each cell, row by row, three bits: player, button on,
    button off.
    state: int64 ``[..., 1 + 2 buttons]``: the player's cell, the buttons' cells, and 1 for each
    that is on.

    A step that *starts* with all buttons on pays 1 and leads to a fresh layout, whatever the
    action. At each step all buttons are switched on at random with probability ``1 / (10 cells)``.
    Never terminates.
    """

    action_size = 5
    binary_obs = small_state = drawable = True
    episodic = False

    def __init__(self, grid_size: int = 5, num_buttons: int = 3):
        cells = grid_size**2
        if grid_size < 2 or not 1 <= num_buttons < cells:
            raise UserError(
                f"a ButtonGrid of grid size {grid_size} with {num_buttons} buttons cannot be "
                "played; it takes a grid size of 2 "
                "or more and fewer buttons than cells, e.g. buttongrid-3"
            )
        self.grid_size, self.num_buttons = grid_size, num_buttons
        self.obs_low, self.obs_high = (0.0,) * (3 * cells), (1.0,) * (3 * cells)
        self.event = 1 / (10 * cells)
        self.reset_noise_size = 1 + num_buttons
        self.step_noise_size = 1 + self.reset_noise_size
        self._moved = Constant(moved(grid_size))

    def reset(self, noise: Tensor) -> State:
        cells = self.grid_size**2
        buttons = (
            noise[..., 1:] * torch.arange(cells, cells - self.num_buttons, -1, device=noise.device)
        ).long()
        for k in range(1, self.num_buttons):
            # The drawn number counts the cells that are left; step over those taken, from the
            # lowest.
            taken = buttons[..., :k].sort(-1).values
            for j in range(k):
                buttons[..., k] += buttons[..., k] >= taken[..., j]
        position = (noise[..., :1] * cells).long()
        return torch.cat([position, buttons, torch.zeros_like(buttons)], dim=-1)

    def observe(self, state: State) -> Tensor:
        cell = torch.arange(self.grid_size**2, device=state.device)
        position, buttons, on = self._parts(state)
        here = buttons.unsqueeze(-1) == cell
        pressed = (on == 1).unsqueeze(-1)
        bits = torch.stack(
            [position == cell, (here & pressed).any(-2), (here & ~pressed).any(-2)], dim=-1
        )
        return bits.flatten(-2).to(torch.float32)

    def _parts(self, state: State) -> tuple[Tensor, ...]:
        return state.split([1, self.num_buttons, self.num_buttons], dim=-1)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        position, buttons, on = self._parts(state)
        success = (on == 1).all(-1)
        target = self._moved.on(state.device)[position.squeeze(-1), action].unsqueeze(-1)
        on = torch.where((target != position) & (buttons == target), 1 - on, on)
        on = torch.where(noise[..., :1] < self.event, 1, on)
        after = torch.cat([target, buttons, on], dim=-1)
        after = torch.where(success.unsqueeze(-1), self.reset(noise[..., 1:]), after)
        return Step(after, self.observe(after), success.to(noise.dtype), torch.zeros_like(success))

    def draw(self, obs: Tensor) -> Array:
        player, on, off = obs.reshape(self.grid_size, self.grid_size, 3).unbind(-1)
        return picture(
            (on, GREEN), (off, RED), dot=(player, BLUE)
        )  # the player must not hide a button
