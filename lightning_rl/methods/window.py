"""The training data of reward-conditioned policies: a window over the newest episodes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor

from lightning_rl.core.contents import Number
from lightning_rl.core.schema import STRICT, Batch, Episodes, MethodConfig
from lightning_rl.core.seeding import generator
from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.methods.base import episode_scalars
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collector import Collector
from lightning_rl.rollouts.data_module import CollectedRollouts, Evaluation, training_requests, warm_up_requests
from lightning_rl.rollouts.episode_buffer import EpisodeWindow, FlatEpisodes

_NEWEST = 20  # episodes that the length of the next ones is guessed from
_MAX_CATCH_UP = 4.0  # a single epoch trains at most for this many times steps_per_iter


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class WindowConfig(MethodConfig):
    """Keys of the data."""

    learning_starts: Episodes
    steps_per_iter: PositiveInt
    window_steps: PositiveInt
    overlap: bool
    sample_by: Literal["episode", "transition"]
    batch_size: Batch

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"window_steps": self.window_steps}


class Aim(Protocol):
    """What the experience asks of the method."""

    @property
    def command_names(self) -> tuple[str, ...]: ...

    def draw(self, noise: Tensor) -> Tensor:
        """Commands ``[n]`` for the next episodes from standard normal noise ``[n]``."""

    def updates_per_iter(self) -> Mapping[str, int]:
        """Updates per ``steps_per_iter`` new steps, by network."""


@dataclass(frozen=True)
class WindowEpoch:
    """What one epoch trains on: the whole window, and which of its steps each update of each network sees (``[U, B]``)."""

    window: FlatEpisodes
    index: Mapping[str, Tensor]
    env_steps: int
    episodes: int
    scalars: Mapping[str, float]

    def to(self, device: torch.device) -> WindowEpoch:
        index = {name: tensor.to(device) for name, tensor in self.index.items()}
        return dataclasses.replace(self, window=self.window.to(device), index=index)


class WindowRollouts(CollectedRollouts):
    """Asks for draws of the target, keeps the newest episodes, and says which steps the updates see.

    Epoch 0 plays uniformly random actions. Later epochs play as many whole episodes as make about ``steps_per_iter``
    steps, and the numbers of updates follow the steps that were really played: hovering starves nobody.
    """

    command = (Number(),)

    def __init__(
        self, cfg: WindowConfig, aim: Aim, collector: Collector, evaluation: Evaluation, policy: Policy, run_seed: int
    ):
        super().__init__(collector, evaluation, policy, run_seed, cfg.overlap)
        self.cfg, self.aim = cfg, aim
        self.window = EpisodeWindow(cfg.window_steps)

    def requests(self, epoch: int) -> list[Request]:
        if epoch == 0:
            return warm_up_requests(self.run_seed, self.cfg.learning_starts)
        count = math.ceil(self.cfg.steps_per_iter / self.window.mean_length(newest=_NEWEST))
        noise = torch.from_numpy(generator(self.run_seed, "command", epoch).standard_normal(count, dtype=np.float32))
        return training_requests(self.run_seed, epoch, [(command,) for command in self.aim.draw(noise).tolist()])

    def absorb(self, epoch: int, episodes: list[Episode]) -> None:
        self.window.add(episodes)

    def prepare(self, epoch: int, episodes: list[Episode], waited: float) -> WindowEpoch:
        env_steps = sum(episode.env_steps for episode in episodes)
        rng = generator(self.run_seed, "minibatch", epoch)
        draw = {"episode": self.window.draw_episodes, "transition": self.window.draw_transitions}[self.cfg.sample_by]
        index = {}
        for network, updates in self.aim.updates_per_iter().items():
            count = max(1, round(updates * min(env_steps / self.cfg.steps_per_iter, _MAX_CATCH_UP)))
            index[network] = torch.from_numpy(draw(rng, (count, self.cfg.batch_size)))
        scalars = {**episode_scalars("rollout", episodes), "buffer/episodes": float(len(self.window))}
        if epoch:
            scalars[f"command/{self.aim.command_names[0]}"] = float(np.mean([e.request.command for e in episodes]))
        return WindowEpoch(self.window.flat(), index, env_steps, len(episodes), {**scalars, "time/collection_wait": waited})

    def contents(self) -> dict[str, Any]:
        return {"window": self.window.state_dict()}

    def refill(self, contents: dict[str, Any]) -> None:
        self.window.load_state_dict(contents["window"])

    def contents_layout(self, done: int) -> dict[str, Any]:
        return {"window": self.window.layout(self.collector.player.spec)}

    def most_requests(self) -> int:
        return self.cfg.steps_per_iter
