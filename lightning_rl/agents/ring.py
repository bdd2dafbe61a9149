"""Replay memory of whatever an agent wants to keep, in the type that it needs, with a member axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lightning_rl.core.contents import Also, TensorOf
from lightning_rl.core.limits import WHOLE


@dataclass(frozen=True)
class Column:
    """``size`` numbers of type ``dtype`` in each row. Bits and small integers take a byte or two instead of four."""

    size: int
    dtype: torch.dtype


class MemberRing:
    """A ring of ``capacity`` rows for each of ``N`` members, allocated once.

    Members step together, hence one write position for all. Only what has been written is touched.
    """

    def __init__(self, num_members: int, capacity: int, columns: Mapping[str, Column], device: torch.device | str | None = None):
        self.capacity = capacity
        self.data = {
            name: torch.empty(num_members * capacity, column.size, dtype=column.dtype, device=device)
            for name, column in columns.items()
        }
        self._first = torch.arange(num_members, device=device) * capacity  # of each member that is left
        self._written = 0

    def __len__(self) -> int:
        """Rows to draw from, the same for every member."""
        return min(self._written, self.capacity)

    def add(self, row: Mapping[str, Tensor]) -> None:
        """Writes one row ``[N, size]`` of each column for every member; the oldest gives way."""
        place = self._first + self._written % self.capacity
        for name, data in self.data.items():
            data[place] = row[name].to(data.dtype)
        self._written += 1

    def sample(self, noise: Tensor, members: slice) -> dict[str, Tensor]:
        """Rows ``[M, B, size]`` of ``members`` drawn with replacement, for uniform noise ``[M, B]`` in double precision."""
        index = (noise * len(self)).long() + self._first[members].unsqueeze(1)
        return {name: data.index_select(0, index.flatten()).unflatten(0, index.shape) for name, data in self.data.items()}

    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` alone; nothing is copied."""
        self._first = self._first[rows]

    def to(self, device: torch.device) -> None:
        """Goes on on this device."""
        self._first = self._first.to(device)
        self.data = {name: data.to(device) for name, data in self.data.items()}

    def snapshot(self) -> dict[str, Tensor]:
        """What has been written, ``[N, len, size]`` of each column, and how many rows were ever ``written [N]``."""
        written = self._written_rows()
        rows = {name: data[written] for name, data in self.data.items()}
        return {**rows, "written": torch.full((len(self._first),), self._written)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from a snapshot of as many members."""
        self._written = int(state["written"][0])
        written = self._written_rows()
        for name, data in self.data.items():
            if state[name].shape != (*written.shape, data.shape[1]):
                raise ValueError(
                    f"{name} {list(state[name].shape)} do not fit {len(self._first)} members of capacity {self.capacity}"
                )
            data[written] = state[name].to(data.device)

    def layout(self, members: int | str, limits: Mapping[str, tuple[float, float]] | None = None) -> Also:
        """What ``snapshot`` may look like. members: how many, or the name of that dimension; limits: of columns, by name."""
        columns = {
            name: TensorOf(data.dtype, (members, "rows", data.shape[1]), *(limits or {}).get(name, ()))
            for name, data in self.data.items()
        }
        return Also({**columns, "written": TensorOf(torch.int64, (members,), 0, WHOLE)}, self._inconsistency)

    def _inconsistency(self, state: Mapping[str, Tensor]) -> str | None:
        written, rows = state["written"].tolist(), state[next(iter(self.data))].shape[1]
        wrong = [count for count in written if min(count, self.capacity) != rows or count != written[0]]
        return f"{wrong[0]} rows written, but {rows} are there" if wrong else None

    def _written_rows(self) -> Tensor:
        return self._first.unsqueeze(1) + torch.arange(len(self), device=self._first.device)
