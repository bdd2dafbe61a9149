"""Grid worlds and bandits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.constant import Constant
from lightning_rl.core.types import Array
from lightning_rl.envs.func_env import FuncEnv, State, Step, standard_normal
from lightning_rl.envs.pictures import BLUE, GREEN, RED, WALL, picture

MOVES = {"right": (0, 1), "left": (0, -1), "down": (1, 0), "up": (-1, 0)}
"""What the actions of grid worlds are called, and where they lead: rows, columns."""
MAZE_MOVES = ((-1, 0), (0, -1), (1, 0), (0, 1))
"""Of ProcMaze and ButtonGrid: up, left, down, right."""


def neighbours(height: int, width: int, moves: Sequence[tuple[int, int]]) -> Tensor:
    """The cell ``[cells, moves]`` that each move (rows, columns) leads to; ``cells`` where that
    is off the grid.
    """
    row = torch.arange(height).repeat_interleave(width)[:, None]
    column = torch.arange(width).repeat(height)[:, None]
    down, right = torch.tensor(moves).unbind(1)
    row, column = row + down, column + right
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return torch.where(inside, row * width + column, height * width)


def moved(size: int) -> Tensor:
    """The cell ``[cells, 5]`` that each action (0 stay, 1 up, 2 left, 3 down, 4 right) leads to
    without walls.
    """
    here = torch.arange(size * size).unsqueeze(1)
    around = neighbours(size, size, MAZE_MOVES)
    return torch.cat([here, torch.where(around < size * size, around, here)], dim=1)


class GridWorld(FuncEnv):
    """A deterministic grid world drawn in text: ``S`` start, ``G`` goal, ``O`` hole, ``#`` wall,
    ``.`` empty.

    Actions: 0 right, 1 left, 2 down, 3 up; a move off the board or into a wall stays. The reward is
    that of the cell reached; goal and hole terminate. state: the cell's index, row * columns +
    column, int64 ``[..., 1]``; obs: one-hot.
    cells: the letters, row by row.
    """

    action_size = 4
    binary_obs = small_state = drawable = True

    def __init__(self, rows: Sequence[str], cost: float, goal: float, hole: float):
        cells = [row.split() for row in rows]
        height, width = len(cells), len(cells[0])
        flat = "".join(cell for row in cells for cell in row)
        if len(flat) != height * width or flat.count("S") != 1:
            raise ValueError(f"a grid world is a rectangle with one start, got {list(rows)}")
        self.cells, self.start = cells, flat.index("S")
        self.obs_low, self.obs_high = (0.0,) * len(flat), (1.0,) * len(flat)
        around = neighbours(height, width, tuple(MOVES.values()))
        here = torch.arange(len(flat))[:, None]
        # walls, and what is off the board
        blocked = torch.tensor([*(cell == "#" for cell in flat), True])
        self._next = Constant(torch.where(blocked[around], here, around))
        self._reward = Constant(
            torch.tensor([{"G": goal, "O": hole}.get(cell, cost) for cell in flat])
        )
        self._over = Constant(torch.tensor([cell in "GO" for cell in flat]))
        self._one_hot = Constant(torch.eye(len(flat)))

    def reset(self, noise: Tensor) -> State:
        return torch.full(
            (*noise.shape[:-1], 1), self.start, dtype=torch.int64, device=noise.device
        )

    def observe(self, state: State) -> Tensor:
        return torch.nn.functional.embedding(state[..., 0], self._one_hot.on(state.device))

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        del noise
        device = state.device
        cell = self._next.on(device)[state[..., 0], action]
        after = cell.unsqueeze(-1)
        reward, over = self._reward.on(device)[cell], self._over.on(device)[cell]
        return Step(after, self.observe(after), reward, over)

    def draw(self, obs: Tensor) -> Array:
        letters = np.array(self.cells)
        wall, hole, goal = (torch.from_numpy(letters == letter) for letter in "#OG")
        return picture(
            (wall, WALL), (hole, RED), (goal, GREEN), dot=(obs.reshape(letters.shape), BLUE)
        )


def cliff() -> GridWorld:
    """4 x 12: the optimum is 13 moves with return -12. Unlike Gymnasium's CliffWalking, falling
    off terminates.
    """
    empty = ". " * 12
    return GridWorld(
        (empty, empty, empty, "S O O O O O O O O O O G"), cost=-1.0, goal=0.0, hole=-100.0
    )


def room(*rows: str) -> GridWorld:
    """A room: -0.01 a step, 1 for the goal, -1 for a hole."""
    return GridWorld(rows, cost=-0.01, goal=1.0, hole=-1.0)


GRID_WORLDS: dict[str, Callable[[], GridWorld]] = {
    "cliff": cliff,
    "emptyroom22": lambda: room("S .", ". G"),
    "emptyroom23": lambda: room("S . .", ". . G"),
    "emptyroom33": lambda: room("S . .", ". . .", ". . G"),
    "wallroom": lambda: room("S . # . .", ". . # . .", ". . . . .", ". . # . .", ". . # . G"),
    "holeroom": lambda: room("S . O . .", ". . O . .", ". . . . .", ". . O . .", ". . O . G"),
    "holeroomlarge": lambda: room(
        "S . O . O . .", ". . O . O . .", ". . . . . . .", ". . O . O . .", ". . O . O . G"
    ),
    "holeroomlargeshifted": lambda: room(
        "S . O . . . .", ". . O . O . .", ". . O . O . .", ". . O . O . .", ". . . . O . G"
    ),
}
"""The grid worlds by gamename."""


class Bandit(FuncEnv):
    """``arms`` Gaussian arms of standard deviation 1 whose means are a fixed shuffle of k / arms, k
    = 0 .. arms - 1.

    obs: the constant 1. Never terminates; usually played for 50 pulls.
    """

    obs_low, obs_high = (1.0,), (1.0,)
    step_noise_size = 1

    def __init__(self, arms: int = 20):
        self.action_size = arms
        self.means = torch.from_numpy(np.random.default_rng(0).permutation(arms) / arms).float()
        self._means = Constant(self.means)

    def reset(self, noise: Tensor) -> State:
        return torch.ones((*noise.shape[:-1], 1), device=noise.device)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        reward = self._means.on(state.device)[action] + standard_normal(noise[..., 0])
        return Step(state, state, reward, torch.zeros_like(reward, dtype=torch.bool))
