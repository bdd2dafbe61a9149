"""Testing members in their environments, in lock-step."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.agents.base import Actors
from lightning_rl.envs.batch import EnvBatch


@torch.no_grad()
def evaluate_agents(agent: Actors, envs: EnvBatch, episodes: int) -> tuple[Tensor, Tensor]:
    """Returns and lengths ``[N, K]`` of ``episodes`` = K test episodes per member.

    Without exploration.

    envs: ``N * K`` environments, member by member.
    """
    shape = (agent.num_members, episodes)
    envs = envs.to(agent.device)
    over = torch.zeros(shape, dtype=torch.bool, device=agent.device).flatten()
    obs = envs.reset(over)
    total = torch.zeros(len(over), device=obs.device)
    length = torch.zeros_like(total, dtype=torch.int64)
    while not over.all():
        outcome = envs.step(agent.greedy(obs.unflatten(0, shape)).flatten(0, 1))
        total += outcome.reward.masked_fill(over, 0)
        length += outcome.length.masked_fill(over, 0)
        ended = outcome.terminated | outcome.truncated
        over |= ended
        obs = envs.retire(ended) if ended.any() else outcome.obs
    return total.unflatten(0, shape), length.unflatten(0, shape)
