"""Memories of the last steps of each member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Column:
    """``size`` numbers of type ``dtype`` in each row.

    Bits and small integers take a byte or two instead of four.
    """

    size: int
    dtype: torch.dtype


class MemberRing:
    """A ring of ``capacity`` rows for each of ``N`` members, allocated once.

    Members step together, hence one write position for all. Only what has been written is touched.

    written: how many rows of each member ever were.
    """

    def __init__(self, num_members: int, capacity: int, columns: Mapping[str, Column]):
        self.capacity = capacity
        self.data = {
            name: torch.empty(num_members * capacity, column.size, dtype=column.dtype)
            for name, column in columns.items()
        }
        self.first = torch.arange(num_members) * capacity  # of each member that is left
        self.written = 0
        self.count = torch.zeros((), dtype=torch.float64)  # the length, where the rows are

    def __len__(self) -> int:
        """Rows to draw from, the same for every member."""
        return min(self.written, self.capacity)

    def add(self, row: Mapping[str, Tensor]) -> None:
        """Writes one row ``[N, size]`` of each column for every member; the oldest gives way."""
        place = self.first + self.written % self.capacity
        for name, data in self.data.items():
            data[place] = row[name].to(data.dtype)
        self.wrote(1)

    def wrote(self, rows: int) -> None:
        """So many rows of every member are there now, each at its place."""
        self.written += rows
        self.count.fill_(len(self))

    def sample(self, noise: Tensor) -> dict[str, Tensor]:
        """Rows ``[N, B, size]`` drawn with replacement.

        noise ``[N, B]``: uniform in [0, 1), double precision.
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

    def keep(self, members: Tensor) -> None:
        """Goes on with these members alone; nothing is copied."""
        self.first = self.first[members]

    def to(self, device: torch.device) -> None:
        """Goes on on this device."""
        self.first, self.count = self.first.to(device), self.count.to(device)
        self.data = {name: data.to(device) for name, data in self.data.items()}

    def snapshot(self) -> dict[str, Tensor]:
        """What has been written, ``[N, len, size]`` of each column.

        ``written`` ``[N]``: how many rows ever were.
        """
        rows = self._written_rows()
        written = {name: data[rows] for name, data in self.data.items()}
        return {**written, "written": torch.full((len(self.first),), self.written)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from a snapshot of as many members."""
        self.written = int(state["written"][0])
        self.count.fill_(len(self))
        rows = self._written_rows()
        for name, data in self.data.items():
            if state[name].shape != (*rows.shape, data.shape[1]):
                raise ValueError(
                    f"{name} {list(state[name].shape)} do not fit {len(self.first)} members of "
                    f"capacity {self.capacity}"
                )
            data[rows] = state[name].to(data.device)

    def _written_rows(self) -> Tensor:
        return self.first.unsqueeze(1) + torch.arange(len(self), device=self.first.device)
