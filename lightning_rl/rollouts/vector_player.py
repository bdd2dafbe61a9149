"""Playing episodes whose steps pay a vector of rewards, which commands are reduced by."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from lightning_rl.core.types import Episode, FloatArray, Request
from lightning_rl.envs.gym import rollout_env
from lightning_rl.envs.spaces import Env
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.envs.vector_reward import VectorReward, kept_rewards
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.player import CommandRule, Player


class VectorPlayer(Player):
    """The same, but each episode has its ``rewards``, and the rule is given those of a step.

    Args:
        spec, policy, version: as for ``Player``; a task without objectives has its reward as one.
        rule: (command [B, C], rewards [B, K]) -> command of the next step [B, C].
    """

    def __init__(self, spec: EnvSpec, policy: Actor, version: Tensor | int, rule: CommandRule):
        super().__init__(spec, policy, version, self._left)
        self.rule = rule
        self._kept: list[VectorReward] = []  # of the chunk that is played

    def play(self, requests: Sequence[Request], envs: Sequence[Env] | None = None) -> list[Episode]:
        if not self.spec.objectives:
            played = super().play(requests, envs)
            return [dataclasses.replace(each, rewards=each.reward[:, None]) for each in played]
        if envs is None:
            while len(self._envs) < len(requests):
                self._envs.append(rollout_env(self.spec))
            envs = self._envs[: len(requests)]
        self._kept = [kept_rewards(env) for env in envs]
        played = super().play(requests, envs)
        return [
            dataclasses.replace(episode, rewards=np.stack(kept.rewards))
            for episode, kept in zip(played, self._kept, strict=True)
        ]

    def _left(self, command: FloatArray, reward: FloatArray) -> FloatArray:
        """What is left of the commands ``[B, C]`` of the episodes that have just made a step."""
        if not self.spec.objectives:
            return self.rule(command, reward)
        # in lock-step, so those that are over have fewer rewards
        latest = max(len(kept.rewards) for kept in self._kept)
        paid = [kept.rewards[-1] for kept in self._kept if len(kept.rewards) == latest]
        return self.rule(command, np.stack(paid))
