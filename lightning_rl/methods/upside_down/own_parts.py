"""What parts of a user's return, checked as it comes in, so that errors name the part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import shown
from lightning_rl.core.parts import Part, is_ours

_OFF = 0.01  # by which a mean of float32 may miss 1


def checked_result(
    part: Part,
    method: str,
    result: Any,
    shape: Sequence[int],
    meaning: str,
    lowest: Sequence[float] | float = -math.inf,
    of_mean_1: bool = False,
    like: Tensor | None = None,
) -> Any:
    """What ``method`` of a part returned, as a finite float32 tensor; of our parts as it is.

    Args:
        part: whose it is.
        method: its name.
        result: a tensor, or what torch makes one of: a NumPy array, numbers, a tuple of tensors.
        shape: that it must have.
        meaning: of the shape, for the message.
        lowest: that each number may be.
        of_mean_1: whether the mean must be 1.
        like: the result is to be on this tensor's device.

    Raises:
        UserError: of one line with part, module, what was returned and what is needed.
    """
    if is_ours(type(part)):
        return result
    where = f"{type(part).__name__}.{method} (module {type(part).__module__}) returned"
    needs = f"needs {list(shape)}, {meaning}"
    device = None if like is None else like.device
    try:
        found = torch.as_tensor(result, dtype=torch.float32, device=device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{where} {shown(result)}, {needs}") from error
    if found.shape != torch.Size(shape):
        raise UserError(f"{where} {list(found.shape)}, {needs}")
    bad = found[~found.isfinite()]
    if len(bad):
        raise UserError(
            f"{where} {float(bad[0])} as {len(bad)} of {found.numel()} numbers, {needs}, finite"
        )
    low = found < torch.as_tensor(lowest, device=device)
    if low.any():
        raise UserError(f"{where} {float(found[low][0]):g}, {needs}, none below 0")
    if of_mean_1 and abs(float(found.mean()) - 1) > _OFF:
        raise UserError(
            f"{where} numbers of mean {float(found.mean()):g}, {needs}, of mean 1; divide by "
            "the mean"
        )
    return found
