"""Roll-outs of the environment itself: experience of a perfect model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lightning_rl.agents.experience import Replay, UpdateBatch
from lightning_rl.agents.ring import Column
from lightning_rl.agents.stack import SeededMembers
from lightning_rl.envs.func_env import FuncEnv
from lightning_rl.functional.value_learning import boltzmann
from lightning_rl.functional.world_model import in_order
from lightning_rl.nets.recorded_pass import RecordedPass
from lightning_rl.nets.world_models import RealSteps

if TYPE_CHECKING:
    from lightning_rl.agents.model_based import ModelBasedConfig


class EnvironmentRollouts(Replay):
    """Roll-outs from remembered states of the environment."""

    def __init__(self, cfg: ModelBasedConfig, env: FuncEnv, members: SeededMembers):
        super().__init__(cfg, env, members)
        of_each = (cfg.rollout_length, cfg.batch_size)
        actions, events = (*of_each, env.action_size), (*of_each, env.step_noise_size)
        self._actions = self.stream(members, "imagined actions", actions, "gumbel")
        self._events = self.stream(members, "imagined events", events, "uniform")

    def columns(self) -> Mapping[str, Column]:
        state = self.env.reset(torch.zeros(1, self.env.reset_noise_size))
        self._state_type = state.dtype
        kept_type = torch.int16 if self.env.small_state else state.dtype
        return {"state": Column(state.shape[-1], kept_type)}

    def remember(self, state: Tensor, real: RealSteps) -> None:
        self.memory.add({"state": state})

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        self.memory.restore(memory)
        state = memory["state"].flatten(0, 1).to(self._state_type)
        if len(state):
            self.env.require_possible(state, self.env.observe(state))

    def sample(self, number: int) -> Tensor:
        return self.memory.sample(self._draw.at(number))["state"].to(self._state_type)

    def batch(self, values: RecordedPass, number: int, sample: Tensor) -> UpdateBatch:
        state, obs, steps = sample, self.env.observe(sample), []
        gumbels, events = self._actions.at(number), self._events.at(number)
        for gumbel, event in zip(gumbels.unbind(1), events.unbind(1), strict=True):
            q = values(obs)
            action = boltzmann(q, self.cfg.temperature, gumbel)
            state, obs, reward, terminated, _ = self.env.step(state, action, event)
            steps.append((q, action, reward, (~terminated).float(), obs))
        q, action, reward, continues, obs = in_order(steps)
        return self.imagined(q, action, reward, continues, obs)
