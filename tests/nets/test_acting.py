"""Actions of compiled policies, beside those of the same policies in torch."""

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("numba")

from lightning_rl.agents.ppo import FreeGaussian
from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.methods.policy_gradient import actor_critic, relu_layers
from lightning_rl.nets.acting import playing
from lightning_rl.nets.command import CommandPolicy, GatedLayersNet, GatedNet, ScaledCommand
from lightning_rl.nets.compiling import may_compile
from lightning_rl.nets.layers import relu_mlp
from lightning_rl.nets.noisy_command import NoisyCommandPolicy
from lightning_rl.nets.policies import Policy


@torch.no_grad()
def command_policy(distribution, build, guidance=0.0):
    torch.manual_seed(0)
    net = ScaledCommand(build(5, 2, distribution.output_size(3), [16, 12]), (0.5, 2.0), limit=1.5)
    net.shift.copy_(torch.tensor([0.3, -0.2]))
    policy = CommandPolicy(net, distribution, 3, guidance)
    policy.usual.copy_(torch.tensor([0.1, 0.7]))
    for layer in net.net.linears():
        layer.weight.mul_(4.0)  # so that commands matter
    return policy


@torch.no_grad()
def both(policy, commands, guidance=None):
    """Actions of the compiled policy, and by torch."""
    rng = np.random.default_rng(0)
    obs, noise = rng.normal(size=(40, 5)), rng.normal(size=(40, 3))
    command = rng.normal(size=(40, 2)) if commands else None
    inputs = [None if each is None else each.astype(np.float32) for each in (obs, command, noise)]
    with playing(policy) as act:
        found = act(*inputs, guidance)
    given = [None if each is None else torch.from_numpy(each) for each in inputs]
    if guidance is not None:
        given.append(torch.from_numpy(guidance).unsqueeze(-1))
    return found, policy.act(*given).numpy()


@pytest.mark.parametrize("guidance", [0.0, 2.5, "of each request"])
@pytest.mark.parametrize("build", [GatedLayersNet, GatedNet])
@pytest.mark.parametrize("distribution", [Categorical, Gaussian])
def test_a_policy_acts_as_in_torch(distribution, build, guidance):
    requests = None
    if guidance == "of each request":
        requests, guidance = np.linspace(-1, 3, 40, dtype=np.float32), 0.0
    policy = command_policy(distribution, build, guidance)
    assert may_compile(policy)
    found, expected = both(policy, True, requests)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if guidance or requests is not None:
        unguided, _ = both(command_policy(distribution, build), True)
        assert (found != unguided).any()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("distribution", [Categorical, Gaussian])
def test_so_does_one_without_a_command(distribution, shared):
    torch.manual_seed(0)
    actor, _ = actor_critic(
        lambda: relu_layers([5, 16, 12]), 12, distribution.output_size(3), shared
    )
    policy = Policy(actor, distribution, 3)
    assert may_compile(policy)
    found, expected = both(policy, False)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_others_act_by_torch():
    policy = command_policy(Categorical, GatedNet)
    policy.net.net.body[1].register_forward_hook(lambda module, x, y: y * 2)
    assert not may_compile(policy)
    found, expected = both(policy, True)
    assert np.array_equal(found, expected)
    assert not may_compile(Policy(nn.Linear(5, 3), Categorical, 3))
    noisy = command_policy(Categorical, GatedNet)
    assert not may_compile(NoisyCommandPolicy(noisy.net, Categorical, 3, 0.0))


class Indifferent(Policy):
    def distribution(self, obs, command=None):
        return Categorical(torch.zeros(len(obs), 3))


class Deaf(GatedNet):
    def forward(self, obs, command):
        return super().forward(obs, 0 * command)


def test_own_policies_and_networks_act_in_their_own_way():
    net = relu_mlp(5, [16], 3)
    assert may_compile(Policy(net, Categorical, 3))
    assert not may_compile(Indifferent(net, Categorical, 3))
    assert not may_compile(Policy(net, FreeGaussian, 3))
    assert not may_compile(command_policy(Categorical, Deaf))
