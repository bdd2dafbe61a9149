"""``N`` members in one module, each of which is exactly what it would be alone.

Up to rounding: the order of summation in a matrix product may depend on the number of members.
Equal shapes give equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from lightning_rl.agents.optim import MemberAdam
from lightning_rl.core.seeding import NOISE_BLOCK, MemberNoise, derive_seed

if TYPE_CHECKING:
    from lightning_rl.agents.ring import MemberRing


class MemberModule(nn.Module):
    """``N`` members in one module.

    Row ``n`` of each parameter and buffer ``[N, ...]`` is of member ``n``.

    So a selection of rows is a smaller stack. Non-persistent buffers are among the rows as well.
    """

    @property
    def device(self) -> torch.device:
        """Where the members are."""
        return next(self.parameters()).device

    @property
    def num_members(self) -> int:
        return len(next(self.parameters()))

    def optimizers(self) -> list[MemberAdam]:
        """The optimizers of the members.

        Each ``MemberAdam`` among the attributes, then those of the modules within.
        """
        found = [value for value in vars(self).values() if isinstance(value, MemberAdam)]
        for child in self.children():
            if isinstance(child, MemberModule):
                found += child.optimizers()
        return found

    def rows(self, members: Tensor | None = None) -> dict[str, Tensor]:
        """All tensors ``[N, ...]`` by name, with those of the optimizers.

        members: copies of the rows of these alone, numbers ``[K]`` or a mask ``[N]``; None: the
        live tensors of all.
        """
        tensors = (*self.named_parameters(), *self.named_buffers())
        rows = {name: value.data for name, value in tensors}
        for number, optimizer in enumerate(self.optimizers()):
            for name, value in optimizer.rows().items():
                rows[f"optimizers.{number}.{name}"] = value
        if members is None:
            return rows
        return {name: value[members.to(value.device)] for name, value in rows.items()}

    def load_rows(self, rows: Mapping[str, Tensor]) -> None:
        """Replaces all tensors by these, uncopied; they may be of another number of members."""
        for name, parameter in self.named_parameters():
            parameter.data, parameter.grad = rows[name], None
        for prefix, module in self.named_modules():
            for name in module._buffers:
                module._buffers[name] = rows[f"{prefix}.{name}" if prefix else name]
        for number, optimizer in enumerate(self.optimizers()):
            own = {name: rows[f"optimizers.{number}.{name}"] for name in optimizer.rows()}
            optimizer.load_rows(own)

    @contextmanager
    def holding(self, rows: Mapping[str, Tensor]) -> Iterator[None]:
        """Inside, the members are those of ``rows``, whose changes are discarded afterwards."""
        everyone = self.rows()
        self.load_rows(rows)
        try:
            yield
        finally:
            self.load_rows(everyone)


class SeededMembers(MemberModule):
    """Members with noise streams and maybe a memory, which move to a device with them.

    Member ``n`` depends on ``seeds[n]``.
    """

    def __init__(self, seeds: Sequence[int]):
        super().__init__()
        self.seeds = list(seeds)
        self._noises: list[MemberNoise] = []

    def memory(self) -> MemberRing | None:
        """What the members remember, if they do."""
        return None

    def generators(self, purpose: str) -> list[torch.Generator]:
        """One generator per member, e.g. for the initialisation."""
        return [torch.Generator().manual_seed(derive_seed(seed, purpose)) for seed in self.seeds]

    def noise(
        self,
        purpose: str,
        shape: tuple[int, ...],
        kind: str,
        lengths: Sequence[int] | None = None,
        block: int = NOISE_BLOCK,
    ) -> MemberNoise:
        """A stream of noise that follows the members."""
        stream = MemberNoise(self.seeds, purpose, shape, kind, lengths=lengths, block=block)
        self._noises.append(stream)
        return stream

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for noise in self._noises:
            noise.to(self.device)
        for optimizer in self.optimizers():
            optimizer.to(self.device)
        memory = self.memory()
        if memory is not None:
            memory.to(self.device)
        return self


def frozen(params: Tensor) -> nn.Parameter:
    """A copy of the parameters without gradient, e.g. for a target network."""
    return nn.Parameter(params.detach().clone(), requires_grad=False)
