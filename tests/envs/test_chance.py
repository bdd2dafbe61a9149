"""What chance does in the tasks that are made of it."""

import pytest
import torch

from lightning_rl.envs.chance import Gamble, NoisyRoom

RIGHT, _, _, UP = range(4)


def test_gambles_pay_more_than_a_sure_1_in_half_of_the_cases_and_less_on_average():
    env = Gamble()
    action = torch.arange(3).repeat(2, 1)
    noise = torch.tensor([0.4, 0.6]).reshape(2, 1, 1).expand(2, 3, 1)
    step = env.step(env.reset(noise), action, noise)
    assert sorted(step.reward.tolist()) == [[1.0, -15.0, -6.0], [1.0, 5.0, 1.0]]
    assert step.terminated.all()
    assert env.means.tolist() == step.reward.mean(0).tolist()


@pytest.mark.parametrize(("percent", "up"), [(0, 1.0), (40, 0.7), (64, 0.52)])
def test_a_share_of_the_moves_is_random(percent, up):
    """Of the random ones a quarter goes up as well."""
    env, count = NoisyRoom(percent), 1000
    noise = ((torch.arange(count) + 0.5) / count).unsqueeze(-1)
    step = env.step(env.reset(noise), torch.full((count,), UP), noise)
    assert float((step.state == 5).float().mean()) == pytest.approx(up)
    fallen = env.step(env.reset(noise), torch.full((count,), RIGHT), noise).terminated
    assert float(fallen.float().mean()) == pytest.approx(up)
