"""What reward networks pay in a grid world, and where agents go (arXiv 2202.02790, Figure 10)."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from torch import Tensor

from experiments.protocols.proxies import PROXY_KEY, write_proxies
from experiments.protocols.recording import joined, played
from lightning_rl.core.errors import UserError
from lightning_rl.core.lines import say
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.grids import GRID_WORLDS, MOVES, GridWorld
from lightning_rl.envs.reward_network import RewardEnv, RewardProxy
from lightning_rl.lab.protocols.agents import (
    AgentKind,
    asked_kinds,
    asked_models,
    jobs_on,
    train_stacks,
)
from lightning_rl.lab.protocols.models import Model, real_task
from lightning_rl.lab.protocols.transfer import training

COLUMNS = ("gamename", *PROXY_KEY, "quantity", "row", "column", "cell", "action", "value")


def rewards(model: Model, world: GridWorld, gamma: float) -> Tensor:
    """What the proxy pays for each action in each cell ``[cells, 4]``."""
    assert isinstance(model.proxy, RewardProxy)
    env = RewardEnv(model.proxy.net, model.params.unsqueeze(0), world, gamma)
    count = world.obs_size * world.action_size
    state = torch.arange(world.obs_size).repeat_interleave(world.action_size).view(1, count, 1)
    action = torch.arange(world.action_size).repeat(world.obs_size).view(1, count)
    return env.step(state, action, torch.empty(0)).reward.view(world.obs_size, world.action_size)


def visits(model: Model, kind: AgentKind, number: int, run_seed: int) -> Tensor:
    """How often ``number`` trained agents are in each cell ``[cells]`` in a greedy episode each."""
    total = torch.zeros(model.proxy.spec.obs_size)
    variants = kind.by_config(jobs_on([model], number), run_seed)
    for stack, loop, trained in train_stacks(variants, training(1, None), "visits", run_seed):
        seeds = [derive_seed(run_seed, f"visits {model.name}", job.number) for job in stack]
        steps = played(trained.agent, loop.task(0), seeds, 1)
        total += steps[0].obs.sum(0) + joined(steps).next_obs.sum(0)
    return total


def grid_rows(
    model: Model, world: GridWorld, kind: AgentKind, number: int, run_seed: int
) -> list[dict[str, Any]]:
    """Rows of ``quantity`` reward (one for each cell and action) and visits (one for each cell)."""
    paid = rewards(model, world, float(kind.config.gamma))
    visited = visits(model, kind, number, run_seed)
    rows = []
    width = len(world.cells[0])
    for place in range(world.obs_size):
        row, column = divmod(place, width)
        where = {"row": row, "column": column, "cell": world.cells[row][column]}
        for action, value in zip(MOVES, paid[place].tolist(), strict=True):
            rows.append({"quantity": "reward", **where, "action": action, "value": value})
        rows.append({"quantity": "visits", **where, "action": "", "value": float(visited[place])})
    return rows


def run(given: Namespace) -> None:
    """Fills OUT.csv."""
    models, gamename = asked_models(
        given, RewardProxy, "a synthetic environment; rewards are drawn of reward networks"
    )
    if gamename not in GRID_WORLDS:
        raise UserError(
            f"'{gamename}' is no grid world; rewards are drawn cell by cell for: "
            f"{', '.join(GRID_WORLDS)}"
        )
    (kind,) = asked_kinds([given.agent], gamename, "reward-curves", given)
    models += [real_task(gamename)] if given.real else []
    world = GRID_WORLDS[gamename]()

    def rows_of(model: Model) -> list[dict[str, Any]]:
        return grid_rows(model, world, kind, given.count, given.seed)

    rows = write_proxies(given, COLUMNS, models, kind, (), rows_of)
    say(f"{len({(row['trained_on'], row['proxy']) for row in rows})} proxies in {given.out}")
