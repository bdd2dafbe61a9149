"""Updates recorded as CUDA graphs.

One launch runs a whole update, in place of hundreds of small kernel launches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lightning_rl.agents.stack import SeededMembers
from lightning_rl.core.errors import UserError
from lightning_rl.core.seeding import MemberNoise


def recorded(function: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    """Records ``function`` as a CUDA graph.

    Gives what replays it, and the tensors that hold its result after each replay.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph.replay, result


def can_record(place: Tensor) -> bool:
    """Whether a tensor is on a CUDA device, where graphs can be recorded."""
    return place.is_cuda


def places_of(members: SeededMembers) -> list[Tensor]:
    """All tensors of theirs: parameters and gradients, buffers, memory."""
    params = list(members.parameters())
    memory = members.memory()
    grads = [each.grad for each in params if each.grad is not None]
    return [*params, *grads, *members.buffers(), *(() if memory is None else memory.tensors)]


class Graphed:
    """``function(number, *inputs)``.

    On a GPU recorded at its second call and replayed from then on.

    A replay repeats the same operations on the same memory addresses. So the function must not
    branch on values of tensors; its noise comes from ``streams``, which copy each step's to a fixed
    address; where any other address changed it is recorded anew.

    Args:
        function: what it changes or gives are tensors alone.
        streams: of noise that it takes at ``number``.
        members: whose tensors it reads and writes, beside its inputs.
    """

    def __init__(
        self, function: Callable[..., Any], streams: Sequence[MemberNoise], members: SeededMembers
    ):
        self.function, self.streams, self.members = function, streams, members
        self._forget()

    def _forget(self) -> None:
        self._key: list[int] | None = None
        self._replay: Callable[[], None] | None = None
        self._result: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy does not take along the recorded graph; it records its own."""
        return {**vars(self), "_replay": None, "_result": None}

    def __call__(self, number: int, *inputs: Tensor | tuple[Tensor, ...]) -> Any:
        places = places_of(self.members)
        if not can_record(places[0]):
            return self.function(number, *inputs)
        given: list[Tensor] = []
        for each in inputs:
            given += each if isinstance(each, tuple) else [each]
        noise = [stream.hold(number) for stream in self.streams]
        key = [tensor.data_ptr() for tensor in (*noise, *places, *given)]
        if key != self._key:
            # Not recorded at once: a first call lets libraries initialise what they cannot within a
            # graph.
            self._forget()
            self._key = key
            return self.function(number, *inputs)
        if self._replay is None:
            try:
                self._replay, self._result = recorded(lambda: self.function(number, *inputs))
            except RuntimeError as error:
                reason = str(error).partition("\n")[0]
                raise UserError(
                    f"cuda_graphs=true: an update cannot be recorded ({reason}); leave it out"
                ) from error
        self._replay()
        return self._result
