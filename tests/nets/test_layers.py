"""What is computed and differentiated by hand, against autograd."""

import copy
import functools

import pytest
import torch
from torch import nn

from lightning_rl.core.adam import Adam, clip_gradients
from lightning_rl.functional.critic import value_error
from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.nets.command import GatedLayersNet, GatedNet, ScaledCommand
from lightning_rl.nets.layers import by_hand, loss_of, note_changes, relu_mlp
from lightning_rl.nets.policies import Policy

POLICIES = {
    "UDRL": (GatedNet, 8, [32, 20, 20], {}),
    "UDRL, wide obs": (GatedNet, 30, [32], {}),
    "RCP": (GatedLayersNet, 8, [24, 20], {"output_scale": 1.0}),
    "RCP, gates of 1": (GatedLayersNet, 20, [7], {"gate_scale": 1.0}),
}


def example(build, obs_size, hidden, options, distribution):
    """A policy in double precision, and a batch of obs, commands, actions and weights."""
    torch.manual_seed(0)
    output_size = distribution.output_size(3)
    policy = Policy(
        ScaledCommand(build(obs_size, 2, output_size, hidden, **options), (0.5, 2.0)),
        distribution,
        3,
    ).double()
    obs, command, weight = torch.randn(11, obs_size), torch.randn(11, 2), torch.rand(11)
    action = torch.randint(3, (11,)) if distribution is Categorical else torch.randn(11, 3)
    return policy, [
        x if x.dtype == torch.int64 else x.double() for x in (obs, command, action, weight)
    ]


def squared_error(net, x, target):
    return loss_of(net, x, functools.partial(value_error, target=target))


def gradients(module):
    return [parameter.grad for parameter in module.parameters()]


@pytest.mark.parametrize("distribution", [Categorical, Gaussian])
@pytest.mark.parametrize("kind", POLICIES)
def test_the_likelihood_by_hand_is_that_of_autograd(kind, distribution):
    policy, (obs, command, action, weight) = example(*POLICIES[kind], distribution)
    for given in (weight, None):
        loss, backward = policy.negative_log_likelihood(obs, command, action, given)
        backward()
        found = gradients(policy)
        log_prob = policy.distribution(obs, command).log_prob(distribution.executed(action))
        expected = -(log_prob if given is None else given * log_prob).mean()
        torch.testing.assert_close(loss, expected.detach())
        torch.testing.assert_close(
            found, list(torch.autograd.grad(expected, list(policy.parameters())))
        )
        assert all(gradient.is_contiguous() for gradient in found)


@pytest.mark.parametrize("hidden", [[20, 5], [4], []])
def test_the_squared_error_by_hand_is_that_of_autograd(hidden):
    critic, x, target = (
        relu_mlp(8, hidden, 1).double(),
        torch.randn(9, 8).double(),
        torch.randn(9).double(),
    )
    loss, backward = squared_error(critic, x, target)
    backward()
    expected = (critic(x)[:, 0] - target).square().mean()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(
        gradients(critic), list(torch.autograd.grad(expected, list(critic.parameters())))
    )


@pytest.mark.parametrize(
    "net", [nn.Linear(8, 1), nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1))], ids=str
)
def test_other_networks_leave_it_to_autograd(net):
    loss, backward = squared_error(net, torch.randn(9, 8), torch.randn(9))
    assert backward is None
    assert loss.requires_grad


def test_so_does_mixed_precision():
    critic = relu_mlp(8, [5], 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, backward = squared_error(critic, torch.randn(9, 8), torch.randn(9))
    assert backward is None
    assert loss.requires_grad


def test_frozen_layers_get_no_gradient():
    policy, (obs, command, action, _) = example(*POLICIES["RCP"], Categorical)
    net = policy.net.net
    net.layers[0].requires_grad_(False)
    policy.negative_log_likelihood(obs, command, action)[1]()
    assert net.layers[0].weight.grad is None
    assert net.layers[1].weight.grad is not None


def test_adam_is_that_of_torch_to_the_bit():
    """Also where a parameter has no gradient at first, or now and then."""
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(size)) for size in (5, 7, 2)]
    theirs = [nn.Parameter(parameter.detach().clone()) for parameter in ours]
    adam, reference = Adam(ours, 1e-2), torch.optim.Adam(theirs, lr=1e-2, fused=True)
    for step in range(8):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            idle = (number == 1 and step == 0) or (number == 2 and step % 3)
            one.grad = other.grad = None if idle else torch.randn_like(one)
        if step == 5:
            adam.load_state_dict(copy.deepcopy(reference.state_dict()))
            adam.param_groups[0]["lr"] = reference.param_groups[0]["lr"] = 1e-3
        adam.step()
        reference.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert str(adam.state_dict()) == str(reference.state_dict())


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_gradients_are_clipped_as_torch_clips_them(limit):
    parameters = [nn.Parameter(torch.zeros(size)) for size in (5, 7, 2)]
    for parameter in parameters[:2]:
        parameter.grad = torch.randn_like(parameter)
    expected = [parameter.grad.clone() for parameter in parameters[:2]]
    norm = torch.cat(expected).norm()
    clip_gradients([{"params": parameters}], limit)
    for parameter, gradient in zip(parameters, expected, strict=False):
        torch.testing.assert_close(parameter.grad, gradient * min(1.0, limit / float(norm)))


def lora(net):
    class Lora(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    net.body[0] = Lora(8, 8)


@pytest.mark.parametrize(
    "change",
    [
        lambda net: nn.utils.parametrizations.weight_norm(net.body[2]),
        lora,
        lambda net: net.body.__setitem__(1, nn.Tanh()),
        lambda net: net.body[2].weight.register_hook(lambda grad: grad * 0),
        lambda net: net.embed_obs.register_forward_hook(lambda module, x, y: y * 2),
        lambda net: net.embed_obs.weight.register_post_accumulate_grad_hook(lambda parameter: None),
    ],
    ids=["parametrization", "subclass", "activation", "gradient", "layer", "after the gradient"],
)
def test_a_network_that_a_user_has_changed_is_left_to_autograd(change):
    net, obs, command = GatedNet(3, 2, 4, [8, 8]), torch.randn(5, 3), torch.randn(5, 2)
    assert by_hand(net, obs, command) is not None
    note_changes(net)
    change(net)
    note_changes(nn.ModuleList([net]))
    assert by_hand(net, obs, command) is None


@pytest.mark.parametrize("change", ["weight_decay", "group"])
def test_adam_with_weight_decay_or_another_group_is_that_of_torch(change):
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(4)) for _ in range(3)]
    theirs = [nn.Parameter(parameter.detach().clone()) for parameter in ours]
    adam, reference = Adam(ours[:2], 1e-2), torch.optim.Adam(theirs[:2], lr=1e-2, fused=True)
    for step in range(6):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        for each, last in ((adam, ours[2]), (reference, theirs[2])):
            if step == 2 and change == "weight_decay":
                each.param_groups[0]["weight_decay"] = 0.5
            if step == 2 and change == "group":
                each.add_param_group({"params": [last], "lr": 0.1})
            each.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
