"""When the updates of an epoch are compiled.

Else they are made one by one, by torch: with own networks, where somebody watches single updates,
on a GPU, in mixed precision, without numba, or because the config says so (``kernels: torch``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from pytorch_lightning import Callback, LightningModule
from torch import Tensor, nn

from lightning_rl.core.adam import is_observed
from lightning_rl.core.checks import has_numba
from lightning_rl.core.parts import is_ours
from lightning_rl.nets.compiling import as_built, unwrapped

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method
    from lightning_rl.rollouts.episode_buffer import FlatEpisodes

_AROUND_AN_UPDATE = (
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_before_zero_grad",
)


def may_compile(method: Method, number: int, net: nn.Module) -> bool:
    """Whether the updates of ``net`` by optimizer ``number`` can be compiled.

    That is, whether they are what is compiled, and nobody wants to see single ones.
    """
    *_, net = unwrapped(net)
    callbacks = cast(Any, method.trainer).callbacks
    return (
        method.cfg.kernels == "numba"
        and not method.spec.factors
        and is_ours(type(cast(Any, method).learner))
        and as_built(net)
        and all(parameter.requires_grad for parameter in net.parameters())
        and method.device.type == "cpu"
        and method.trainer.precision == "32-true"
        and _is_plain(method.optimizers()[number].optimizer)
        and not differs(method, LightningModule, *_AROUND_AN_UPDATE)
        and not any(differs(each, Callback, *_AROUND_AN_UPDATE) for each in callbacks)
        and has_numba()
    )


def _is_plain(optimizer: torch.optim.Optimizer) -> bool:
    group, *others = optimizer.param_groups
    special = others or group.get("weight_decay") or group.get("amsgrad") or group.get("maximize")
    return type(optimizer) is torch.optim.Adam and not special and not is_observed(optimizer)


def one_by_one(
    update: Callable[..., Tensor], episodes: FlatEpisodes, rows: Tensor, *examples: Tensor
) -> Tensor:
    """``update`` on what is seen at ``rows`` ``[U, B]``, and on examples ``[U, B, ..]``.

    The losses ``[U]``.
    """
    batches = zip(rows, *examples, strict=True)
    return torch.stack([update(episodes.observed(row), *each) for row, *each in batches])


def differs(own: object, base: type, *names: str) -> bool:
    """Whether an object does one of these in an own way, not as ``base`` does."""
    return any(
        getattr(getattr(own, name), "__func__", None) is not getattr(base, name) for name in names
    )
