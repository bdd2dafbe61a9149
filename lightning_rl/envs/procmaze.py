"""ProcMaze of Young et al. 2023 (arXiv 2211.02222), on which planning with a model pays. Cells
are numbered row by row.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.grids import MAZE_MOVES, moved, neighbours
from lightning_rl.envs.pictures import BLUE, GREEN, WALL, picture

# added to the count of open neighbours of a cell that is open itself, or off the grid: it cannot be
# opened
_CLOSED = 8


class ProcMaze(FuncEnv):
    """Find the goal of a maze of ``grid_size`` x ``grid_size`` cells, a new one every episode; -1 a
    step.

    A move off the grid or into a wall stays.
    obs: for each cell, row by row, four bits: player, goal, wall, empty.
    state: int64 ``[..., 2 + cells]``: the player's cell, the goal's, and 1 for each open cell.

    A step terminates if it *starts* on the goal, so d moves to the goal return -(d + 1). After the
    move the player is put on the goal with probability ``0.1 / ((g + 1) ceil(g / 2) - g mod 2)``, a
    tenth of the inverse of the longest shortest path (g: grid size), so that agents meet the goal
    without having to explore.
    """

    action_size = 5
    binary_obs = small_state = True
    drawable = True

    def __init__(self, grid_size: int = 4):
        if grid_size < 2:
            raise UserError(
                f"a ProcMaze of grid size {grid_size} cannot hold a maze; the smallest is 2, e.g. "
                "procmaze-2"
            )
        self.grid_size, cells = grid_size, grid_size**2
        self.obs_low, self.obs_high = (0.0,) * (4 * cells), (1.0,) * (4 * cells)
        self.teleport = 0.1 / ((grid_size + 1) * math.ceil(grid_size / 2) - grid_size % 2)
        self.reset_noise_size, self.step_noise_size = 3 + 4 * cells, 1
        self._moved = Constant(moved(grid_size))
        self._neighbours = Constant(
            neighbours(grid_size, grid_size, MAZE_MOVES)
        )  # off the grid: a cell that is never opened

    def reset(self, noise: Tensor) -> State:
        lead = noise.shape[:-1]
        noise = noise.flatten(0, -2) if len(lead) else noise.unsqueeze(0)
        cells = self.grid_size**2
        start = (noise[:, 0] * cells).long()
        is_open = self._grow(start, noise[:, 3:].unflatten(-1, (cells, 4)))
        rank = is_open.long().cumsum(-1)  # the k-th open cell is the first of rank k + 1
        chosen = (noise[:, 1:3] * rank[:, -1:]).long()
        ends = (rank.unsqueeze(1) <= chosen.unsqueeze(-1)).sum(-1)
        return torch.cat([ends, is_open.long()], dim=-1).reshape(*lead, 2 + cells)

    def _grow(self, start: Tensor, priority: Tensor) -> Tensor:
        """Open cells ``[M, cells]`` bool of mazes grown from ``start`` ``[M]``; priority ``[M,
        cells, 4]`` chooses directions.

        Depth first: from the top of the stack open a random closed neighbour whose only open
        neighbour this is, and push it; where there is none, pop. The order of a cell's four
        directions is drawn beforehand, which makes the choice among those that are left uniform.
        """
        rows, cells = start.shape[0], self.grid_size**2
        table = self._neighbours.on(start.device)
        count = torch.zeros(rows, cells + 1, dtype=torch.int64, device=start.device)
        count[:, cells] = _CLOSED
        one = torch.ones(rows, 4, dtype=torch.int64, device=start.device)

        def open_cell(cell: Tensor, where: Tensor) -> None:
            step = where.long()
            count.scatter_add_(1, table[cell.squeeze(1)], one * step)
            count.scatter_add_(1, cell, _CLOSED * step)

        stack = torch.zeros(rows, cells + 1, dtype=torch.int64, device=start.device)
        stack[:, 0] = start
        depth = torch.ones(rows, 1, dtype=torch.int64, device=start.device)
        open_cell(start.unsqueeze(1), torch.ones_like(depth))
        for _ in range(2 * cells):  # a push and a pop for each cell at most
            top = stack.gather(1, (depth - 1).clamp(min=0))
            around = table[top.squeeze(1)]
            free = (count.gather(1, around) == 1) & (depth > 0)
            order = priority.gather(1, top.unsqueeze(-1).expand(-1, -1, 4)).squeeze(1) + 1
            grow = free.any(1, keepdim=True)
            cell = torch.where(grow, around.gather(1, (order * free).argmax(1, keepdim=True)), top)
            open_cell(cell, grow)
            stack.scatter_(1, depth, cell)
            depth = (depth + 2 * grow.long() - 1).clamp(min=0)
        return count[:, :cells] >= _CLOSED

    def observe(self, state: State) -> Tensor:
        cell = torch.arange(self.grid_size**2, device=state.device)
        is_open = state[..., 2:]
        bits = torch.stack(
            [state[..., :1] == cell, state[..., 1:2] == cell, is_open == 0, is_open == 1], dim=-1
        )
        return bits.flatten(-2).to(torch.float32)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        position, goal = state[..., 0], state[..., 1]
        terminated = position == goal
        target = self._moved.on(state.device)[position, action]
        free = state.gather(-1, target.unsqueeze(-1) + 2).squeeze(-1) == 1
        position = torch.where(
            noise[..., 0] < self.teleport, goal, torch.where(free, target, position)
        )
        after = torch.cat([position.unsqueeze(-1), state[..., 1:]], dim=-1)
        return Step(after, self.observe(after), torch.full_like(noise[..., 0], -1.0), terminated)

    def draw(self, obs: Tensor) -> Array:
        player, goal, wall, _ = obs.reshape(self.grid_size, self.grid_size, 4).unbind(-1)
        return picture((wall, WALL), (goal, GREEN), (player, BLUE))
