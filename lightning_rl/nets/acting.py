"""How a policy chooses actions while episodes are played: compiled where it can be, or by torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch

from lightning_rl.core.types import Array, FloatArray
from lightning_rl.nets.compiling import may_compile
from lightning_rl.nets.policies import Actor, Policy

Act = Callable[[FloatArray, FloatArray | None, FloatArray, FloatArray | None], Array]
"""(obs [B, O], command [B, C], noise [B, A], guidance [B]) -> actions; see ``Actor.act``."""


@contextmanager
def playing(actor: Actor) -> Iterator[Act]:
    """The actor with the weights that it has now."""
    if not may_compile(actor):
        yield _by_torch(actor)
        return
    from lightning_rl.core.compiled import one_thread
    from lightning_rl.nets.fused_acting import acting

    with one_thread():
        yield acting(cast(Policy, actor))


def compile_acting(actor: Actor) -> None:
    """Compiles what ``playing`` uses, or loads it: processes that are forked later share it."""
    if may_compile(actor):
        from lightning_rl.nets.fused_acting import act_once

        act_once(cast(Policy, actor))


def _by_torch(actor: Actor) -> Act:
    def act(obs: Any, command: Any, noise: Any, guidance: Any) -> Array:
        inputs = [obs, command, noise]
        if guidance is not None:
            inputs.append(guidance[:, np.newaxis])
        tensors: Any = (None if each is None else torch.from_numpy(each) for each in inputs)
        return actor.act(*tensors).numpy()

    return act
