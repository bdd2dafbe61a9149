"""Several forward passes, one backward pass."""

from __future__ import annotations

import torch
from torch import Tensor

from lightning_rl.nets.members import Layers, MemberMLP


class RecordedPass:
    """Forward passes with one set of parameters, and a single backward pass over all of them.

    layers: those of the parameters.

    A roll-out computes the values of its states one after the other; the update then needs the
    gradient at those same values, and so takes no second forward pass.
    """

    def __init__(self, net: MemberMLP, layers: Layers):
        self.net, self.layers = net, layers
        self._saved: list[list[Tensor]] = []

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs ``[N, b, O]`` for x ``[N, b, I]``."""
        out, saved = self.net.forward(self.layers, x)
        self._saved.append(saved)
        return out

    def gradient(self, grad: Tensor, into: Layers) -> None:
        """Writes the parameters' gradient ``into`` layers.

        grad ``[N, B, O]``: that of the outputs, B the rows of all passes in order.
        """
        saved = self._saved[0]
        if len(self._saved) > 1:
            saved = [torch.cat(each, dim=2) for each in zip(*self._saved, strict=True)]
        self.net.backward(self.layers, saved, grad, into)
