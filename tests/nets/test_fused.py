"""Compiled updates against the same in torch, over random shapes, batches and extremes."""

import math

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("numba")

from lightning_rl.functional.critic import action_features, critic_loss
from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.nets.command import GatedLayersNet, GatedNet
from lightning_rl.nets.flat import FlatTraining, flat, shape_of, write_back
from lightning_rl.nets.fused import backward, clip, descend, fill, forward, net_of
from lightning_rl.nets.fused_losses import categorical_loss, gaussian_loss, value_loss
from lightning_rl.nets.layers import MovingAverage, relu_mlp

NETS = {
    "UDRL": lambda: GatedNet(8, 2, 4, [32, 20, 24]),
    "UDRL, one layer": lambda: GatedNet(30, 2, 4, [17]),
    "RCP": lambda: GatedLayersNet(8, 1, 4, [24, 20], output_scale=1.0),
    "RCP, gates of 1": lambda: GatedLayersNet(1, 3, 4, [7], gate_scale=1.0),
    "no hidden layer": lambda: relu_mlp(5, [], 4),
    "critic": lambda: relu_mlp(8, [20, 5, 3], 4),
}


def inputs(net, batch, seed=0):
    """Inputs of a network, some of them large."""
    torch.manual_seed(seed)
    shape = shape_of(net)
    x = [torch.randn(batch, shape.widths[0])]
    if shape.num_gated:
        x.append(torch.randn(batch, shape.command_size))
    for each in x:
        each[0] *= 1e4
    return x


def loaded(net, x):
    """The network's memory with its inputs."""
    memory = net_of(shape_of(net), len(x[0]))
    fill(memory.inputs, x[0].numpy())
    if len(x) > 1:
        fill(memory.command, x[1].numpy())
    return memory


def pairs(net, value):
    return [(value(layer.weight), value(layer.bias)) for layer in net.linears()]


@pytest.mark.parametrize("batch", [1, 13, 256])
@pytest.mark.parametrize("kind", NETS)
def test_forward_and_backward_are_those_of_autograd(kind, batch):
    torch.manual_seed(1)
    net = NETS[kind]()
    x = inputs(net, batch)
    params, memory = flat(pairs(net, torch.Tensor.detach)), loaded(net, x)
    forward(params, memory)
    output = net(*x)
    np.testing.assert_allclose(memory.out.T, output.detach(), rtol=2e-5, atol=2e-5)
    grad = torch.randn(batch, 4)
    output.backward(grad)
    memory.grad[:] = grad.T
    backward(params, memory)
    expected = flat(pairs(net, lambda parameter: parameter.grad))
    np.testing.assert_allclose(
        memory.gradient, expected, rtol=1e-4, atol=2e-6 * np.abs(expected).max()
    )


def test_flat_parameters_find_their_way_back():
    torch.manual_seed(0)
    net, other = NETS["RCP"](), NETS["RCP"]()
    write_back(flat(pairs(net, torch.Tensor.detach)), pairs(other, torch.Tensor.detach))
    assert all(map(torch.equal, net.parameters(), other.parameters()))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize(
    ("distribution", "loss"), [(Categorical, categorical_loss), (Gaussian, gaussian_loss)]
)
def test_likelihoods_are_those_of_the_distributions(distribution, loss, scale):
    torch.manual_seed(0)
    output = (torch.randn(11, 4) * scale).requires_grad_()
    weight = torch.rand(11)
    if distribution is Gaussian:
        action = torch.randn(11, 2).clamp(-1, 1)
        given = action
    else:
        action = torch.randint(4, (11,))
        given = action.unsqueeze(-1).float()
    expected = -(weight * distribution(output).log_prob(action)).mean()
    expected.backward()
    grad = np.empty((4, 11), np.float32)
    found = loss(output.detach().T.contiguous().numpy(), given.numpy(), weight.numpy(), grad)
    assert found == pytest.approx(float(expected.detach()), rel=1e-5)
    size = float(output.grad.abs().max())
    np.testing.assert_allclose(grad.T, output.grad, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("features", [0, 3, 5])
def test_the_squared_error_is_that_of_the_critic(features):
    torch.manual_seed(0)
    output = torch.randn(9, 1 + features, requires_grad=True)
    target = torch.randn(9)
    given = None
    if features == 3:
        given = action_features(torch.randint(3, (9,)), [3])
    elif features == 5:
        given = action_features(torch.randn(9, 2), [2])
    expected = critic_loss(output, target, given)
    expected.backward()
    grad = np.empty((1 + features, 9), np.float32)
    phi = np.empty((9, 0), np.float32) if given is None else given.numpy()
    found = value_loss(output.detach().T.contiguous().numpy(), target.numpy(), phi, grad)
    assert found == pytest.approx(float(expected.detach()), rel=1e-5)
    np.testing.assert_allclose(grad.T, output.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("limit", [0.5, math.inf])
def test_clipping_and_adam_and_the_average_are_those_of_torch(limit):
    """Interrupted in the middle, as by the end of an epoch; the second half is at another rate."""
    torch.manual_seed(0)
    ours, theirs = relu_mlp(3, [5], 2), relu_mlp(3, [5], 2)
    followers = [relu_mlp(3, [5], 2) for _ in range(2)]
    theirs.load_state_dict(ours.state_dict())
    followers[1].load_state_dict(followers[0].state_dict())
    average, reference = (
        MovingAverage(follower, net, 0.1)
        for follower, net in zip(followers, (ours, theirs), strict=True)
    )
    adams = [torch.optim.Adam(net.parameters(), 1e-2, fused=True) for net in (ours, theirs)]
    gradients = torch.randn(8, 32) * torch.tensor([0.01, 1e4])[torch.arange(8) % 2].unsqueeze(1)
    for half in gradients.split(4):
        training = FlatTraining(ours, adams[0], limit, average)
        for number, gradient in enumerate(half):
            descend(training.learner, gradient.numpy().copy(), training.step + number + 1)
            write_back(gradient.numpy(), gradients_of(theirs))
            if limit < math.inf:
                nn.utils.clip_grad_norm_(theirs.parameters(), limit)
            adams[1].step()
            reference.update()
        training.finish(len(half))
        for adam in adams:
            adam.param_groups[0]["lr"] = 1e-3
    for found, expected in ((ours, theirs), (followers[0], followers[1])):
        for one, other in zip(found.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
    states = [adam.state_dict()["state"] for adam in adams]
    assert states[0].keys() == states[1].keys()
    for number, state in states[0].items():
        torch.testing.assert_close(state, states[1][number], rtol=1e-5, atol=1e-7)


def gradients_of(net):
    """Room for the gradients of a network."""
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return pairs(net, lambda parameter: parameter.grad)


def test_infinite_numbers_are_seen():
    gradient = np.array([1.0, np.inf], np.float32)
    clip(gradient, 1.0)
    assert not np.isfinite(gradient).all()
