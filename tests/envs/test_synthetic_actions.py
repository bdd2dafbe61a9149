"""Synthetic environments of tasks with continuous actions."""

import torch

from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.synthetic import SyntheticEnv, SyntheticNet


def test_the_networks_see_actions_cut_to_the_box():
    net = SyntheticNet(3, 1, (8,), "tanh")
    env = SyntheticEnv(net, net.init([torch.Generator().manual_seed(0)]), FUNC_ENVS["pendulum"]())
    state = torch.randn(1, 3, generator=torch.Generator().manual_seed(1))
    by_action = {
        a: env.step(state, torch.tensor([[a]]), torch.empty(1, 0))
        for a in (-7.0, -1.0, 0.5, 1.0, 7.0)
    }
    for beyond, at in ((-7.0, -1.0), (7.0, 1.0)):
        assert torch.equal(by_action[beyond].state, by_action[at].state)
        assert torch.equal(by_action[beyond].reward, by_action[at].reward)
    head = net.heads["reward"].module(net.split(env.params)["reward"][0])
    torch.testing.assert_close(
        by_action[0.5].reward, head(torch.cat([torch.tensor([[0.5]]), state], -1))[:, 0]
    )
