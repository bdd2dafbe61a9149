"""What agents share that learn from a replay memory, one batch at every step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pydantic import PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor

from lightning_rl.agents.base import Agent, AgentConfig, NetConfig, Sizes, batch_weights
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.replay import MemberReplay, Transition
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, Batch, Share
from lightning_rl.envs.spec import EnvSpec


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class OffPolicyConfig(AgentConfig, NetConfig):
    """Keys of agents with a replay memory and target networks."""

    batch_size: Batch
    replay_size: PositiveInt
    tau: Share

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size}


class OffPolicyAgent(Agent):
    """Stores every transition and learns from a batch ``[N, B]`` of the past; ``weight`` ``[N, B]`` averages over it.

    vectors: actions are stored as vectors, not as indices.
    """

    weight: Tensor

    def __init__(
        self, cfg: OffPolicyConfig, sizes: Sizes, seeds: Sequence[int], variation: Variation | None, vectors: bool
    ):  # fmt: skip
        super().__init__(seeds)
        self.cfg, count = cfg, len(self.seeds)
        self.batch_sizes = list(variation.batch_sizes) if variation else [cfg.batch_size] * count
        self.register_buffer("weight", batch_weights(self.batch_sizes), persistent=False)
        self.replay = MemberReplay(count, cfg.replay_size, sizes.obs_size, sizes.action_size if vectors else 0)
        self._draw = self.noise("replay", (max(self.batch_sizes),), "uniform64", self.batch_sizes)
        self.curiosity = ICM(cfg, sizes, vectors, self.generators("curiosity")) if cfg.curiosity == "icm" else None

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor) -> None:
        self.replay.store(transition)
        if not active.any():
            return
        batch = self.replay.batch(self._draw.at(step))
        if self.curiosity is not None:
            batch = batch._replace(reward=batch.reward + self.curiosity.learn(batch, self.weight, active))
        self.update(batch, active, step)

    @abstractmethod
    def update(self, batch: Transition, active: Tensor, step: int) -> Tensor:
        """One step on a batch ``[N, B]``, the ``step``-th of the training; the losses ``[N]`` before it."""

    def memory(self) -> MemberReplay:
        return self.replay
