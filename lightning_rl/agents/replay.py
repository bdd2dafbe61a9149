"""Agents that learn from a replay memory, a batch at every step, with target networks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass
from torch import Tensor

from lightning_rl.agents.base import Agent, AgentConfig, NetConfig, Transition
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.optim import learners_only
from lightning_rl.agents.ring import Column, MemberRing
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, Batch, Share
from lightning_rl.envs.spec import EnvSpec


class MemberReplay(MemberRing):
    """A ring of ``capacity`` transitions for each of ``N`` members.

    A transition is one row of numbers, so that a batch is a single gather. Memory: ``4 N capacity
    (2 O + A + 2)`` bytes, of which only what has been written is touched.

    action_size: 0 for discrete actions, of which there are ``num_actions``.
    """

    def __init__(
        self,
        num_members: int,
        capacity: int,
        obs_size: int,
        action_size: int,
        num_actions: float = math.inf,
    ):
        self.action_size, self.num_actions = action_size, num_actions
        self._sizes = [obs_size, max(action_size, 1), 1, 1, obs_size]
        super().__init__(num_members, capacity, {"rows": Column(sum(self._sizes), torch.float32)})

    def store(self, step: Transition, over: Tensor) -> None:
        """Writes one step of every member; the oldest gives way."""
        action = step.action if self.action_size else step.action.unsqueeze(-1).float()
        reward, discount = step.reward.unsqueeze(-1), step.discount.unsqueeze(-1)
        self.add({"rows": torch.cat([step.obs, action, reward, discount, step.next_obs], dim=-1)})

    def batch(self, noise: Tensor) -> Transition:
        """A batch drawn uniformly with replacement.

        noise ``[N, B]``: uniform in [0, 1), double precision.
        """
        return self.transitions(self.sample(noise)["rows"])

    def transitions(self, rows: Tensor) -> Transition:
        """The transitions ``[...]`` that rows ``[..., size]`` of the memory hold."""
        obs, action, reward, discount, next_obs = rows.split(self._sizes, dim=-1)
        if not self.action_size:
            action = action.squeeze(-1).long()
        return Transition(obs, action, reward.squeeze(-1), discount.squeeze(-1), next_obs)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        super().restore(state)
        action = self.data["rows"][self._written_rows().flatten(), self._sizes[0]]
        if not self.action_size and not bool(((action >= 0) & (action < self.num_actions)).all()):
            raise ValueError(f"memory: an action that is none of 0 to {self.num_actions - 1}")


@dataclass(frozen=True, config=STRICT, kw_only=True)
class OffPolicyConfig(AgentConfig, NetConfig):
    """Keys of agents with a replay memory and target networks."""

    batch_size: Batch
    replay_size: PositiveInt
    tau: Share

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size}


def batch_weights(sizes: Sequence[int]) -> Tensor:
    """Weights ``[N, max(sizes)]`` of a batch of ``sizes[n]`` rows for member ``n``.

    1 / sizes[n] for these rows, 0 for the padding.
    """
    size = torch.tensor(sizes).unsqueeze(1)
    inside = torch.arange(max(sizes)) < size
    return inside / size.float()


def anything_follows(discount: Tensor) -> bool:
    """Whether some discount is not 0, so that next values are needed.

    None is where all episodes have one step.

    Always True on a GPU: waiting for the answer costs more than the next values.
    """
    return discount.device.type != "cpu" or bool(discount.flatten()[0]) or bool(discount.any())


@torch.no_grad()
def track(target: Tensor, params: Tensor, tau: float, active: Tensor | None) -> None:
    """``target <- target + tau (params - target)`` in place for active members; all ``[N, D]``."""
    if active is None:
        target.lerp_(params, tau)
    else:
        target.lerp_(learners_only(params, active), (tau * active.to(target.dtype)).unsqueeze(1))


class OffPolicyAgent(Agent):
    """Stores every transition and learns from a batch ``[N, B]`` of stored ones.

    ``weight`` ``[N, B]``: 1 / B, 0 for padding.

    vectors: actions are stored as vectors, not as indices.
    """

    weight: Tensor
    replay: Any  # a MemberReplay, of images a FrameReplay

    def __init__(
        self,
        cfg: OffPolicyConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None,
        vectors: bool,
    ):
        super().__init__(seeds)
        self.cfg = cfg
        count, action_size = len(self.seeds), spec.action_size if vectors else 0
        self.batch_sizes = list(variation.batch_sizes) if variation else [cfg.batch_size] * count
        self.register_buffer("weight", batch_weights(self.batch_sizes), persistent=False)
        if spec.frames is None:
            self.replay = MemberReplay(
                count, cfg.replay_size, spec.obs_size, action_size, spec.action_size
            )
        else:
            from lightning_rl.agents.frame_replay import FrameReplay

            self.replay = FrameReplay(count, cfg.replay_size, spec.frames, spec.action_size)
        self.replay_noise = self.noise(
            "replay", (max(self.batch_sizes),), "uniform64", self.batch_sizes
        )
        self.curiosity: ICM | None = None
        if cfg.curiosity == "icm":
            self.curiosity = ICM(cfg, spec, vectors, self.generators("curiosity"))

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor | None) -> None:
        self.replay.store(transition, over)
        if active is None or active.any():
            self.learn_from_replay(self.replay_noise.at(step), active, step)

    def learn_from_replay(self, noise: Tensor, active: Tensor | None, step: int) -> None:
        """One step on the batch that ``noise`` ``[N, B]`` draws."""
        batch = self.replay.batch(noise)
        if self.curiosity is not None:
            bonus = self.curiosity.learn(batch, self.weight, active)
            batch = batch._replace(reward=batch.reward + bonus)
        self.update(batch, active, step)

    @abstractmethod
    def update(self, batch: Transition, active: Tensor | None, step: int) -> Tensor:
        """One step on a batch ``[N, B]``, the ``step``-th of the training.

        The losses ``[N]`` before it.
        """

    def memory(self) -> MemberRing:
        return self.replay
