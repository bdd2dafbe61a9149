"""Narrow networks within the stack of a wider one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lightning_rl.nets.members import MemberMLP


@torch.no_grad()
def embed(wide: MemberMLP, narrow: MemberMLP, params: Tensor) -> Tensor:
    """Parameters ``[N, wide.size]`` that compute what ``narrow`` computes with ``params``.

    Missing units get zero weights in both directions. As activations map 0 to 0, such units give 0
    and receive no gradient: a padded member stays exactly the small network all through training,
    and no mask is needed. Of networks with ``layer_norm``, which averages over the units of a
    layer, both have one width.
    """
    target = params.new_zeros(len(params), wide.size)
    for into, source in zip(wide.layers(target), narrow.layers(params), strict=True):
        places = into.named()
        for name, value in source.named().items():
            places[name][:, : value.shape[1], : value.shape[2]] = value
    return target


def init_narrow(
    wide: MemberMLP, generators: Sequence[torch.Generator], widths: Sequence[int]
) -> Tensor:
    """Fresh parameters ``[N, D]`` of ``wide``, each member as a narrower network.

    Member ``n`` has ``widths[n]`` units in each hidden layer.
    """
    rows = []
    for generator, width in zip(generators, widths, strict=True):
        narrow = replace(wide, hidden=(width,) * len(wide.hidden))
        rows.append(embed(wide, narrow, narrow.init([generator])))
    return torch.cat(rows)
