"""The data of Pareto-conditioned networks: what is played and kept, and which steps updates see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.seeding import generator
from lightning_rl.core.types import ActionMode, Episode, Request
from lightning_rl.methods.base import episode_scalars
from lightning_rl.methods.pareto.buffer import FrontBuffer, vector_returns
from lightning_rl.methods.pareto.command import fulfilled
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.collected import CollectedRollouts, training_requests, warm_up_requests
from lightning_rl.rollouts.episode_buffer import FlatEpisodes

if TYPE_CHECKING:
    from lightning_rl.methods.pareto.method import PCN


@dataclass
class ParetoEpoch:
    """What one epoch trains on: all stored episodes, and which of their steps updates see.

    command ``[M, K + 1]``: what each step fulfilled; index ``[U, B]``: the steps of the updates.
    worst ``[K]``: the least that an episode of this collection obtained of each objective.
    """

    episodes: FlatEpisodes
    command: Tensor
    index: Tensor
    worst: Tensor
    env_steps: int
    num_episodes: int
    scalars: dict[str, float]


class ParetoRollouts(CollectedRollouts):
    """Plays commands of the target, keeps episodes, and draws the steps that the updates see.

    Epoch 0 plays uniformly random actions, whose noise is held as later.
    """

    def __init__(self, method: PCN, num_workers: int):
        super().__init__(method, num_workers, method.cfg.overlap)
        self.pcn, self.cfg = method, method.cfg
        self.buffer = FrontBuffer(self.cfg.replay_size, self.cfg.crowding)

    def requests(self, epoch: int) -> list[Request]:
        if epoch == 0:
            requests = warm_up_requests(self.run_seed, self.cfg.learning_starts)
            return [replace(request, noise_hold=self.noise_hold()) for request in requests]
        rng = generator(self.run_seed, "command", epoch)
        commands = self.pcn.target.draw(rng, self.cfg.num_episodes_per_iter)
        return training_requests(self.run_seed, epoch, commands, self.noise_hold())

    def store_episodes(self, epoch: int, episodes: list[Episode]) -> None:
        self.buffer.add(episodes)
        kept = self.buffer.episodes
        lengths = np.array([episode.length for episode in kept])
        self.pcn.target.update(vector_returns(kept), lengths)

    def make_batch(self, epoch: int, episodes: list[Episode], waited: float) -> ParetoEpoch:
        cfg, kept = self.cfg, self.buffer.episodes
        rng = generator(self.run_seed, "minibatch", epoch)
        shape = (cfg.num_updates_per_iter, cfg.batch_size)
        obtained = vector_returns(episodes)
        scalars = {
            **episode_scalars("rollout", episodes),
            "buffer/episodes": float(len(kept)),
            "buffer/front_size": float(self.pcn.target.count),
            "time/collection_wait": waited,
        }
        for name, mean in zip(self.pcn.objectives, obtained.mean(0), strict=True):
            scalars[f"rollout/{name}_mean"] = float(mean)
        return ParetoEpoch(
            episodes=self.buffer.flat(),
            command=fulfilled(kept),
            index=torch.from_numpy(self.buffer.draw(rng, shape, "episode")),
            worst=torch.from_numpy(obtained.min(0)).float(),
            env_steps=sum(episode.env_steps for episode in episodes),
            num_episodes=len(episodes),
            scalars=scalars,
        )

    def series(self, policy: Actor) -> Iterator[tuple[str, Any, ActionMode]]:
        """Greedy episodes of each command of the front."""
        for command in self.pcn.target.commands():
            yield "eval", command, "greedy"

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "buffer": self.buffer.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.buffer.load_state_dict(state_dict["buffer"], self.pcn.spec)
        super().load_state_dict(state_dict)
