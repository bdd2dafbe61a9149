"""Stacked perceptrons: the gradient, the layout, the start."""

import itertools

import pytest
import torch
from torch.nn.functional import elu, relu

from lightning_rl.nets.trunks import _ACTIVATIONS, RecordedPass, TrunkNet


def generators(count):
    return [torch.Generator().manual_seed(n) for n in range(count)]


def plain(layers, x, activation=elu):
    """The network written out, for autograd."""
    for weight, bias in layers[:-1]:
        x = activation(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


@pytest.mark.parametrize("members", [1, 3])
def test_each_member_is_a_network_of_its_own(members):
    net = TrunkNet(4, (8, 6), 5)
    params, x = net.init(generators(members)), torch.randn(members, 7, 4)
    out = net(net.layers(params), x)
    for n in range(members):
        sizes, place, layers = [4, 8, 6, 5], 0, []
        for fan_in, width in itertools.pairwise(sizes):
            weight, bias = params[n, place:].split([fan_in * width, width, len(params[n]) - place - (fan_in + 1) * width])[:2]
            layers.append((weight.view(fan_in, width), bias))
            place += (fan_in + 1) * width
        torch.testing.assert_close(out[n], plain(layers, x[n]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("activation", [elu, relu])
def test_recorded_passes_give_the_gradient_that_autograd_gives(members, activation):
    net = TrunkNet(4, (8, 6), 5, activation.__name__)
    params = net.init(generators(members))
    pieces, grad = [torch.randn(members, b, 4) for b in (2, 3, 2)], torch.randn(members, 7, 5)
    recorded = RecordedPass(net, net.layers(params))
    values = torch.cat([recorded(x) for x in pieces], dim=1)
    out = torch.zeros_like(params)
    recorded.gradient(grad, net.layers(out))
    leaf = params.clone().requires_grad_()
    again = plain(net.layers(leaf), torch.cat(pieces, dim=1), activation)
    torch.testing.assert_close(values, again.detach())
    (expected,) = torch.autograd.grad((again * grad).sum(), leaf)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-6)


def test_the_gradient_passes_on_to_the_input():
    net = TrunkNet(4, (8,), 3)
    params, x, grad = net.init(generators(2)), torch.randn(2, 7, 4), torch.randn(2, 7, 3)
    _, inputs = net.forward(net.layers(params), x)
    into = torch.zeros_like(params)
    found = net.backward(net.layers(params), inputs, grad, net.layers(into))
    leaves = params.clone().requires_grad_(), x.clone().requires_grad_()
    expected = torch.autograd.grad((plain(net.layers(leaves[0]), leaves[1]) * grad).sum(), leaves)
    torch.testing.assert_close((into, found), expected, rtol=1e-4, atol=1e-6)


def test_elu_and_its_gradient():
    function, slope = _ACTIVATIONS["elu"]
    x = torch.tensor([-30.0, -2.0, -1e-3, 0.0, 1e-3, 2.0, 90.0], requires_grad=True)
    out = function(x.detach())
    torch.testing.assert_close(out, elu(x).detach(), rtol=1e-6, atol=1e-7)
    (expected,) = torch.autograd.grad(elu(x).sum(), x)
    torch.testing.assert_close(slope(torch.ones_like(out), out), expected, rtol=1e-5, atol=1e-6)


def test_weights_start_as_cut_off_normal_numbers_and_biases_as_zero():
    """1 / sqrt(fan_in) times a normal number cut off at 2: the standard deviation that is left is 0.8796 of it."""
    net = TrunkNet(100, (64, 64), 64)
    params = net.init(generators(2))
    layers = net.layers(params)
    for layer, fan_in in zip(layers, (100, 64, 64), strict=True):
        assert layer.weight.std().item() * fan_in**0.5 == pytest.approx(0.8796, abs=0.02)
        assert layer.weight.abs().max().item() <= 2 / fan_in**0.5
        assert not layer.bias.any()
    assert not torch.equal(params[0], params[1])
    assert torch.equal(net.init(generators(1))[0], params[0])


def test_rows_are_aligned():
    for net in (TrunkNet(3, (5,), 2), TrunkNet(69, (200, 200, 200), 64)):
        assert net.size % 64 == 0


@pytest.mark.parametrize(("sizes", "known"), [((64, 200, 5), 94_405), ((32, 200, 5), 88_005), ((1024, 200, 5), 286_405)])
def test_value_networks_have_the_known_number_of_parameters(sizes, known):
    features, width, actions = sizes
    net = TrunkNet(features, (width,) * 3, actions)
    assert 0 <= net.size - known < 64
