"""Objects whose tensors share a leading member axis: saving, loading and slicing them as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class MemberModule(nn.Module):
    """``N`` members in one module: parameters and buffers are ``[N, ...]``, and row ``n`` is all there is of member ``n``.

    So a selection of rows is a smaller stack. Buffers that are not persistent follow the members all the same.
    """

    @property
    def device(self) -> torch.device:
        """Where the members are."""
        return next(self.parameters()).device

    @property
    def num_members(self) -> int:
        return len(next(self.parameters()))

    def optimizers(self) -> list[Any]:
        """The optimizers of the members, in a fixed order."""
        return [optimizer for child in self.children() if isinstance(child, MemberModule) for optimizer in child.optimizers()]

    def rows(self) -> dict[str, Tensor]:
        """The live tensors ``[N, ...]`` by name, with those of the optimizers."""
        rows = {name: value.data for name, value in (*self.named_parameters(), *self.named_buffers())}
        for number, optimizer in enumerate(self.optimizers()):
            rows |= {f"optimizers.{number}.{name}": value for name, value in optimizer.rows().items()}
        return rows

    def load_rows(self, rows: Mapping[str, Tensor]) -> None:
        """Goes on with these tensors themselves, not with copies, maybe of another number of members."""
        for name, parameter in self.named_parameters():
            parameter.data, parameter.grad = rows[name], None
        for prefix, module in self.named_modules():
            for name in module._buffers:
                module._buffers[name] = rows[f"{prefix}.{name}" if prefix else name]
        for number, optimizer in enumerate(self.optimizers()):
            prefix = f"optimizers.{number}."
            optimizer.load_rows({name.removeprefix(prefix): value for name, value in rows.items() if name.startswith(prefix)})

    @contextmanager
    def only(self, rows: Tensor) -> Iterator[None]:
        """Inside, these members (indices or mask) are all; what becomes of their tensors there is lost."""
        everyone = self.rows()
        self.load_rows({name: value[rows] for name, value in everyone.items()})
        try:
            yield
        finally:
            self.load_rows(everyone)
