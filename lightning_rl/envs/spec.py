"""The environments by gamename: facts with their source. Adding one is adding an ``EnvSpec``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lightning_rl.core.config import base_name
from lightning_rl.core.limits import ENV_SIZE, shorten
from lightning_rl.core.types import UserError
from lightning_rl.envs.buttongrid import ButtonGrid
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.envs.procmaze import ProcMaze


@dataclass(frozen=True)
class EnvSpec:
    """Facts of an environment.

    env_id: Gymnasium id; ``module:Id-v0`` imports the module that registers it first.
    action_size: number of discrete actions, or of action dimensions.
    horizon: time limit in steps.
    mean_length: typical episode length, in steps.
    max_return: the highest return that can be asked for; commands are clipped to it.
    solved_return: the return that the field calls solved, or None.
    sparse: give the sum of the rewards at the last step and 0 before.
    repeat: take each action this many times, rewards summed; horizon counts all steps.
    kwargs: arguments of the environment, e.g. its size.
    min_return: the lowest return that an episode can have, or None where there is no bound.
    """

    gamename: str
    env_id: str
    obs_size: int
    action_size: int
    continuous: bool
    horizon: int
    mean_length: int
    max_return: float
    solved_return: float | None
    sparse: bool = False
    repeat: int = 1
    kwargs: tuple[tuple[str, int], ...] = ()
    min_return: float | None = None

    @property
    def family(self) -> str:
        """The gamename without sizes, see ``SIZED``."""
        return base_name(self.gamename)


# Sizes, horizons and solved returns: Gymnasium's registry and documentation. LunarLander max_return 320:
# earlier implementation. Others: the highest return reachable in principle, rounded up where it depends on
# the start state (Acrobot's best episodes last about 60 steps; Pendulum's best returns are near -1); HalfCheetah: the best
# published agents reach about 16,000.
_LUNARLANDER = EnvSpec("lunarlander", "LunarLander-v3", 8, 4, False, 1000, 200, 320.0, 200.0)

# Cells, time limit, highest, solved and lowest return of the grid worlds of the synthetic-environments paper.
_GRIDS = (
    ("cliff", 48, 50, -12.0, -20.0, -149.0),
    ("emptyroom22", 4, 10, 0.99, 0.8, -0.1),
    ("emptyroom23", 6, 15, 0.98, 0.8, -0.15),
    ("emptyroom33", 9, 20, 0.97, 0.8, -0.2),
    ("wallroom", 25, 30, 0.93, 0.8, -0.3),
    ("holeroom", 25, 30, 0.93, 0.8, -1.29),
    ("holeroomlarge", 35, 30, 0.91, 0.8, -1.29),
    ("holeroomlargeshifted", 35, 30, 0.83, 0.8, -1.29),
)

_ADAPTERS = "lightning_rl.envs.adapters:lightning_rl"


def _sized(env: FuncEnv, name: str, mean_length: int, max_return: float, **sizes: int) -> EnvSpec:
    """The horizon is that of the paper's evaluation."""
    size = (env.obs_size, env.action_size)
    env_id, kwargs = f"{_ADAPTERS}/{name}-v0", tuple(sizes.items())
    return EnvSpec(name.lower(), env_id, *size, False, 100, mean_length, max_return, None, kwargs=kwargs)


def _procmaze(grid_size: int = 4) -> EnvSpec:
    return _sized(ProcMaze(grid_size), "ProcMaze", 30, -1.0, grid_size=grid_size)  # best: the start is on the goal


def _buttongrid(grid_size: int = 5, num_buttons: int = 3) -> EnvSpec:
    best = 100 // (num_buttons + 1)  # a move for each button, and a step to be paid
    sizes = {"grid_size": grid_size, "num_buttons": num_buttons}
    return _sized(ButtonGrid(grid_size, num_buttons), "ButtonGrid", 100, best, **sizes)


def _panflute(num_pipes: int = 5) -> EnvSpec:
    env = PanFlute(num_pipes)
    return _sized(env, "PanFlute", 100, 200 / num_pipes, num_pipes=num_pipes)  # best: the right order, and lucky events


SIZED: dict[str, Callable[..., EnvSpec]] = {"procmaze": _procmaze, "buttongrid": _buttongrid, "panflute": _panflute}
"""Environments of any size: ``panflute-8`` has 8 pipes, ``buttongrid-4-2`` 4 x 4 cells and 2 buttons."""

ENV_SPECS: dict[str, EnvSpec] = {
    spec.gamename: spec
    for spec in (
        _LUNARLANDER,
        replace(_LUNARLANDER, gamename="lunarlander-sparse", sparse=True),
        EnvSpec("lunarlander-continuous", "LunarLanderContinuous-v3", 8, 2, True, 1000, 200, 320.0, 200.0),
        replace(_LUNARLANDER, gamename="beresheet", env_id="lightning_rl.envs.beresheet:Beresheet-v0", horizon=300),
        EnvSpec("cartpole", "CartPole-v1", 4, 2, False, 500, 100, 500.0, 475.0, min_return=1.0),
        EnvSpec("cartpole-v0", "CartPole-v0", 4, 2, False, 200, 100, 200.0, 195.0, min_return=1.0),
        EnvSpec("acrobot", "Acrobot-v1", 6, 3, False, 500, 200, -60.0, -100.0, min_return=-500.0),
        EnvSpec("pendulum", "Pendulum-v1", 3, 1, True, 200, 200, 0.0, None, min_return=-3254.8),
        EnvSpec("mountaincar-continuous", "MountainCarContinuous-v0", 2, 1, True, 999, 500, 100.0, 90.0, min_return=-99.9),
        EnvSpec("halfcheetah", "HalfCheetah-v5", 17, 6, True, 1000, 1000, 16_000.0, 4800.0),
        # Best: the best arm's mean at every pull; single episodes can be luckier.
        EnvSpec("bandit10", "lightning_rl.envs.adapters:lightning_rl/bandit10-v0", 1, 10, False, 50, 50, 45.0, None),
        EnvSpec("bandit20", "lightning_rl.envs.adapters:lightning_rl/bandit20-v0", 1, 20, False, 50, 50, 47.5, None),
        *(
            EnvSpec(name, f"{_ADAPTERS}/{name}-v0", cells, 4, False, cap, cap, best, solved, min_return=worst)
            for name, cells, cap, best, solved, worst in _GRIDS
        ),
        *(make() for make in SIZED.values()),
    )
}


def env_spec(gamename: str) -> EnvSpec:
    """The spec of ``gamename``, which may say a size where ``SIZED`` knows it; UserError for an unknown one."""
    if gamename in ENV_SPECS:
        return ENV_SPECS[gamename]
    asked = shorten(gamename)
    name = gamename.partition("-")[0]
    if name not in SIZED:
        raise UserError(f"unknown gamename '{asked}'; choose one of: {', '.join(ENV_SPECS)}")
    sizes = gamename.split("-")[1:]
    known = ENV_SPECS[name].kwargs
    if not all(size.isdecimal() and size.isascii() for size in sizes) or len(sizes) > len(known):
        example = "-".join([name, *(str(value) for _, value in known)])
        meaning = " and ".join(key for key, _ in known)
        raise UserError(f"gamename '{asked}': sizes are whole numbers, {meaning}, e.g. {example}")
    if any(len(size) > 4 or int(size) > ENV_SIZE for size in sizes):
        raise UserError(f"gamename '{asked}': sizes go up to {ENV_SIZE}")
    return replace(SIZED[name](*map(int, sizes)), gamename=gamename)
