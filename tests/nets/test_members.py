import itertools

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, stack_module_state, vmap

from lightning_rl.nets.embedding import embed
from lightning_rl.nets.members import ACTIVATIONS, MemberMLP
from lightning_rl.nets.one_hot_inputs import written_out
from lightning_rl.nets.values import DuelingNet
from lightning_rl.nets.world_models import PlainMLP


def generators(count, first=0):
    return [torch.Generator().manual_seed(first + n) for n in range(count)]


def gradient(net, params, x):
    params = params.clone().requires_grad_()
    (grad,) = torch.autograd.grad(net(params, x).square().mean((1, 2)).sum(), params)
    return grad


NETS = [
    MemberMLP(3, (16, 16), 2, activation, layer_norm)
    for activation, layer_norm in itertools.product(ACTIVATIONS, (False, True))
]


@pytest.mark.parametrize("net", NETS, ids=str)
def test_each_member_is_its_plain_network_and_its_vmap(net):
    """Tolerance: a batched and a plain matrix product add up in another order."""
    params, x = net.init(generators(5)), torch.randn(5, 7, 3)
    out = net(params, x)
    modules = [net.module(row) for row in params]
    torch.testing.assert_close(
        out, torch.stack([m(x[n]) for n, m in enumerate(modules)]), rtol=1e-5, atol=1e-6
    )
    weights, _ = stack_module_state(modules)
    alone = vmap(lambda w, row: functional_call(modules[0], w, (row,)))(weights, x)
    torch.testing.assert_close(out, alone, rtol=1e-5, atol=1e-6)
    assert torch.equal(net.from_modules(modules), params)


@pytest.mark.parametrize("net", NETS, ids=str)
def test_nothing_of_a_member_enters_another(net):
    """To the last bit, at the same shapes: every other member and its inputs are exchanged."""
    params, x = net.init(generators(3)), torch.randn(3, 19, 3)
    others, y = net.init(generators(3, first=9)), torch.randn(3, 19, 3)
    others[1], y[1] = params[1], x[1]
    assert torch.equal(net(params, x)[1], net(others, y)[1])
    assert torch.equal(gradient(net, params, x)[1], gradient(net, others, y)[1])


def test_members_draw_from_their_own_generators():
    net = MemberMLP(3, (8,), 2)
    assert torch.equal(net.init(generators(3))[2:], net.init(generators(1, first=2)))


def test_initialisation_has_the_bounds_of_torch_linear():
    net = MemberMLP(4, (400,), 3, "prelu")
    first, last = net.layers(net.init(generators(6)))
    for tensor, fan_in in (
        (first.weight, 4),
        (first.bias, 4),
        (last.weight, 400),
        (last.bias, 400),
    ):
        bound = fan_in**-0.5
        assert 0.8 * bound < tensor.abs().max() <= bound
    assert first.weight.std().item() == pytest.approx(0.5 / 3**0.5, rel=0.05)
    assert first.slope.unique().tolist() == [0.25]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_narrow_members_stay_themselves_through_training(activation):
    big, widths = MemberMLP(3, (12, 12), 2, activation), (5, 12, 8, 1)
    params = big.init(generators(4), widths)
    x = torch.randn(4, 6, 3)
    small = [MemberMLP(3, (width, width), 2, activation) for width in widths]
    alone = [net.init([g]) for net, g in zip(small, generators(4), strict=True)]
    for _ in range(3):
        params = params - 0.1 * gradient(big, params, x)
        alone = [
            p - 0.1 * gradient(net, p, x[n : n + 1])
            for n, (net, p) in enumerate(zip(small, alone, strict=True))
        ]
    for n, net in enumerate(small):
        torch.testing.assert_close(
            params[n : n + 1], embed(big, net, alone[n]), rtol=1e-4, atol=1e-6
        )
        assert ((params[n] != 0) <= (embed(big, net, torch.ones_like(alone[n]))[0] != 0)).all()
        torch.testing.assert_close(
            big.module(params[n])(x[n]), net(alone[n], x[n : n + 1])[0], rtol=1e-4, atol=1e-6
        )


def test_tanh_is_tanh():
    net = MemberMLP(1, (1,), 1, "tanh")
    params = net.from_modules(
        [torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh(), torch.nn.Linear(1, 1))]
    )
    for layer in net.layers(params):
        layer.weight.fill_(1)
        layer.bias.zero_()
    x = torch.cat([torch.linspace(-100, 100, 1001), torch.linspace(-1, 1, 1001)])[
        None, :, None
    ].requires_grad_()
    out = net(params, x)
    torch.testing.assert_close(out, x.tanh(), rtol=0, atol=2e-7)
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(grad, 1 - x.tanh() ** 2, rtol=0, atol=5e-7)


BY_HAND = [
    MemberMLP(3, hidden, out, activation, layer_norm)
    for activation, layer_norm in itertools.product(ACTIVATIONS, (False, True))
    for hidden, out in (((13,), 2), ((20, 5), 1), ((70, 70), 17), ((), 4))
]
PLAIN = {"relu": F.relu, "leakyrelu": F.leaky_relu, "tanh": torch.tanh, "elu": F.elu}


def written_down(net, params, x):
    """The network in the words of autograd."""
    *hidden, last = net.layers(params)
    for layer in hidden:
        x = x @ layer.weight + layer.bias
        if net.layer_norm:
            x = F.layer_norm(x, x.shape[-1:]) * layer.gain + layer.shift
        x = (
            torch.where(x > 0, x, layer.slope * x)
            if layer.slope is not None
            else PLAIN[net.activation](x)
        )
    return x @ last.weight + last.bias


@pytest.mark.parametrize("net", BY_HAND, ids=str)
@pytest.mark.parametrize("batch", [1, 5, 33])
def test_the_passes_by_hand_are_those_of_autograd(net, batch):
    """The order of sums differs."""
    params, x, to_out = (
        net.init(generators(4)),
        torch.randn(4, batch, 3),
        torch.randn(4, batch, net.out_size),
    )
    params = params + 0.1 * torch.randn_like(params)  # no gain is 1, no shift is 0
    leaves = params.clone().requires_grad_(), x.clone().requires_grad_()
    expected = written_down(net, *leaves)
    to_params, to_x = torch.autograd.grad(expected, leaves, to_out)
    out, pullback = net.vjp(params, x)
    torch.testing.assert_close(out, expected.detach(), rtol=1e-5, atol=1e-5)
    into = torch.full_like(params, torch.nan)
    torch.testing.assert_close(pullback(to_out, into, want_x=True), to_x, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(into, to_params, rtol=1e-3, atol=1e-4)
    assert pullback(to_out, into) is None
    leaves = params.clone().requires_grad_(), x.clone().requires_grad_()
    for got, wanted in zip(
        torch.autograd.grad(net(*leaves), leaves, to_out), (to_params, to_x), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-4)
    (alone,) = torch.autograd.grad(net(params, leaves[1]), leaves[1], to_out)  # params are constant
    torch.testing.assert_close(alone, to_x, rtol=1e-3, atol=1e-4)


def test_passes_of_one_network_can_be_joined():
    """What a roll-out has asked for one after the other takes one backward pass."""
    net = MemberMLP(3, (8, 8), 2, "prelu", layer_norm=True)
    params, x, to_out = net.init(generators(2)), torch.randn(2, 40, 3), torch.randn(2, 40, 2)
    layers = net.layers(params)
    passes = [net.forward(layers, part)[1] for part in x.split([1, 19, 20], dim=1)]
    joined = [torch.cat(tensors, dim=-1) for tensors in zip(*passes, strict=True)]
    into, at_once = torch.zeros_like(params), torch.zeros_like(params)
    net.backward(layers, joined, to_out, net.layers(into))
    net.vjp(params, x)[1](to_out, at_once)
    torch.testing.assert_close(into, at_once, rtol=1e-4, atol=1e-5)


def test_views_are_kept_of_the_right_block():
    """However many blocks come and go, and wherever they lie."""
    net = MemberMLP(1, (), 1)
    for number in range(100):
        params = torch.full((1 + number % 2, net.size), float(number))
        for change in (0, 1):
            params += change
            assert net(params, torch.ones(len(params), 1, 1)).flatten().tolist() == [
                2.0 * (number + change)
            ] * len(params)


def test_truncated_normal_weights_and_biases_of_zero():
    """1 / sqrt(fan_in) times a normal number cut off at 2: the standard deviation that is left
    is 0.8796 of it.
    """
    net = PlainMLP(100, (64, 64), 64, "elu")
    for layer, fan_in in zip(net.layers(net.init(generators(2))), (100, 64, 64), strict=True):
        assert layer.weight.std().item() * fan_in**0.5 == pytest.approx(0.8796, abs=0.02)
        assert layer.weight.abs().max().item() <= 2 / fan_in**0.5
        assert not layer.bias.any()


def test_the_pullback_of_a_dueling_network_is_that_of_autograd():
    net = DuelingNet(3, (9,), 2, 7, "tanh")
    params, x, to_q = net.init(generators(2)), torch.randn(2, 5, 3), torch.randn(2, 5, 2)
    leaves = params.clone().requires_grad_(), x.clone().requires_grad_()
    out, pullback = net.vjp(params, x)
    expected = net(*leaves)
    torch.testing.assert_close(out, expected.detach())
    into = torch.full_like(params, torch.nan)
    to_x = pullback(to_q, into, want_x=True)
    for got, wanted in zip((into, to_x), torch.autograd.grad(expected, leaves, to_q), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("hidden", [(), (7, 6)])
def test_inputs_of_ones_are_given_by_their_places(hidden):
    net = MemberMLP(20, hidden, 4, "elu")
    params = net.init([torch.Generator().manual_seed(n) for n in range(3)])
    places = torch.stack([torch.randperm(20)[:5] for _ in range(3 * 40)]).view(3, 40, 5)
    ones = torch.zeros(3, 40, 20).scatter_(-1, places, 1.0)
    assert torch.equal(written_out(places, 20), ones)  # as a GPU takes them
    (out, pullback), (expected, dense) = net.vjp(params, places), net.vjp(params, ones)
    torch.testing.assert_close(out, expected)
    mine, right = torch.empty_like(params), torch.empty_like(params)
    for found, expected in (
        (pullback(out, mine, want_x=True), dense(out, right, want_x=True)),
        (mine, right),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
