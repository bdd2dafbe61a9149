"""Compiled steps of synthetic environments, and of a twin, against those in torch."""

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from lightning_rl.envs.cartpole import CartPole
from lightning_rl.envs.fused_worlds import step, world_of
from lightning_rl.envs.synthetic import SyntheticEnv, SyntheticNet

MEMBERS = 40


def synthetic(*hidden, activation="leakyrelu", **options):
    net = SyntheticNet(4, 2, hidden, activation)
    generators = [torch.Generator().manual_seed(n) for n in range(MEMBERS)]
    params = net.init(generators)
    params[:, net.evolved()] *= 3
    return SyntheticEnv(net, params, CartPole(), **options)


ENVS = {
    "cartpole": CartPole(),
    "synthetic": synthetic(7),
    "PReLU": synthetic(7, activation="prelu"),
    "two layers": synthetic(7, 5, activation="tanh"),
    "linear": synthetic(),
    "classifier": synthetic(7, done="classifier"),
}


@pytest.mark.parametrize("name", ENVS)
def test_steps_are_those_of_the_environment(name):
    env, world = ENVS[name], world_of(ENVS[name])
    torch.manual_seed(0)
    state = torch.randn(MEMBERS, 4) * torch.logspace(-2, 1, MEMBERS).unsqueeze(1)
    action = torch.arange(MEMBERS) % env.action_size
    given = action.unsqueeze(-1).float().numpy()
    expected = env.step(state, action, torch.empty(MEMBERS, 0))
    found, obs = state.numpy().copy(), np.empty((MEMBERS, env.obs_size), np.float32)
    rest = [step(world, n, found[n], given[n], obs[n]) for n in range(MEMBERS)]
    reward, continuation, terminated = map(np.array, zip(*rest, strict=True))
    np.testing.assert_allclose(found, expected.state, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(obs, expected.obs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(reward, expected.reward, rtol=1e-5, atol=1e-5)
    assert terminated.tolist() == expected.terminated.tolist()
    assert 0 < terminated.sum() < MEMBERS
    follows = expected.continuation
    if follows is None:
        follows = ~expected.terminated
    np.testing.assert_allclose(continuation, follows, rtol=1e-5, atol=1e-5)


def test_what_has_no_compiled_form():
    assert world_of(synthetic(7, one_hot=True)) is None
    assert world_of(synthetic(7, activation="elu")) is None
    other_slopes = synthetic(7, activation="prelu")
    other_slopes.params.add_(1)
    assert world_of(other_slopes) is None
