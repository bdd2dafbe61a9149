import math

import pytest
import torch

from lightning_rl.functional.curiosity import count_bonus, forward_error, inverse_loss


def test_count_bonus():
    assert count_bonus(torch.tensor([1, 4, 100]), 0.1).tolist() == pytest.approx([0.1, 0.05, 0.01])


def test_inverse_loss_by_hand():
    logits = torch.tensor([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    expected = [[math.log(3), math.log(math.e + 2) - 1]]
    assert inverse_loss(logits, torch.tensor([[2, 0]])).tolist()[0] == pytest.approx(expected[0])
    assert inverse_loss(torch.tensor([[[1.0, 3.0]]]), torch.tensor([[[0.0, 1.0]]])).tolist() == [
        [2.5]
    ]


def test_forward_error_is_a_mean_over_features():
    assert forward_error(torch.tensor([[1.0, 3.0]]), torch.tensor([[0.0, 1.0]])).tolist() == [2.5]
