"""What reward networks pay in a grid world, and where agents then go: the paper's Figure 10 (arXiv 2202.02790)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.grids import GRID_WORLDS, MOVES, GridWorld
from lightning_rl.envs.proxies import RewardProxy
from lightning_rl.envs.reward_network import RewardEnv
from lightning_rl.lab.protocols import agents
from lightning_rl.lab.protocols.agents import AgentKind, Job, train_stacks
from lightning_rl.lab.protocols.models import Model, real_task
from lightning_rl.lab.protocols.recording import joined, played
from lightning_rl.lab.protocols.results import open_results
from lightning_rl.lab.protocols.transfer import loops

KEY = ("trained_on", "proxy", "agent", "protocol")
COLUMNS = ("gamename", *KEY, "agents", "quantity", "row", "column", "cell", "action", "value")


def rewards(model: Model, world: GridWorld, gamma: float) -> Tensor:
    """What the proxy pays for each action in each cell ``[cells, 4]``."""
    assert isinstance(model.proxy, RewardProxy)
    env = RewardEnv(model.proxy.net, model.params.unsqueeze(0), world, gamma)
    count = world.obs_size * world.action_size
    state = torch.arange(world.obs_size).repeat_interleave(world.action_size).view(1, count, 1)
    action = torch.arange(world.action_size).repeat(world.obs_size).view(1, count)
    return env.step(state, action, torch.empty(0)).reward.view(world.obs_size, world.action_size)


def visits(model: Model, kind: AgentKind, number: int, run_seed: int) -> Tensor:
    """How often ``number`` agents, trained until solved, are in each cell ``[cells]`` in one greedy episode each."""
    jobs, total = [Job(model, n) for n in range(number)], torch.zeros(model.proxy.spec.obs_size)
    for variant, members in kind.by_config(jobs, run_seed):
        for stack, _, trained in train_stacks(members, loops(variant, 1, None), "visits", run_seed):
            seeds = [derive_seed(run_seed, f"visits {model.name}", job.number) for job in stack]
            total += joined(played(trained.agent, model.proxy.spec, seeds, 1)).obs.sum(0)
    return total


def grid_rows(model: Model, world: GridWorld, kind: AgentKind, number: int, run_seed: int) -> list[dict[str, Any]]:
    """Rows of ``quantity`` reward (one for each cell and action) and visits (one for each cell)."""
    paid = rewards(model, world, float(kind.config.gamma))
    visited = visits(model, kind, number, run_seed)
    rows = []
    width = len(world.cells[0])
    for place in range(world.obs_size):
        row, column = divmod(place, width)
        where = {"row": row, "column": column, "cell": world.cells[row][column]}
        for a, move in enumerate(MOVES):
            rows.append({"quantity": "reward", **where, "action": move, "value": float(paid[place, a])})
        rows.append({"quantity": "visits", **where, "action": "", "value": float(visited[place])})
    return rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``grid-rewards``."""
    agents.add_model_arguments(parser, "one row per cell, and per action in it, of each proxy")
    parser.add_argument("--agent", default="SARSA", metavar="NAME", help="whose visits are counted (default SARSA)")
    agents.add_agent_arguments(parser, "fixed")
    parser.add_argument("--real", action="store_true", help="also the task's own reward")


def run(arguments: argparse.Namespace) -> None:
    """Fills OUT.csv."""
    refusal = "a synthetic environment; rewards are drawn of reward networks"
    models, gamename = agents.asked_models(arguments, RewardProxy, refusal)
    if gamename not in GRID_WORLDS:
        raise UserError(f"'{gamename}' is no grid world; rewards are drawn cell by cell for: {', '.join(GRID_WORLDS)}")
    (kind,) = agents.asked_kinds([arguments.agent], gamename, "reward-curves", arguments)
    models += [real_task(gamename)] if arguments.real else []
    world = GRID_WORLDS[gamename]()
    with open_results(Path(arguments.out), COLUMNS, KEY, arguments.force) as results:
        agents.add_proxy_rows(
            results, models, kind, kind.protocol(), arguments.count,
            lambda model: grid_rows(model, world, kind, arguments.count, arguments.seed),
        )  # fmt: skip
        print(f"{len({(row['trained_on'], row['proxy']) for row in results.rows})} proxies in {arguments.out}")
