"""Objects whose tensors share a leading member axis: saving, loading and slicing them as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

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
