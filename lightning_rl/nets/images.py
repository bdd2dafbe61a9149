"""Networks that see images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lightning_rl.core.errors import UserError
from lightning_rl.nets.command import GatedNet
from lightning_rl.nets.layers import LayeredNet, orthogonal_linear, relu_mlp

if TYPE_CHECKING:
    from lightning_rl.envs.images import Frames

_PIECE = 1024  # images whose activations are kept at once


class Convolution(NamedTuple):
    """A convolution with a ReLU."""

    channels: int
    kernel: int
    stride: int
    padding: int = 0


ENCODERS = {
    "udrl": [Convolution(channels, 3, 2, padding=1) for channels in (32, 48, 96, 128)],
    "nature": [Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1)],
}
"""By the key ``encoder``: of the UDRL paper (arXiv 1912.02877, one of those searched), and of DQN
(Mnih et al. 2015).
"""


def in_pieces(encode: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """``encode(images)``, of a large batch in pieces.

    They are encoded again on the way back, so that only one piece's activations are in memory.
    """
    if torch.compiler.is_compiling() or len(images) <= _PIECE:  # a graph has no branches
        return encode(images)
    pieces = images.split(_PIECE)
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(encode, piece, use_reentrant=False) for piece in pieces])
    return torch.cat([encode(piece) for piece in pieces])


class Encoder(nn.Module):
    """Convolutions: features ``[..., size]`` of images ``[..., O]`` of bytes; see ``in_pieces``."""

    def __init__(self, name: str, frames: Frames):
        super().__init__()
        self.shape = channels, height, width = frames.shape
        layers: list[nn.Module] = []
        for each in ENCODERS[name]:
            layer = nn.Conv2d(channels, each.channels, each.kernel, each.stride, each.padding)
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            layers += [layer, nn.ReLU()]
            channels = each.channels
            height = (height + 2 * each.padding - each.kernel) // each.stride + 1
            width = (width + 2 * each.padding - each.kernel) // each.stride + 1
            if min(height, width) < 1:
                raise UserError(
                    f"encoder {name}: images of {frames.height} x {frames.width} are too small for "
                    "it; set encoder=udrl or a larger screen_size"
                )
        self.layers = nn.Sequential(*layers)
        self.size = channels * height * width

    def forward(self, obs: Tensor) -> Tensor:
        features = in_pieces(self._features, obs.reshape(-1, *self.shape))
        return features.reshape(*obs.shape[:-1], self.size)

    def _features(self, images: Tensor) -> Tensor:
        return self.layers(images.float() / 255).flatten(1)


class Encoded(nn.Module):
    """A network that reads the features of an encoder, and maybe a command beside them."""

    def __init__(self, encoder: Encoder, net: nn.Module):
        super().__init__()
        self.encoder, self.net = encoder, net

    def forward(self, obs: Tensor, *command: Tensor) -> Tensor:
        return self.net(self.encoder(obs), *command)


class GatedFeatures(GatedNet):
    """``o * sigmoid(U c + p)`` of an encoder's features ``o``, then ReLU layers of the ``hidden``
    sizes (UDRL paper, section 3.2.1, for images).
    """

    def __init__(self, size: int, command_size: int, output_size: int, hidden: Sequence[int]):
        LayeredNet.__init__(self)
        self.embed_command = orthogonal_linear(command_size, size)
        self.body = relu_mlp(size, hidden, output_size)

    def forward(self, obs: Tensor, command: Tensor) -> Tensor:
        return self.body(obs * self.gate(command))
