"""Training data for methods that learn from fresh episodes and throw them away."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from torch import Tensor

from lightning_rl.core.contents import Count, ListOf, Number
from lightning_rl.core.types import Episode, Request
from lightning_rl.methods.base import episode_scalars
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collector import Collector
from lightning_rl.rollouts.data_module import CollectedRollouts, Evaluation, training_requests
from lightning_rl.rollouts.steps import StepBatch, step_batch

STALE_UPDATES = 3
"""Age of stale roll-outs: two free-running workers with a batch each under way, and one that is fetched ahead."""


class OnPolicyRollouts(CollectedRollouts):
    """``n_episodes`` whole episodes per epoch, by the current policy; or, if ``stale``, by that of three updates ago.

    The running mean return is that of the newest ``running_mean_len`` episodes.

    Stale roll-outs stand for free-running workers that are never told to wait, which no run could repeat; here all
    batches but the first few have the same age, so that seeds, workers and resuming keep their promises.
    """

    def __init__(
        self, collector: Collector, evaluation: Evaluation, policy: Policy, run_seed: int, n_episodes: int,
        running_mean_len: int, stale: bool,
    ):  # fmt: skip
        super().__init__(collector, evaluation, policy, run_seed, overlap=False)
        self.n_episodes = n_episodes
        self.recent_returns: deque[float] = deque(maxlen=running_mean_len)
        self.past: deque[tuple[int, dict[str, Tensor]]] = deque(maxlen=STALE_UPDATES if stale else 0)

    def requests(self, epoch: int) -> list[Request]:
        return training_requests(self.run_seed, epoch, [None] * self.n_episodes)

    def _play(self, requests: list[Request], parameters: dict[str, Tensor], version: int) -> None:
        played_by, behaviour = self.past[0] if self.past else (version, parameters)
        self.past.append((version, {key: value.clone() for key, value in parameters.items()}))
        super()._play(requests, behaviour, played_by)

    def absorb(self, epoch: int, episodes: list[Episode]) -> None:
        self.recent_returns.extend(episode.ret for episode in episodes)

    def prepare(self, epoch: int, episodes: list[Episode], waited: float) -> StepBatch:
        scalars = {
            **episode_scalars("rollout", episodes),
            "rollout/return_running_mean": float(np.mean(self.recent_returns)),
            "rollout/policy_age": float(np.mean([epoch - episode.policy_version for episode in episodes])),
            "time/collection_wait": waited,
        }
        return step_batch(episodes, scalars)

    def contents(self) -> dict[str, Any]:
        return {"recent_returns": list(self.recent_returns), "past": list(self.past)}

    def contents_layout(self, done: int) -> dict[str, Any]:
        past = (Count(0, done), dict(self.policy.state_dict()))
        return {
            "recent_returns": ListOf(Number(), min(self.recent_returns.maxlen or 0, done * self.n_episodes)),
            "past": ListOf(past, min(self.past.maxlen or 0, done)),
        }

    def refill(self, contents: dict[str, Any]) -> None:
        self.recent_returns.extend(contents["recent_returns"])
        self.past.extend(contents["past"])
