"""What agents share that learn from a replay memory, one batch at every step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from lightning_rl.agents.base import Agent, batch_weights, per_member
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.replay import MemberReplay, Transition


@dataclass(frozen=True)
class OffPolicySettings:
    """learning_rate, batch_size: one for all members or one for each. tau: how fast target networks follow."""

    gamma: float
    learning_rate: float | Sequence[float]
    batch_size: int | Sequence[int]
    replay_size: int
    tau: float


class OffPolicyAgent(Agent):
    """Stores every transition and learns from a batch ``[N, B]`` of the past; ``weight`` ``[N, B]`` averages over it.

    action_size: 0 where actions are stored as indices. curiosity: a model whose errors are added to the rewards.
    """

    member_parts: tuple[str, ...] = ()

    def __init__(
        self, settings: OffPolicySettings, obs_size: int, action_size: int, seeds: Sequence[int], curiosity: ICM | None,
        device: str,
    ):  # fmt: skip
        super().__init__(seeds, device)
        count, size = len(self.seeds), settings.batch_size
        self.batch_sizes = [size] * count if isinstance(size, int) else list(size)
        self.learning_rate = per_member(settings.learning_rate, count, device)
        self.weight = batch_weights(self.batch_sizes, device)
        self.replay = MemberReplay(count, settings.replay_size, obs_size, action_size, device)
        self._draw = self.noise("replay", (max(self.batch_sizes),), "uniform64", self.batch_sizes)
        self.curiosity = curiosity
        if curiosity is not None:
            self.member_parts = (*self.member_parts, "curiosity")

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor) -> None:
        del over
        self.replay.add(transition)
        if not active.any():
            return
        batch = self.replay.sample(self._draw.at(step))
        if self.curiosity is not None:
            batch = batch._replace(reward=batch.reward + self.curiosity.learn(batch, self.weight, active))
        self.update(batch, active, step)

    @abstractmethod
    def update(self, batch: Transition, active: Tensor, step: int) -> Tensor:
        """One step on a batch ``[N, B]``, the ``step``-th of the training; the losses ``[N]`` before it."""

    def memory(self) -> MemberReplay:
        return self.replay

    def keep(self, rows: Tensor) -> None:
        super().keep(rows)
        self.replay.keep(rows)
