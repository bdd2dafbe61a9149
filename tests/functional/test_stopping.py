import torch

from lightning_rl.functional.compat import solved_early
from lightning_rl.functional.stopping import plateaued, solved


def pad(*rows):
    width = max(len(row) for row in rows)
    returns = torch.tensor([[*row, *[99.0] * (width - len(row))] for row in rows], dtype=torch.float32)
    return returns, torch.tensor([len(row) for row in rows])


def test_solved_needs_a_full_window_unless_faithful():
    returns, count = pad([0, 5, 7], [0, 5, 6], [100], [])
    assert solved(returns, count, 2, 6.0).tolist() == [True, False, False, False]
    assert solved_early(returns, count, 2, 6.0).tolist() == [True, False, True, False]


def test_plateau_by_hand():
    """Window 2: mean 10.05 after mean 10.0 is a change of 0.5 %."""
    returns, count = pad([0, 0, 10, 10, 10, 10.1], [0, 0, 10, 10, 10, 10.4], [0, 0, -10, -10, -10, -10.1])
    assert plateaued(returns, count, 2, 0.01, 1).tolist() == [True, False, True]


def test_the_earliest_stop_is_after_21_episodes():
    """Ten episodes to fill the memory and a window of ten, as in the published rule."""
    returns = torch.ones(1, 30)
    counts = [n for n in range(31) if plateaued(returns, torch.tensor([n]), 10, 0.01, 10)]
    assert counts[0] == 21
    assert not plateaued(returns, torch.tensor([5]), 10, 0.01, 0)


def test_the_window_before_may_be_short_but_not_empty():
    returns = torch.tensor([[4.0, 2, 2, 2, 2]])
    assert not plateaued(returns, torch.tensor([4]), 3, 0.5, 0).item()  # before: [4]
    assert plateaued(returns, torch.tensor([4]), 3, 0.51, 0).item()
    assert not plateaued(returns[:, :3], torch.tensor([3]), 3, 1e9, -1).item()  # before: nothing
