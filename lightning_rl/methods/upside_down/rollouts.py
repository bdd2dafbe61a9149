"""The data of upside-down RL: which episodes are played and kept, and which steps updates see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lightning_rl.core.seeding import generator
from lightning_rl.core.types import Episode, Request
from lightning_rl.methods.base import episode_scalars
from lightning_rl.rollouts.collected import CollectedRollouts, training_requests, warm_up_requests
from lightning_rl.rollouts.episode_buffer import FlatEpisodes, flatten

if TYPE_CHECKING:
    from lightning_rl.methods.upside_down.method import UpsideDown

_NEWEST = 20  # episodes that the length of the next ones is guessed from
_MAX_CATCH_UP = 4.0  # a single epoch trains at most for this many times steps_per_iter


@dataclass
class UpsideDownEpoch:
    """What one epoch trains on: all stored episodes, and which of their steps updates see.

    index: by network, the steps ``[U, B]`` of its updates. segment ``[U, B]``: with ``segments:
    any``, how many steps the command of each step of the policy's updates is about; None: all that
    are left of the episode.
    """

    episodes: FlatEpisodes
    index: Mapping[str, Tensor]
    segment: Tensor | None
    held_out: FlatEpisodes | None
    env_steps: int
    num_episodes: int
    held_out_env_steps: int
    scalars: Mapping[str, float]


class UpsideDownRollouts(CollectedRollouts):
    """Plays commands of the target, keeps episodes, and draws the steps that the updates see.

    Epoch 0 plays uniformly random actions. Where ``steps_per_iter`` is set, later epochs play as
    many whole episodes as make about that many steps, and the numbers of updates follow the steps
    that were really played.
    """

    def __init__(self, method: UpsideDown, num_workers: int):
        super().__init__(method, num_workers, method.cfg.overlap)
        cfg = self.cfg = method.cfg
        self.target, self.command_names = method.target, method.command_names
        best = 0 if cfg.buffer == "newest" else cfg.replay_size
        newest = 0 if cfg.buffer == "best" else cfg.recent_episodes
        self.buffer = method.command.buffer(best, newest, cfg.window_steps)

    def requests(self, epoch: int) -> list[Request]:
        cfg = self.cfg
        if epoch == 0:
            return warm_up_requests(self.run_seed, cfg.learning_starts)
        count = cfg.num_episodes_per_iter
        if count is None:
            count = math.ceil((cfg.steps_per_iter or 0) / self.buffer.mean_length(_NEWEST))
        rng = generator(self.run_seed, "command", epoch)
        commands = self.target.draw(rng, count + cfg.num_held_out_episodes_per_iter)
        return training_requests(self.run_seed, epoch, commands, self.noise_hold())

    def _split(self, epoch: int, episodes: list[Episode]) -> tuple[list[Episode], list[Episode]]:
        """Episodes to train on, and those held out."""
        held_out = self.cfg.num_held_out_episodes_per_iter if epoch else 0
        count = len(episodes) - held_out
        return episodes[:count], episodes[count:]

    def store_episodes(self, epoch: int, episodes: list[Episode]) -> None:
        fresh, _ = self._split(epoch, episodes)
        self.buffer.add(fresh)
        self.target.update_from_buffer(self.buffer)
        if self.method.normaliser:
            self.method.normaliser.see_episodes(fresh)

    def make_batch(self, epoch: int, episodes: list[Episode], waited: float) -> UpsideDownEpoch:
        fresh, held_out = self._split(epoch, episodes)
        stored = self.buffer.flat()
        env_steps = sum(episode.env_steps for episode in fresh)
        index, segment = self.minibatches(epoch, env_steps, stored)
        return UpsideDownEpoch(
            episodes=stored,
            index=index,
            segment=segment,
            held_out=flatten(held_out) if held_out else None,
            env_steps=env_steps,
            num_episodes=len(fresh),
            held_out_env_steps=sum(episode.env_steps for episode in held_out),
            scalars={**self._scalars(fresh), "time/collection_wait": waited},
        )

    def minibatches(
        self, epoch: int, env_steps: int, stored: FlatEpisodes
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        """``index`` and ``segment`` of ``UpsideDownEpoch``."""
        cfg, rng = self.cfg, generator(self.run_seed, "minibatch", epoch)
        share = 1.0
        if cfg.steps_per_iter is not None:
            share = min(env_steps / cfg.steps_per_iter, _MAX_CATCH_UP)
        index = {}
        for network, count in cfg.updates_per_epoch.items():
            shape = (max(1, round(count * share)), cfg.batch_size)
            index[network] = torch.from_numpy(self.buffer.draw(rng, shape, cfg.sample_by))
        if cfg.segments == "trailing":
            return index, None
        left = stored.left[index["policy"]].numpy()
        return index, torch.from_numpy(1 + (rng.random(left.shape) * left).astype(left.dtype))

    def buffer_scalars(self) -> dict[str, float]:
        """What is known of the episodes that are trained on."""
        returns = self.buffer.returns()
        return {
            "buffer/episodes": float(len(returns)),
            "buffer/return_mean": float(returns.mean()),
            "buffer/return_min": float(returns.min()),
            "buffer/return_max": float(returns.max()),
        }

    def _scalars(self, episodes: list[Episode]) -> dict[str, float]:
        scalars = {**episode_scalars("rollout", episodes), **self.buffer_scalars()}
        requests = [episode.request for episode in episodes]
        commands = [each.command for each in requests if each.command is not None]
        if commands:
            means = zip(self.command_names, np.mean(commands, axis=0).tolist(), strict=True)
            scalars |= {f"command/{name}": mean for name, mean in means}
        return scalars

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "buffer": self.buffer.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.buffer.load_state_dict(state_dict["buffer"], self.method.spec)
        super().load_state_dict(state_dict)
