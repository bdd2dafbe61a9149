"""Objects whose tensors share a leading member axis: saving, loading and slicing them as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lightning_rl.core.contents import rows_like


class Stacked:
    """State of ``N`` members in tensors ``[N, ...]``, and parts that are stacked themselves.

    Row ``n`` of every tensor is all there is of member ``n``, so a selection of rows is a smaller stack.
    """

    member_tensors: tuple[str, ...] = ()
    member_parts: tuple[str, ...] = ()

    def state_dict(self) -> dict[str, Tensor]:
        """The live tensors by name, ``[N, ...]``; those of parts as ``part.name``."""
        state = {name: getattr(self, name).detach() for name in self.member_tensors}
        for part in self.member_parts:
            state |= {f"{part}.{name}": value for name, value in getattr(self, part).state_dict().items()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Takes copies of the tensors of ``state``, which may have another number of members."""
        mine = self.state_dict()
        missing = mine.keys() ^ state.keys()
        if missing:
            raise ValueError(f"the state has other tensors than {type(self).__name__}: {', '.join(sorted(missing))}")
        for name, value in mine.items():
            if value.shape[1:] != state[name].shape[1:]:
                raise ValueError(f"{name} has rows {list(state[name].shape[1:])} in the state and {list(value.shape[1:])} here")
        for name in self.member_tensors:
            setattr(self, name, state[name].detach().clone())
        for part in self.member_parts:
            prefix = f"{part}."
            getattr(self, part).load_state_dict(
                {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
            )

    def layout(self, members: int | str, num_actions: int) -> dict[str, Any]:
        """What ``state_dict`` may look like. members: how many, or the name of that dimension."""
        del num_actions
        return rows_like(self.state_dict(), members)

    def keep(self, rows: Tensor) -> None:
        """Goes on with the members ``rows`` ``[M]`` int64 alone, in that order."""
        self.load_state_dict({name: value[rows] for name, value in self.state_dict().items()})


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
        """The optimisers of the members, in a fixed order."""
        return [optimizer for child in self.children() if isinstance(child, MemberModule) for optimizer in child.optimizers()]

    def rows(self) -> dict[str, Tensor]:
        """The live tensors ``[N, ...]`` by name, with those of the optimisers."""
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
