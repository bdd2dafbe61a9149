"""Replay memories with a member axis, and the base class of agents that learn from one, a batch
at every step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass as config_dataclass
from torch import Tensor

from lightning_rl.agents.base import Agent, AgentConfig, NetConfig, Transition, batch_weights
from lightning_rl.agents.icm import ICM
from lightning_rl.agents.variation import Variation
from lightning_rl.core.schema import STRICT, Batch, Share
from lightning_rl.envs.spec import EnvSpec


@dataclass(frozen=True)
class Column:
    """``size`` numbers of type ``dtype`` in each row. Bits and small integers take a byte or two
    instead of four.
    """

    size: int
    dtype: torch.dtype


class MemberRing:
    """A ring of ``capacity`` rows for each of ``N`` members, allocated once.

    Members step together, hence one write position for all. Only what has been written is touched.
    """

    def __init__(self, num_members: int, capacity: int, columns: Mapping[str, Column]):
        self.capacity = capacity
        self.data = {
            name: torch.empty(num_members * capacity, column.size, dtype=column.dtype)
            for name, column in columns.items()
        }
        self.first = torch.arange(num_members) * capacity  # of each member that is left
        self._written = 0
        self.count = torch.zeros((), dtype=torch.float64)  # the length, where the rows are

    def __len__(self) -> int:
        """Rows to draw from, the same for every member."""
        return min(self._written, self.capacity)

    def add(self, row: Mapping[str, Tensor]) -> None:
        """Writes one row ``[N, size]`` of each column for every member; the oldest gives way."""
        place = self.first + self._written % self.capacity
        for name, data in self.data.items():
            data[place] = row[name].to(data.dtype)
        self._written += 1
        if self._written <= self.capacity:
            self.count.fill_(self._written)

    def sample(self, noise: Tensor) -> dict[str, Tensor]:
        """Rows ``[N, B, size]`` drawn with replacement, for uniform noise ``[N, B]`` in double
        precision.
        """
        index = (noise * self.count).long() + self.first.unsqueeze(1)
        return {
            name: data.index_select(0, index.flatten()).unflatten(0, index.shape)
            for name, data in self.data.items()
        }

    @property
    def tensors(self) -> list[Tensor]:
        """All that is read and written."""
        return [*self.data.values(), self.first, self.count]

    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` alone; nothing is copied."""
        self.first = self.first[rows]

    def to(self, device: torch.device) -> None:
        """Goes on on this device."""
        self.first, self.count = self.first.to(device), self.count.to(device)
        self.data = {name: data.to(device) for name, data in self.data.items()}

    def snapshot(self) -> dict[str, Tensor]:
        """What has been written, ``[N, len, size]`` of each column, and how many rows were ever
        ``written [N]``.
        """
        written = self._written_rows()
        rows = {name: data[written] for name, data in self.data.items()}
        return {**rows, "written": torch.full((len(self.first),), self._written)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from a snapshot of as many members."""
        self._written = int(state["written"][0])
        self.count.fill_(len(self))
        written = self._written_rows()
        for name, data in self.data.items():
            if state[name].shape != (*written.shape, data.shape[1]):
                raise ValueError(
                    f"{name} {list(state[name].shape)} do not fit {len(self.first)} members of "
                    f"capacity {self.capacity}"
                )
            data[written] = state[name].to(data.device)

    def _written_rows(self) -> Tensor:
        return self.first.unsqueeze(1) + torch.arange(len(self), device=self.first.device)


class MemberReplay(MemberRing):
    """A ring of ``capacity`` transitions for each of ``N`` members.

    A transition is one row of numbers, so that a batch is a single gather. Memory: ``4 N capacity
    (2 O + A + 2)`` bytes, of which only what has been written is touched.

    action_size: 0 for discrete actions.
    """

    def __init__(self, num_members: int, capacity: int, obs_size: int, action_size: int):
        self.obs_size, self.action_size = obs_size, action_size
        self._sizes = [obs_size, max(action_size, 1), 1, 1, obs_size]
        super().__init__(num_members, capacity, {"rows": Column(sum(self._sizes), torch.float32)})

    def store(self, step: Transition) -> None:
        """Writes one step of every member; the oldest gives way."""
        action = step.action if self.action_size else step.action.unsqueeze(-1).float()
        row = torch.cat(
            [
                step.obs,
                action,
                step.reward.unsqueeze(-1),
                step.discount.unsqueeze(-1),
                step.next_obs,
            ],
            dim=-1,
        )
        self.add({"rows": row})

    def batch(self, noise: Tensor) -> Transition:
        """A batch drawn uniformly with replacement for uniform noise ``[N, B]`` in [0, 1),
        double precision.
        """
        return self.transitions(self.sample(noise)["rows"])

    def transitions(self, rows: Tensor) -> Transition:
        """The transitions ``[...]`` that rows ``[..., size]`` of the memory hold."""
        obs, action, reward, discount, next_obs = rows.split(self._sizes, dim=-1)
        act = action if self.action_size else action.squeeze(-1).long()
        return Transition(obs, act, reward.squeeze(-1), discount.squeeze(-1), next_obs)

    def require_actions(self, num_actions: int) -> None:
        """ValueError unless stored actions that are indices are below ``num_actions``."""
        action = self.data["rows"][self._written_rows().flatten(), self.obs_size]
        if not self.action_size and not bool(((action >= 0) & (action < num_actions)).all()):
            raise ValueError(f"memory: an action that is none of 0 to {num_actions - 1}")


@config_dataclass(frozen=True, config=STRICT, kw_only=True)
class OffPolicyConfig(AgentConfig, NetConfig):
    """Keys of agents with a replay memory and target networks."""

    batch_size: Batch
    replay_size: PositiveInt
    tau: Share

    def stored_steps(self, spec: EnvSpec) -> dict[str, int]:
        return {"replay_size": self.replay_size}


def anything_follows(discount: Tensor) -> bool:
    """Whether some discount is not 0, so that next values are needed: none is where all episodes
    have one step.

    Always True on a GPU: waiting for the answer costs more than the next values.
    """
    return discount.device.type != "cpu" or bool(discount.flatten()[0]) or bool(discount.any())


class OffPolicyAgent(Agent):
    """Stores every transition and learns from a batch ``[N, B]`` of stored ones; ``weight`` ``[N,
    B]``: 1 / B, 0 for padding.

    vectors: actions are stored as vectors, not as indices.
    """

    weight: Tensor

    def __init__(
        self,
        cfg: OffPolicyConfig,
        spec: EnvSpec,
        seeds: Sequence[int],
        variation: Variation | None,
        vectors: bool,
    ):
        super().__init__(seeds)
        self.cfg, count = cfg, len(self.seeds)
        self.batch_sizes = list(variation.batch_sizes) if variation else [cfg.batch_size] * count
        self.register_buffer("weight", batch_weights(self.batch_sizes), persistent=False)
        self.replay = MemberReplay(
            count, cfg.replay_size, spec.obs_size, spec.action_size if vectors else 0
        )
        self._draw = self.noise("replay", (max(self.batch_sizes),), "uniform64", self.batch_sizes)
        self.curiosity = (
            ICM(cfg, spec, vectors, self.generators("curiosity"))
            if cfg.curiosity == "icm"
            else None
        )

    def learn(self, transition: Transition, over: Tensor, step: int, active: Tensor | None) -> None:
        self.replay.store(transition)
        if active is not None and not active.any():
            return
        self.practise(self._draw.at(step), active, step)

    def practise(self, noise: Tensor, active: Tensor | None, step: int) -> None:
        """One step on the batch that ``noise`` ``[N, B]`` draws."""
        batch = self.replay.batch(noise)
        if self.curiosity is not None:
            batch = batch._replace(
                reward=batch.reward + self.curiosity.learn(batch, self.weight, active)
            )
        self.update(batch, active, step)

    @abstractmethod
    def update(self, batch: Transition, active: Tensor | None, step: int) -> Tensor:
        """One step on a batch ``[N, B]``, the ``step``-th of the training; the losses ``[N]``
        before it.
        """

    def memory(self) -> MemberReplay:
        return self.replay
