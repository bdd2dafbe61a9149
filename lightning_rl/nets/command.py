"""Networks that multiply an observation by a command, and policies that answer commands.

Each network maps obs ``[..., O]`` and a scaled command ``[..., C]`` to ``[..., output_size]``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lightning_rl.core.types import Array
from lightning_rl.functional.distributions import Distribution
from lightning_rl.nets.layers import LayeredNet, orthogonal_linear, relu_mlp
from lightning_rl.nets.policies import Policy


class ScaledCommand(nn.Module):
    """Shifts, scales and clips raw commands ``[..., C]`` before ``net`` sees them.

    Shift and scale are buffers: they travel in the checkpoint. A scale of 0 makes a network without
    a command.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, net: nn.Module, scale: Sequence[float], limit: float = math.inf):
        super().__init__()
        self.net, self.limit = net, limit
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.register_buffer("shift", torch.zeros(len(scale)))

    def scaled(self, command: Tensor) -> Tensor:
        """What ``net`` sees of a raw command ``[..., C]``."""
        return ((command - self.shift) * self.scale).clamp(-self.limit, self.limit)

    def forward(self, obs: Tensor, command: Tensor) -> Tensor:
        return self.net(obs, self.scaled(command))

    def saturation(self, command: Tensor) -> float | None:
        """Share of the gates outside 0.02 .. 0.98, for raw commands ``[..., C]``; None without.

        These gates barely react to the command any more.
        """
        if not isinstance(self.net, GatedNet | GatedLayersNet):
            return None
        gate = self.net.gate(self.scaled(command))
        return float(((gate < 0.02) | (gate > 0.98)).float().mean())


class GatedNet(LayeredNet):
    """``tanh(V o + q) * sigmoid(U c + p)``, then ReLU layers (UDRL paper, section 3.2.1).

    ``hidden[0]`` is the size of both embeddings, the rest are the ReLU layers.
    """

    def __init__(self, obs_size: int, command_size: int, output_size: int, hidden: Sequence[int]):
        super().__init__()
        self.embed_obs = orthogonal_linear(obs_size, hidden[0])
        self.embed_command = orthogonal_linear(command_size, hidden[0])
        self.body = relu_mlp(hidden[0], hidden[1:], output_size)
        self.activations = ["tanh", *self.body.activations]
        self.gate_sizes = [hidden[0]]

    def linears(self) -> list[nn.Linear]:
        return [self.embed_obs, *self.body.linears(), self.embed_command]

    def gate(self, command: Tensor) -> Tensor:
        """Gate values in (0, 1) for commands ``[..., C]``."""
        return self.embed_command(command).sigmoid()

    def forward(self, obs: Tensor, command: Tensor) -> Tensor:
        return self.body(self.embed_obs(obs).tanh() * self.gate(command))


class GatedLayersNet(LayeredNet):
    """ReLU layers, each multiplied by ``gate_scale * sigmoid(U c + p)``, and a linear output (RCP).

    With a ``gate_scale`` of 2 the gates start near 1. ``output_scale`` shrinks the initial output
    layer, so that the first policy is nearly uniform. The gates of all layers come from one linear
    map of the command.
    """

    def __init__(
        self,
        obs_size: int,
        command_size: int,
        output_size: int,
        hidden: Sequence[int],
        gate_scale: float = 2.0,
        output_scale: float = 0.1,
    ):
        super().__init__()
        self.gate_scale = gate_scale
        sizes = itertools.pairwise([obs_size, *hidden])
        self.layers = nn.ModuleList([nn.Linear(below, above) for below, above in sizes])
        self.gates = nn.Linear(command_size, sum(hidden))
        self.output = nn.Linear(hidden[-1], output_size)
        self.activations = ["relu"] * len(hidden)
        self.gate_sizes = list(hidden)
        with torch.no_grad():
            for parameter in self.output.parameters():
                parameter.mul_(output_scale)

    def gate(self, command: Tensor) -> Tensor:
        """Gate values in (0, 1) of all layers for commands ``[..., C]``."""
        return self.gates(command).sigmoid()

    def linears(self) -> list[nn.Linear]:
        return [*self.layers, self.output, self.gates]

    def forward(self, obs: Tensor, command: Tensor) -> Tensor:
        gates = (self.gate(command) * self.gate_scale).split(self.gate_sizes, dim=-1)
        x = obs
        for layer, gate in zip(self.layers, gates, strict=True):
            x = layer(x).relu() * gate
        return self.output(x)


class CommandPolicy(Policy):
    """Acts on a command ``[..., C]``; a ``guidance`` above 0 amplifies the effect that the command
    has on the actions.

    A policy trained on its own episodes can mostly tell from the observation how an episode will go
    on, so it learns to depend little on the command. Guidance pushes its output away from that for
    the usual command (see ``Distribution.guided``). Only ``act`` uses it, losses do not.

    usual: intercept and slope of the usual command's first number (return or advantage) over its
    second (horizon), if any. Where the second says it all, as every step pays alike, the slope is
    0: otherwise each command would be usual.
    """

    net: ScaledCommand
    guidance: Tensor
    usual: Tensor

    def __init__(
        self,
        net: ScaledCommand,
        distribution_class: type[Distribution],
        action_size: int,
        guidance: float,
    ):
        super().__init__(net, distribution_class, action_size)
        self.register_buffer("guidance", torch.tensor(guidance))
        self.register_buffer("usual", torch.zeros(2))

    def fit_usual(self, command: Tensor) -> None:
        """Fits the usual command, a least-squares line over the horizon, to ``[..., C]``."""
        first = command[..., 0].flatten().double()
        horizon = command[..., 1:].sum(-1).flatten().double()
        spread = horizon - horizon.mean()
        slope = (spread * first).mean() / spread.square().mean().clamp(min=1e-9)
        unexplained = first - first.mean() - slope * spread
        if unexplained.var(correction=0) < 0.01 * first.var(correction=0):
            slope = torch.zeros_like(slope)
        self.usual.copy_(torch.stack([first.mean() - slope * horizon.mean(), slope]))

    def usual_command(self, command: Tensor) -> Tensor:
        """The usual command ``[..., C]`` of the same horizon as ``command``."""
        horizon = command[..., 1:]
        intercept, slope = self.usual
        first = intercept + slope * horizon.sum(-1, keepdim=True)
        return torch.cat([first, horizon], dim=-1)

    def act(
        self, obs: Tensor, command: Tensor | None, noise: Tensor, guidance: Tensor | None = None
    ) -> Tensor:
        """See ``Actor.act``; guidance ``[..., 1]``: in place of the policy's own."""
        assert command is not None
        guidance = self.guidance if guidance is None else guidance
        output = self.net(obs, command)
        if torch.compiler.is_compiling() or guidance.any():  # a graph has no branches
            usual = self.net(obs, self.usual_command(command))
            output = self.distribution_class.guided(output, usual, guidance)
        return self.distribution_class(output).sample(noise)


class Calibration(nn.Module):
    """Which command, with which guidance, obtains a return: a table over returns, fitted to a
    trained policy by playing it.

    Its numbers are saved in the checkpoint; further training clears the table.

    asked ``[POINTS]``: returns in ascending order; first, guidance: for each the first number of
    the command, and its guidance.
    """

    POINTS = 33
    asked: Tensor
    first: Tensor
    guidance: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("asked", "first", "guidance"):
            self.register_buffer(name, torch.zeros(self.POINTS))

    @property
    def limits(self) -> tuple[float, float] | None:
        """The lowest and the highest return that can be asked for; None: nothing was fitted."""
        low, high = float(self.asked[0]), float(self.asked[-1])
        return (low, high) if low < high else None

    def set(self, asked: Array, first: Array, guidance: Array) -> None:
        """Takes the table; each ``[POINTS]``."""
        for buffer, values in zip(self.buffers(), (asked, first, guidance), strict=True):
            buffer.copy_(torch.from_numpy(values))

    def clear(self) -> None:
        """Forgets the table."""
        for buffer in self.buffers():
            buffer.zero_()

    def command(self, asked: float) -> tuple[float, float]:
        """First number and guidance of the command that obtains a return within ``limits``."""
        first, guidance = self.commands(torch.tensor([asked], dtype=torch.float64))
        return float(first), float(guidance)

    def commands(self, asked: Tensor) -> tuple[Tensor, Tensor]:
        """The same of returns ``[B]`` float64; those beyond the table count as its ends.

        The guidance is that of the nearest entry of the table; the first number is interpolated
        linearly between the entries that have this guidance.
        """
        table, first = self.asked.double(), self.first.double()
        guidance = self.guidance[(table - asked.unsqueeze(-1)).abs().argmin(-1)]
        alike = self.guidance == guidance.unsqueeze(-1)  # [B, POINTS]
        lowest = torch.where(alike, table, torch.inf).amin(-1)
        highest = torch.where(alike, table, -torch.inf).amax(-1)
        away = table - asked.clamp(lowest, highest).unsqueeze(-1)
        below = torch.where(alike & (away <= 0), away, -torch.inf).argmax(-1)
        above = torch.where(alike & (away >= 0), away, torch.inf).argmin(-1)
        width = table[above] - table[below]  # 0 at an entry itself
        share = -away.gather(-1, below.unsqueeze(-1)).squeeze(-1) / torch.where(width > 0, width, 1)
        return first[below] + share * (first[above] - first[below]), guidance
