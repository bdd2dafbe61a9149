"""Networks side by side: the gradient, the layout, the start."""

import pytest
import torch
from torch.nn.functional import elu

from lightning_rl.nets.trunks import RecordedPass, TrunkNet


def generators(count):
    return [torch.Generator().manual_seed(n) for n in range(count)]


def plain(net, row, trunk, x):
    """Trunk ``trunk`` of one member from its columns, in the order of the layout."""
    sizes = [net.in_size + net.action_size, *net.hidden]
    trunks, place = len(net.heads), 0

    def take(*shape):
        nonlocal place
        count = torch.Size(shape).numel()
        place += count
        return row[place - count : place].reshape(shape)

    for layer in range(len(net.hidden)):
        fan_in, out = sizes[layer], net.hidden[layer]
        if layer == 0:
            weight, bias = take(fan_in, trunks * out), take(1, trunks * out)
            columns = slice(trunk * out, (trunk + 1) * out)
            weight, bias = weight[:, columns], bias[:, columns]
        else:
            weight, bias = take(trunks, fan_in, out)[trunk], take(trunks, 1, out)[trunk]
        x = elu(x @ weight + bias)
    heads = [(take(net.hidden[-1], out), take(1, out)) for out in net.heads]
    weight, bias = heads[trunk]
    return x @ weight + bias


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("heads", [(5,), (1, 1, 6)])
def test_each_trunk_is_a_network_of_its_own(members, heads):
    net = TrunkNet(4, (8, 8), heads, action_size=3)
    params, x = net.init(generators(members)), torch.randn(members, 7, 4)
    action = torch.randint(3, (members, 7))
    outputs = net(net.layers(params), x, action)
    joined = torch.cat([x, torch.nn.functional.one_hot(action, 3)], dim=-1)
    for trunk, output in enumerate(outputs):
        for n in range(members):
            torch.testing.assert_close(output[n], plain(net, params[n], trunk, joined[n]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("activation", ["elu", "relu"])
def test_recorded_passes_give_the_gradient_that_autograd_gives(members, activation):
    net = TrunkNet(4, (8, 6), (5,), activation=activation)
    params = net.init(generators(members))
    pieces, grad = [torch.randn(members, b, 4) for b in (2, 3, 2)], torch.randn(members, 7, 5)
    recorded = RecordedPass(net, net.layers(params))
    values = torch.cat([recorded(x) for x in pieces], dim=1)
    out = torch.zeros_like(params)
    recorded.gradient(grad, net.layers(out))
    leaf = params.clone().requires_grad_()
    (again,) = net(net.layers(leaf), torch.cat(pieces, dim=1))
    torch.testing.assert_close(values, again.detach())
    (expected,) = torch.autograd.grad((again * grad).sum(), leaf)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-6)


def test_elu_and_its_gradient():
    net = TrunkNet(2, (8,), (1,))
    x = torch.tensor([-30.0, -2.0, -1e-3, 0.0, 1e-3, 2.0, 90.0], requires_grad=True)
    out = net._activate(x)
    torch.testing.assert_close(out, elu(x), rtol=1e-6, atol=1e-7)
    (grad,) = torch.autograd.grad(out.sum(), x)
    (expected,) = torch.autograd.grad(elu(x).sum(), x)
    torch.testing.assert_close(grad, expected, rtol=1e-5, atol=1e-6)


def test_weights_start_as_cut_off_normal_numbers_and_biases_as_zero():
    """1 / sqrt(fan_in) times a normal number cut off at 2: the standard deviation that is left is 0.8796 of it."""
    net = TrunkNet(100, (64, 64), (3, 64), action_size=0)
    params = net.init(generators(2))
    layers = net.layers(params)
    for layer, fan_in in ((layers.first, 100), *((h, 64) for h in layers.hidden), (layers.heads[1], 64)):
        assert layer.weight.std().item() * fan_in**0.5 == pytest.approx(0.8796, abs=0.02)
        assert layer.weight.abs().max().item() <= 2 / fan_in**0.5
        assert not layer.bias.any()
    assert not torch.equal(params[0], params[1])
    assert torch.equal(net.init(generators(1))[0], params[0])


def test_rows_are_aligned():
    for net in (TrunkNet(3, (5,), (2,)), TrunkNet(64, (200, 200, 200), (1, 1, 64), 5)):
        assert net.size % 64 == 0


@pytest.mark.parametrize(("sizes", "known"), [((64, 200, 5), 94_405), ((32, 200, 5), 88_005), ((1024, 200, 5), 286_405)])
def test_value_networks_have_the_known_number_of_parameters(sizes, known):
    features, width, actions = sizes
    net = TrunkNet(features, (width,) * 3, (actions,))
    assert 0 <= net.size - known < 64
