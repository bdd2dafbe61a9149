"""The environments of Young et al. 2023 (arXiv 2211.02222), on which planning with a model pays: ProcMaze, ButtonGrid, PanFlute.

Cells are numbered row by row. Actions on grids: 0 stay, 1 up, 2 left, 3 down, 4 right.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State, Step
from lightning_rl.envs.grids import neighbours
from lightning_rl.envs.pictures import BLUE, GREEN, GREY, RED, WALL, picture

_MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1))  # up, left, down, right
_CLOSED = 8  # on the count of open neighbours of a cell that can no longer be opened


def _moved(size: int) -> Tensor:
    """The cell ``[cells, 5]`` that each action (0 stay, 1 up, 2 left, 3 down, 4 right) leads to without walls."""
    here = torch.arange(size * size).unsqueeze(1)
    around = neighbours(size, size, _MOVES)
    return torch.cat([here, torch.where(around < size * size, around, here)], dim=1)


class ProcMaze(FuncEnv):
    """Find the goal of a maze of ``grid_size`` x ``grid_size`` cells, a new one every episode; -1 a step.

    A move off the grid or into a wall stays.
    obs: for each cell, row by row, four bits: player, goal, wall, empty.
    state: int64 ``[..., 2 + cells]``: the player's cell, the goal's, and 1 for each open cell.

    A step terminates if it *starts* on the goal, so d moves to the goal return -(d + 1). After the move the player is put
    on the goal with probability ``0.1 / ((g + 1) ceil(g / 2) - g mod 2)``, a tenth of the inverse of the longest shortest
    path, which makes the goal known without exploration.
    """

    action_size = 5
    binary_obs = True
    drawable = True

    def __init__(self, grid_size: int = 4):
        if grid_size < 2:
            raise UserError(f"a ProcMaze of grid size {grid_size} cannot hold a maze; the smallest is 2, e.g. procmaze-2")
        self.grid_size, cells = grid_size, grid_size**2
        self.obs_low, self.obs_high = (0.0,) * (4 * cells), (1.0,) * (4 * cells)
        self.teleport = 0.1 / ((grid_size + 1) * math.ceil(grid_size / 2) - grid_size % 2)
        self.reset_noise_size, self.step_noise_size = 3 + 4 * cells, 1
        self._moved = _moved(grid_size)
        self._neighbours = neighbours(grid_size, grid_size, _MOVES)  # off the grid: a cell beyond the last, which is never opened

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
        """Open cells ``[M, cells]`` bool of mazes grown from ``start`` ``[M]``; priority ``[M, cells, 4]`` chooses directions.

        Depth first: from the top of the stack open a random closed neighbour whose only open neighbour this is, and push
        it; where there is none, pop. The order of a cell's four directions is drawn beforehand, which makes the choice among
        those that are left uniform.
        """
        rows, cells = start.shape[0], self.grid_size**2
        table = self._neighbours.to(start.device)
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
        bits = torch.stack([state[..., :1] == cell, state[..., 1:2] == cell, is_open == 0, is_open == 1], dim=-1)
        return bits.flatten(-2).to(torch.float32)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        position, goal = state[..., 0], state[..., 1]
        terminated = position == goal
        target = self._moved.to(state.device)[position, action]
        free = state.gather(-1, target.unsqueeze(-1) + 2).squeeze(-1) == 1
        position = torch.where(noise[..., 0] < self.teleport, goal, torch.where(free, target, position))
        after = torch.cat([position.unsqueeze(-1), state[..., 1:]], dim=-1)
        return Step(after, self.observe(after), torch.full_like(noise[..., 0], -1.0), terminated)

    def draw(self, obs: Tensor) -> Array:
        player, goal, wall, _ = obs.reshape(self.grid_size, self.grid_size, 4).unbind(-1)
        return picture((wall, WALL), (goal, GREEN), (player, BLUE))


class ButtonGrid(FuncEnv):
    """Switch on all ``num_buttons`` buttons on ``grid_size`` x ``grid_size`` cells: 1 for each success, then a new layout.

    A move off the grid stays. Moving onto a button toggles it, off as well;
    standing still or bumping into the edge does not. obs: for each cell, row by row, three bits: player, button on, button off.
    state: int64 ``[..., 1 + 2 buttons]``: the player's cell, the buttons' cells, and 1 for each that is on.

    A step that *starts* with all buttons on pays 1 and leads to a fresh layout, whatever the action. All are switched on by
    themselves with probability ``1 / (10 cells)`` a step. Never terminates.
    """

    action_size = 5
    binary_obs = drawable = True
    episodic = False

    def __init__(self, grid_size: int = 5, num_buttons: int = 3):
        cells = grid_size**2
        if grid_size < 2 or not 1 <= num_buttons < cells:
            raise UserError(
                f"a ButtonGrid of grid size {grid_size} with {num_buttons} buttons cannot be played; it takes a grid size of 2 "
                "or more and fewer buttons than cells, e.g. buttongrid-3"
            )
        self.grid_size, self.num_buttons = grid_size, num_buttons
        self.obs_low, self.obs_high = (0.0,) * (3 * cells), (1.0,) * (3 * cells)
        self.event = 1 / (10 * cells)
        self.reset_noise_size = 1 + num_buttons
        self.step_noise_size = 1 + self.reset_noise_size
        self._moved = _moved(grid_size)

    def reset(self, noise: Tensor) -> State:
        cells = self.grid_size**2
        buttons = (noise[..., 1:] * torch.arange(cells, cells - self.num_buttons, -1, device=noise.device)).long()
        for k in range(1, self.num_buttons):
            # The drawn number counts the cells that are left; step over those taken, from the lowest.
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
        bits = torch.stack([position == cell, (here & pressed).any(-2), (here & ~pressed).any(-2)], dim=-1)
        return bits.flatten(-2).to(torch.float32)

    def _parts(self, state: State) -> tuple[Tensor, ...]:
        return state.split([1, self.num_buttons, self.num_buttons], dim=-1)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        position, buttons, on = self._parts(state)
        success = (on == 1).all(-1)
        target = self._moved.to(state.device)[position.squeeze(-1), action].unsqueeze(-1)
        on = torch.where((target != position) & (buttons == target), 1 - on, on)
        on = torch.where(noise[..., :1] < self.event, 1, on)
        after = torch.cat([target, buttons, on], dim=-1)
        after = torch.where(success.unsqueeze(-1), self.reset(noise[..., 1:]), after)
        return Step(after, self.observe(after), success.to(noise.dtype), torch.zeros_like(success))

    def draw(self, obs: Tensor) -> Array:
        player, on, off = obs.reshape(self.grid_size, self.grid_size, 3).unbind(-1)
        return picture((on, GREEN), (off, RED), dot=(player, BLUE))  # the player must not hide a button


class PanFlute(FuncEnv):
    """Notes that must arrive together: a note travels one bit a step, and all ends set at once pay 1.

    Pipe ``i`` of ``num_pipes`` holds ``i + 1`` bits.
    Action ``i`` blows pipe ``i`` (there is no action that does nothing). obs, and state: the pipes' bits one after the other,
    each from its blown end. A step that *starts* with the last bit of every pipe set pays 1. Playing pipes n-1, n-2, .., 0 in a
    row fills all ends together, so 1 / n is the best rate; all ends are set by themselves with probability ``1 / n^2`` a step.
    Never terminates.
    """

    binary_obs = drawable = True
    episodic = False
    step_noise_size = 1

    def __init__(self, num_pipes: int = 5):
        if num_pipes < 2:
            raise UserError(f"a PanFlute with {num_pipes} pipes pays always; it takes 2 or more, e.g. panflute-5")
        n = self.num_pipes = self.action_size = num_pipes
        bits = n * (n + 1) // 2
        self.obs_low, self.obs_high = (0.0,) * bits, (1.0,) * bits
        self.event = 1 / n**2
        first = [i * (i + 1) // 2 for i in range(n)]
        self._last = torch.tensor([i * (i + 3) // 2 for i in range(n)])
        self._ends = torch.zeros(bits, dtype=torch.bool).index_fill(0, self._last, True)
        # Where each bit comes from, in the old bits followed by one bit for each action.
        source = torch.arange(bits) - 1
        source[first] = bits + torch.arange(n)
        self._source = source

    def reset(self, noise: Tensor) -> State:
        return torch.zeros(*noise.shape[:-1], self.obs_size, device=noise.device)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        device = state.device
        reward = state.index_select(-1, self._last.to(device)).amin(-1)
        blown = torch.nn.functional.one_hot(action, self.num_pipes).to(state.dtype)
        shifted = torch.cat([state, blown], dim=-1).index_select(-1, self._source.to(device))
        after = torch.where((noise < self.event) & self._ends.to(device), 1.0, shifted)
        return Step(after, after, reward, torch.zeros_like(reward, dtype=torch.bool))

    def draw(self, obs: Tensor) -> Array:
        n = self.num_pipes
        note, outside = torch.zeros(n, n), torch.ones(n, n)
        for i, pipe in enumerate(obs.split(list(range(1, n + 1)))):
            note[i, n - 1 - i :], outside[i, n - 1 - i :] = pipe, 0  # so that the ends are in one column
        return picture((note, BLUE), (outside, GREY))
