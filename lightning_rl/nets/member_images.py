"""Networks that see images, with a member axis; parameters are blocks ``[N, D]``, as in
``members``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lightning_rl.nets.images import ENCODERS, Encoded, Encoder, in_pieces
from lightning_rl.nets.members import MemberMLP, MemberPullback
from lightning_rl.nets.values import DuelingNet

if TYPE_CHECKING:
    from lightning_rl.agents.dqn import DDQNConfig
    from lightning_rl.envs.images import Frames
    from lightning_rl.envs.spec import EnvSpec


class MemberEncoder:
    """The encoders of ``N`` members, one after the other.

    (Grouped convolutions take as long for one member, and up to twice as long for eight.)

    size: columns of the block, those of an ``Encoder``'s parameters. num_features: what it gives.
    """

    def __init__(self, name: str, frames: Frames):
        self.name, self.frames = name, frames
        with torch.random.fork_rng(devices=()):
            encoder = self._plain()
        self.num_features = encoder.size
        self._shapes = [parameter.shape for parameter in encoder.parameters()]
        self._sizes = [shape.numel() for shape in self._shapes]
        self.size = sum(self._sizes)

    def _plain(self) -> Encoder:
        return Encoder(self.name, self.frames)

    def init(self, generators: Sequence[torch.Generator]) -> Tensor:
        """Fresh parameters ``[N, D]``; member ``n`` draws from ``generators[n]`` alone."""
        rows = []
        with torch.random.fork_rng(devices=()):
            for generator in generators:
                torch.set_rng_state(generator.get_state())
                rows.append(parameters_to_vector(self._plain().parameters()).detach())
                generator.set_state(torch.get_rng_state())
        return torch.stack(rows)

    def __call__(self, params: Tensor, obs: Tensor) -> Tensor:
        """Features ``[N, B, F]`` of images ``[N, B, O]`` of bytes."""
        features = []
        for row, images in zip(params, obs.unflatten(-1, self.frames.shape), strict=True):
            pieces = [
                piece.view(shape)
                for piece, shape in zip(row.split(self._sizes), self._shapes, strict=True)
            ]
            features.append(in_pieces(functools.partial(self._features, pieces), images))
        return torch.stack(features)

    def _features(self, params: Sequence[Tensor], images: Tensor) -> Tensor:
        """Of one member, ``[B, F]``, as ``Encoder`` has it."""
        if torch.is_grad_enabled():  # with the way back a tenth to a fifth faster, without slower
            images = images.contiguous(memory_format=torch.channels_last)
        x = images.float() / 255
        layers = zip(ENCODERS[self.name], params[::2], params[1::2], strict=True)
        for layer, weight, bias in layers:
            x = conv2d(x, weight, bias, layer.stride, layer.padding).relu()
        return x.flatten(1)

    def before(self, net: nn.Module, params: Tensor) -> Encoded:
        """A plain network behind the encoder of member ``params`` ``[D]``."""
        with torch.random.fork_rng(devices=()):
            encoder = self._plain()
        vector_to_parameters(params.detach().cpu().clone(), encoder.parameters())
        return Encoded(encoder, net)

    def from_modules(self, modules: Sequence[nn.Module]) -> Tensor:
        """The block ``[N, D]`` of plain modules that ``before`` has made."""
        encoders = [cast(Encoded, module).encoder for module in modules]
        return torch.stack([parameters_to_vector(each.parameters()).detach() for each in encoders])


class EncodedNet:
    """A network behind an encoder; it comes second in the block."""

    compilable = False

    def __init__(self, encoder: MemberEncoder, net: MemberMLP | DuelingNet):
        self.encoder, self.net = encoder, net
        self.size = encoder.size + net.size

    def _split(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """The columns of encoder and network in ``params`` ``[..., D]``."""
        return params[..., : self.encoder.size], params[..., self.encoder.size :]

    def init(
        self, generators: Sequence[torch.Generator], widths: Sequence[int] | None = None
    ) -> Tensor:
        """Fresh parameters ``[N, D]``; widths: of the network's hidden layers."""
        encoder = self.encoder.init(generators)
        return torch.cat([encoder, self.net.init(generators, widths)], dim=1)

    def __call__(self, params: Tensor, obs: Tensor) -> Tensor:
        """Outputs ``[N, B, ..]`` for images ``[N, B, O]`` of bytes."""
        encoder, net = self._split(params)
        return self.net(net, self.encoder(encoder, obs))

    @torch.no_grad()
    def vjp(self, params: Tensor, obs: Tensor) -> tuple[Tensor, MemberPullback]:
        """See ``MemberMLP.vjp``; images have no gradient."""
        encoder, net = self._split(params)
        with torch.enable_grad():
            encoder = encoder.detach().requires_grad_()
            features = self.encoder(encoder, obs)
        out, to_net = self.net.vjp(net, features.detach())

        def pullback(grad: Tensor, into: Tensor, want_x: bool = False) -> None:
            into_encoder, into_net = self._split(into)
            to_features = cast(Tensor, to_net(grad, into_net, True))
            into_encoder.copy_(torch.autograd.grad(features, encoder, to_features)[0])

        return out, pullback

    def module(self, params: Tensor) -> nn.Module:
        """Member ``params`` ``[D]`` as a plain module."""
        encoder, net = self._split(params)
        return self.encoder.before(self.net.module(net), encoder)

    def from_modules(self, modules: Sequence[nn.Module]) -> Tensor:
        """The block ``[N, D]`` of plain modules laid out as ``module`` lays them out."""
        nets = [cast(Encoded, module).net for module in modules]
        encoders = self.encoder.from_modules(modules)
        return torch.cat([encoders, self.net.from_modules(nets)], dim=1)


def encoded(cfg: DDQNConfig, spec: EnvSpec, hidden: tuple[int, ...]) -> EncodedNet:
    """The network of a config, behind its encoder."""
    assert spec.frames is not None
    encoder = MemberEncoder(cfg.encoder, spec.frames)
    return EncodedNet(encoder, cfg.net(replace(spec, obs_size=encoder.num_features), hidden))
