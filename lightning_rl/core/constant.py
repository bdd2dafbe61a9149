"""Tensors that never change, on every device that asks for them."""

from __future__ import annotations

import torch
from torch import Tensor


class Constant:
    """A tensor of the CPU, copied once to each other device: a copy at every step would make a
    GPU wait each time.
    """

    def __init__(self, value: Tensor):
        self._copies = {value.device: value}

    def on(self, device: torch.device) -> Tensor:
        """The tensor on ``device``."""
        if device not in self._copies:
            self._copies[device] = self._copies[torch.device("cpu")].to(device)
        return self._copies[device]
