"""Networks that see images, of members: each is the plain module alone."""

import pytest
import torch

from lightning_rl.envs.images import Frames
from lightning_rl.nets import images
from lightning_rl.nets.member_images import EncodedNet, MemberEncoder
from lightning_rl.nets.members import MemberMLP
from lightning_rl.nets.values import DuelingNet

SHAPES = {"udrl": Frames(3, 9, 12, 2), "nature": Frames(1, 40, 36, 2)}


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def encoded(name, dueling=False):
    encoder = MemberEncoder(name, SHAPES[name])
    if dueling:
        return EncodedNet(encoder, DuelingNet(encoder.num_features, (16,), 4, 8))
    return EncodedNet(encoder, MemberMLP(encoder.num_features, (16,), 4))


def seen(name, members=2, batch=5):
    size = SHAPES[name].stack * SHAPES[name].size
    rng = torch.Generator().manual_seed(7)
    return torch.randint(256, (members, batch, size), generator=rng, dtype=torch.uint8)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_a_member_is_its_plain_module_forwards_and_backwards(name, dueling):
    net = encoded(name, dueling)
    params, obs = net.init(generators(1, 2)), seen(name)
    assert params.shape == (2, net.size)
    slope = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(3))
    out, pullback = net.vjp(params, obs)
    into = torch.full_like(params, torch.nan)
    pullback(slope, into)
    torch.testing.assert_close(out, net(params, obs), rtol=1e-4, atol=1e-5)
    for n in range(2):
        module = net.module(params[n])
        assert torch.equal(net.from_modules([module])[0], params[n])
        torch.testing.assert_close(module(obs[n]), out[n], rtol=1e-4, atol=1e-5)
        (module(obs[n]) * slope[n]).sum().backward()
        for value in module.parameters():
            value.data = value.grad
        torch.testing.assert_close(net.from_modules([module])[0], into[n], rtol=1e-3, atol=1e-4)


def test_a_member_starts_from_its_own_generator_alone():
    net, before = encoded("udrl"), torch.get_rng_state()
    together = net.init(generators(1, 2))
    assert torch.equal(together[1:], net.init(generators(2)))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(together[0], together[1])


def test_a_large_batch_is_encoded_in_pieces_and_gives_the_same(monkeypatch):
    net = encoded("udrl")
    params, obs = net.init(generators(1, 2)), seen("udrl", batch=7)
    whole, half = torch.empty_like(params), torch.empty_like(params)
    for into, piece in ((whole, 1024), (half, 3)):
        monkeypatch.setattr(images, "_PIECE", piece)
        out, pullback = net.vjp(params, obs)
        pullback(torch.ones_like(out), into)
    torch.testing.assert_close(half, whole, rtol=1e-3, atol=1e-4)
