"""Compiled twins of environments against these."""

import pytest
import torch

pytest.importorskip("numba")

from lightning_rl.envs.fused_classic import step
from lightning_rl.envs.twins import TWINS


@pytest.mark.parametrize("make", TWINS)
def test_a_step_is_that_of_the_environment(make):
    """From first states, and from states far from them, in which episodes end and angles wrap."""
    env, draw = make(), torch.Generator().manual_seed(0)
    first = env.reset(torch.rand(500, env.reset_noise_size, generator=draw))
    far = first + torch.randn(first.shape, generator=draw)
    states = torch.cat([first, far])
    if env.continuous:
        action = 2 * torch.randn(1000, env.action_size, generator=draw)
        given = action
    else:
        action = torch.randint(env.action_size, (1000,), generator=draw)
        given = action.unsqueeze(-1).float()
    expected = env.step(states, action, torch.zeros(1000, 0))
    after, obs = states.clone(), torch.empty_like(expected.obs)
    for row in range(1000):
        reward, terminated = step(
            TWINS.index(make), after[row].numpy(), given[row].numpy(), obs[row].numpy()
        )
        assert reward == pytest.approx(float(expected.reward[row]), rel=1e-5, abs=1e-6)
        assert terminated == bool(expected.terminated[row])
    torch.testing.assert_close(after, expected.state, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(obs, expected.obs, rtol=1e-5, atol=1e-6)
