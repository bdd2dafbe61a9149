"""Networks that a user gives in place of a method's: what may be given, whether it fits, how a
checkpoint names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lightning_rl.core.config import refuse_ignored
from lightning_rl.core.contents import describe
from lightning_rl.core.errors import UserError
from lightning_rl.core.limits import NAME_BYTES, shorten
from lightning_rl.nets.layers import evaluating

if TYPE_CHECKING:
    from lightning_rl.methods.base import Method

_REMEDY = "docs/how_to/own_network.md has the sizes"
_ROWS = 2
"""Of the batch that shows whether a network fits."""


def checked_networks(networks: Any, method: Method) -> dict[str, nn.Module]:
    """The networks by name; UserError where the method with its config has no use for one, or
    one is no network.
    """
    networks = named_networks(networks)
    known, absent = ", ".join(method.network_names) or "none", method.cfg.absent_networks()
    for name, net in networks.items():
        if name not in method.network_names:
            raise UserError(
                f"networks: {method.implementation} takes no '{name}'; it takes: {known}"
            )
        if name in absent:
            raise UserError(f"networks: {absent[name]}")
        if isinstance(net, str):  # the hyper-parameters of a checkpoint
            raise UserError(
                f"networks: {name} is the name '{shorten(net)}'; give the network that it was "
                "trained with"
            )
        if not isinstance(net, nn.Module):
            raise UserError(
                f"networks: {name} is {_kind(net)}, expected an instance of torch.nn.Module; give "
                "one"
            )
        if not any(True for _ in net.parameters()):
            raise UserError(
                f"networks: {name} has no parameters, so nothing of it could be trained; give one "
                "with layers"
            )
    return dict(networks)


def named_networks(networks: Any) -> Mapping[str, Any]:
    """What a user gives as networks; UserError where that is no dict by name."""
    if not isinstance(networks, Mapping) or not all(isinstance(name, str) for name in networks):
        raise UserError(
            f"networks: {_kind(networks)}, expected a dict by name; give networks={{'policy': net}}"
        )
    return networks


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else describe(value)


def refuse_sizes(method: Method, where: str, settings: Iterable[str]) -> None:
    """UserError for a key that was set, but has the sizes only of networks that the user's own
    replace.
    """
    built = {key for name, key in method.network_names.items() if name not in method.own_networks}
    replaced = {
        key: name for name, key in reversed(dict(method.network_names).items()) if key not in built
    }
    reason = "networks={{'{}': ...}} has sizes of its own; leave it out"
    refuse_ignored({key: reason.format(name) for key, name in replaced.items()}, (where, settings))


def class_names(networks: Mapping[str, nn.Module]) -> dict[str, str]:
    """The class of each network, e.g. ``my_network.Wide``, as runs and checkpoints record it."""
    return {
        name: f"{type(net).__module__}.{type(net).__qualname__}"[:NAME_BYTES]
        for name, net in networks.items()
    }


def require_given(
    hparams: Any, given: Iterable[str], path: Path, names: Iterable[str] | None = None
) -> None:
    """UserError where a checkpoint was trained with own networks that are not ``given``; older ones
    do not say.

    hparams: its hyper-parameters, as they were read. names: look at those networks alone.
    """
    recorded = hparams.get("networks") if isinstance(hparams, Mapping) else None
    own = (
        {name: net for name, net in recorded.items() if names is None or name in names}
        if isinstance(recorded, Mapping)
        else {}
    )
    if own.keys() - set(given):
        found = ", ".join(f"{name}: {net}" for name, net in own.items())
        raise UserError(
            f"checkpoint '{path}' was trained with own networks ({shorten(found, 300)}); from "
            "Python give networks={...}; the command line cannot take them"
        )


def check_shapes(name: str, net: nn.Module, takes: Sequence[int], gives: Sequence[int]) -> None:
    """UserError where a user's network does not fit: tried on a batch of zeros, in evaluation mode.

    Layers that take their sizes from their first batch, such as ``LazyLinear``, get them here.

    Args:
        name: what it is given as.
        net: the network.
        takes: the size ``[B, size]`` of each input.
        gives: of the output ``[B, *gives]``.
    """
    place = next((parameter.device for parameter in net.parameters()), torch.device("cpu"))
    zeros, expected = [torch.zeros(_ROWS, size, device=place) for size in takes], [_ROWS, *gives]
    try:
        with (
            evaluating(net),
            torch.random.fork_rng(devices=()),
        ):  # leaves the run's random numbers as they are
            output: Any = net(*zeros)
    except Exception as error:
        asked, reason = (
            " and ".join(str(list(each.shape)) for each in zeros),
            shorten(f"{type(error).__name__}: {error}", 300),
        )
        raise UserError(
            f"networks: {name} is to take {asked} and give {expected}, but raised {reason}; "
            f"{_REMEDY}"
        ) from error
    if not isinstance(output, Tensor) or not output.is_floating_point():
        raise UserError(
            f"networks: {name} gives {describe(output)}, expected decimal numbers {expected}; "
            f"{_REMEDY}"
        )
    if list(output.shape) != expected:
        raise UserError(
            f"networks: {name} gives {list(output.shape)}, expected {expected}; {_REMEDY}"
        )
