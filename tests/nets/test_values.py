import torch

from lightning_rl.nets.values import DuelingNet


def generators(count):
    return [torch.Generator().manual_seed(n) for n in range(count)]


def test_a_dueling_member_as_a_plain_module_has_the_same_values():
    net = DuelingNet(3, (8,), 4, 5)
    params, obs = net.init(generators(2)), torch.randn(2, 6, 3)
    for n, expected in enumerate(net(params, obs)):
        torch.testing.assert_close(net.module(params[n])(obs[n]), expected)
