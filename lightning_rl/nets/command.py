"""Networks that mix an observation with a command by multiplication.

Each maps obs ``[..., O]`` and a raw command ``[..., C]`` to ``[..., output_size]``. The command scales are
part of the model: a buffer, so that they move with the device and travel in the checkpoint.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lightning_rl.nets.mlp import orthogonal_linear, relu_mlp


class CommandNet(nn.Module):
    """Base: shifts, scales and clips the command before any layer sees it.

    A scale of 0 makes a network that does not hear its command.
    """

    command_scale: Tensor
    command_shift: Tensor

    def __init__(self, command_scale: Sequence[float], command_limit: float = math.inf):
        super().__init__()
        self.register_buffer("command_scale", torch.tensor(command_scale, dtype=torch.float32))
        self.register_buffer("command_shift", torch.zeros(len(command_scale)))
        self.command_limit = command_limit

    def scaled(self, command: Tensor) -> Tensor:
        """What the layers see of a raw command ``[..., C]``."""
        return ((command - self.command_shift) * self.command_scale).clamp(-self.command_limit, self.command_limit)

    def forward(self, obs: Tensor, command: Tensor) -> Tensor:
        return self.mix(obs, self.scaled(command))

    def mix(self, obs: Tensor, command: Tensor) -> Tensor:
        """The network on a scaled command."""
        raise NotImplementedError

    def gate(self, scaled_command: Tensor) -> Tensor | None:
        """Gate values in (0, 1) for scaled commands ``[..., C]``, of a network that has gates."""
        return None

    def saturation(self, command: Tensor) -> float | None:
        """Share of the gates outside 0.02 .. 0.98 for raw commands ``[..., C]``: these no longer hear the command."""
        gate = self.gate(self.scaled(command))
        return None if gate is None else float(((gate < 0.02) | (gate > 0.98)).float().mean())


class GatedNet(CommandNet):
    """``tanh(V o + q) * sigmoid(U c + p)``, then ReLU layers and a linear output (paper section 3.2.1).

    ``hidden[0]`` is the size of both embeddings, the rest are the ReLU layers.
    """

    def __init__(self, obs_size: int, output_size: int, hidden: Sequence[int], command_scale: Sequence[float], **options: float):
        super().__init__(command_scale, **options)
        self.embed_obs = orthogonal_linear(obs_size, hidden[0])
        self.embed_command = orthogonal_linear(len(command_scale), hidden[0])
        self.body = relu_mlp(hidden[0], hidden[1:], output_size)

    def gate(self, scaled_command: Tensor) -> Tensor:
        return self.embed_command(scaled_command).sigmoid()

    def mix(self, obs: Tensor, command: Tensor) -> Tensor:
        return self.body(self.embed_obs(obs).tanh() * self.gate(command))


class GatedLayersNet(CommandNet):
    """ReLU layers, each multiplied by ``gate_scale * sigmoid(U c + p)``, and a linear output (RCP).

    With a ``gate_scale`` of 2 the gates start near 1. ``output_scale`` shrinks the initial output layer, so that
    the first policy is nearly uniform. The gates of all layers come from one linear map of the command.
    """

    def __init__(
        self, obs_size: int, output_size: int, hidden: Sequence[int], command_scale: Sequence[float],
        command_limit: float = math.inf, gate_scale: float = 2.0, output_scale: float = 0.1,
    ):  # fmt: skip
        super().__init__(command_scale, command_limit)
        self.hidden, self.gate_scale = list(hidden), gate_scale
        self.layers = nn.ModuleList([nn.Linear(i, o) for i, o in itertools.pairwise([obs_size, *hidden])])
        self.gates = nn.Linear(len(command_scale), sum(hidden))
        self.output = nn.Linear(hidden[-1], output_size)
        with torch.no_grad():
            for parameter in self.output.parameters():
                parameter.mul_(output_scale)

    def gate(self, scaled_command: Tensor) -> Tensor:
        return self.gates(scaled_command).sigmoid()

    def mix(self, obs: Tensor, command: Tensor) -> Tensor:
        gates = (self.gate(command) * self.gate_scale).split(self.hidden, dim=-1)
        x = obs
        for layer, gate in zip(self.layers, gates, strict=True):
            x = layer(x).relu() * gate
        return self.output(x)


class CommandLinear(nn.Module):
    """A linear layer whose weights and bias are an affine function of the command.

    ``y = (W0 + sum_j c_j U_j) x + b0 + sum_j c_j d_j``; the generated matrix is never formed, which
    would cost ``B x out x in`` memory. W0 and the command part have variance ``1 / in`` each at commands of the
    typical square, so that the weights have variance ``2 / in``.
    """

    # E[c^2] of scaled commands: returns of 100-300 times 0.025 and horizons of 100-500 times 0.01 give about 10.
    TYPICAL_SQUARE = 10.0

    def __init__(self, in_size: int, out_size: int, command_size: int):
        super().__init__()
        self.constant = nn.Linear(in_size, out_size)
        self.generated = nn.Linear(in_size * command_size, out_size, bias=False)
        self.bias = nn.Linear(command_size, out_size, bias=False)
        nn.init.normal_(self.constant.weight, std=1 / math.sqrt(in_size))
        nn.init.normal_(self.bias.weight, std=1 / math.sqrt(command_size * self.TYPICAL_SQUARE * in_size))
        nn.init.normal_(self.generated.weight, std=1 / math.sqrt(in_size * command_size * self.TYPICAL_SQUARE))

    def forward(self, x: Tensor, command: Tensor) -> Tensor:
        outer = (x.unsqueeze(-1) * command.unsqueeze(-2)).flatten(-2)
        return self.constant(x) + self.generated(outer) + self.bias(command)


class HyperNet(CommandNet):
    """``tanh(V o + q)``, then layers whose weights are generated by the command; no activation on the output.

    Differs from the earlier implementation, which saw unscaled commands and put a ReLU on its logits:
    that network cannot learn.
    """

    def __init__(self, obs_size: int, output_size: int, hidden: Sequence[int], command_scale: Sequence[float], **options: float):
        super().__init__(command_scale, **options)
        self.embed_obs = orthogonal_linear(obs_size, hidden[0])
        sizes = [*hidden, output_size]
        pairs = itertools.pairwise(sizes)
        self.layers = nn.ModuleList([CommandLinear(i, o, len(command_scale)) for i, o in pairs])

    def mix(self, obs: Tensor, command: Tensor) -> Tensor:
        x = self.embed_obs(obs).tanh()
        for layer in self.layers[:-1]:
            x = layer(x, command).relu()
        return self.layers[-1](x, command)


class BilinearNet(CommandNet):
    """First layer generated by the command, ``tanh(W(c) o + b(c))``, then a plain ReLU network."""

    def __init__(self, obs_size: int, output_size: int, hidden: Sequence[int], command_scale: Sequence[float], **options: float):
        super().__init__(command_scale, **options)
        self.first = CommandLinear(obs_size, hidden[0], len(command_scale))
        self.body = relu_mlp(hidden[0], hidden[1:], output_size)

    def mix(self, obs: Tensor, command: Tensor) -> Tensor:
        return self.body(self.first(obs, command).tanh())


COMMAND_NETS: dict[str, type[GatedNet | HyperNet | BilinearNet]] = {
    "gated": GatedNet,
    "hyper": HyperNet,
    "bilinear": BilinearNet,
}
