import pytest
import torch

from lightning_rl.agents.ppo import clipped_surrogate, standardised
from lightning_rl.functional.returns import discounted_returns, lambda_returns


def test_returns_start_anew_after_each_episode():
    reward, over = torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([False, True, False, False])
    assert discounted_returns(reward, 0.5, over).tolist() == [1 + 0.5 * 2, 2, 4 + 0.5 * 8, 8]


def test_generalised_advantage_by_hand():
    """Step 1 is truncated (bootstraps, no trace), step 2 terminated, step 3 is where the data
    end (bootstraps).
    """
    reward, value, next_value = (
        torch.ones(4),
        torch.tensor([1.0, 2, 3, 4]),
        torch.tensor([2.0, 6, 9, 10]),
    )
    discount, last = torch.tensor([0.5, 0.5, 0.0, 0.5]), torch.tensor([False, True, True, True])
    delta = [1 + 0.5 * 2 - 1, 1 + 0.5 * 6 - 2, 1 - 3, 1 + 0.5 * 10 - 4]
    expected = [delta[0] + 0.8 * 0.5 * delta[1], *delta[1:]]
    advantage = lambda_returns(reward, discount, next_value, last, 0.8) - value
    assert advantage.tolist() == pytest.approx(expected)


def test_clipped_surrogate_by_hand():
    log_ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1]).log()
    advantage = torch.tensor([2.0, -2.0, 2.0, -2.0, 1.0])
    value = clipped_surrogate(log_ratio, torch.zeros(5), advantage, 0.2)
    assert value.tolist() == pytest.approx([1.2 * 2, -1.5 * 2, 0.5 * 2, -0.8 * 2, 1.1])


def test_standardised():
    x = standardised(torch.randn(4, 100) * 7 + 3)
    torch.testing.assert_close(x.mean(-1), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std(-1), torch.ones(4), atol=1e-4, rtol=0)
