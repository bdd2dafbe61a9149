import numpy as np
import pytest
import torch
from helpers.toys import make_episode

from lightning_rl.functional.returns import lambda_returns, reverse_scan


def test_returns_to_go_by_hand():
    assert make_episode([1.0, -2.0, 4.0]).to_go.tolist() == [3.0, 2.0, 4.0, 0.0]


def test_segment_return_is_a_difference():
    episode = make_episode(np.random.default_rng(0).normal(size=50).tolist())
    for start, end in ((0, 50), (3, 17), (49, 50)):
        assert episode.to_go[start] - episode.to_go[end] == pytest.approx(
            episode.reward[start:end].sum(), abs=1e-5
        )


@pytest.mark.parametrize("length", [1, 2, 3, 8, 37, 1000])
def test_reverse_scan_equals_the_loop(length):
    generator = torch.Generator().manual_seed(length)
    decay, x = (torch.rand(2, length, generator=generator, dtype=torch.float64) for _ in range(2))
    y, after = torch.zeros(2, length, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for t in reversed(range(length)):
        y[:, t] = after = x[:, t] + decay[:, t] * after
    torch.testing.assert_close(reverse_scan(decay, x), y)


def test_lambda_returns_hand_worked():
    # Two episodes behind one another: two steps, truncated, V(end) = 4; then two steps, terminated.
    reward = torch.tensor([1.0, 2.0, 3.0, 5.0])
    discount = torch.tensor([0.5, 0.5, 0.5, 0.0])
    next_value = torch.tensor([10.0, 4.0, 6.0, 1e6])
    last = torch.tensor([False, True, False, True])
    # lambda 0.8: G1 = 2 + .5*4 = 4; G0 = 1 + .5*(.2*10 + .8*4) = 3.6; G3 = 5; G2 = 3 + .5*(.2*6 +
    # .8*5) = 5.6
    torch.testing.assert_close(
        lambda_returns(reward, discount, next_value, last, 0.8), torch.tensor([3.6, 4.0, 5.6, 5.0])
    )
    # lambda 1: the discounted sum, bootstrapped where truncated; lambda 0: one step
    torch.testing.assert_close(
        lambda_returns(reward, discount, next_value, last, 1.0), torch.tensor([3.0, 4.0, 5.5, 5.0])
    )
    torch.testing.assert_close(
        lambda_returns(reward, discount, next_value, last, 0.0), torch.tensor([6.0, 4.0, 6.0, 5.0])
    )


def test_column_values_do_not_broadcast_against_flat_rewards():
    flat, column = torch.zeros(3), torch.zeros(3, 1)
    with pytest.raises(ValueError, match=r"'next_value': \(3, 1\)"):
        lambda_returns(flat, flat, column, flat.bool(), 0.9)
