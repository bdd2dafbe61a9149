"""Reward networks around Gymnasium tasks: potentials of the observations before and after each
step.
"""

import pytest
import torch

from lightning_rl.envs.reward_network import RewardBatch, RewardNet
from lightning_rl.envs.spec import EnvSpec

SPEC = EnvSpec("cartpole-v1", "CartPole-v1", 4, 2, False, 4, 4.0, None)


@pytest.mark.parametrize(
    ("form", "real"), [("additive_potential", 1.0), ("exclusive_potential", 0.0)]
)
def test_a_potential_sees_the_state_of_this_step_and_of_this_episode(form, real):
    """``real + 0.9 phi(s') - phi(s)`` at seven steps: over the end of an episode, then with one
    member gone.
    """
    net = RewardNet(4, 0, form, (8,), "tanh")
    params = net.init([torch.Generator().manual_seed(n) for n in range(2)])
    phi = [net.net.module(row) for row in params]
    batch = RewardBatch(net, params, SPEC, [1, 2], 0.9)
    obs, members = batch.reset(torch.zeros(2) > 0), [0, 1]
    for t in range(7):
        if t == 6:
            batch.keep(torch.tensor([1]))
            obs, members = obs[1:], [1]
        step = batch.step(torch.tensor([t % 2] * len(members)))
        for row, n in enumerate(members):
            expected = real + 0.9 * phi[n](step.obs[row]) - phi[n](obs[row])
            torch.testing.assert_close(step.reward[row], expected[0])
        over = step.terminated | step.truncated
        assert over.any() == (t == 3)
        if over.any():
            assert torch.equal(batch.reset(over), batch.real.obs)
        obs = batch.real.obs


@pytest.mark.parametrize("form", ["additive_potential", "exclusive"])
def test_repeated_actions_are_paid_step_by_step(form):
    """Actions taken three times, until the time limit of four steps: the sums of what single
    steps pay.
    """
    net = RewardNet(4, 0, form, (8,), "tanh")
    params = net.init([torch.Generator().manual_seed(n) for n in range(2)])
    repeated, single = (RewardBatch(net, params, SPEC, [1, 2], 0.9, repeat) for repeat in (3, 1))
    for count, over in ((3, False), (1, True)):
        action = torch.tensor([0, 1])
        steps = [single.step(action) for _ in range(count)]
        step = repeated.step(action)
        torch.testing.assert_close(step.reward, sum(each.reward for each in steps))
        assert torch.equal(step.obs, steps[-1].obs)
        assert step.length.tolist() == [count] * 2
        assert step.truncated.tolist() == [over] * 2


def test_a_restored_batch_goes_on_from_the_observation_that_it_left():
    net = RewardNet(4, 0, "additive_potential", (8,), "tanh")
    params = net.init([torch.Generator().manual_seed(n) for n in range(2)])
    one, other = (RewardBatch(net, params, SPEC, [1, 2], 0.9) for _ in range(2))
    one.step(torch.tensor([0, 1]))
    other.restore(one.snapshot())
    assert torch.equal(*(batch.step(torch.tensor([1, 1])).reward for batch in (one, other)))
