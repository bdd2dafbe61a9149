import numpy as np
import pytest

from lightning_rl.functional.returns import returns_to_go


def test_hand_worked():
    assert returns_to_go(np.array([1.0, -2.0, 4.0])).tolist() == [3.0, 2.0, 4.0, 0.0]


def test_segment_return_is_a_difference():
    reward = np.random.default_rng(0).normal(size=50)
    to_go = returns_to_go(reward)
    for start, end in ((0, 50), (3, 17), (49, 50)):
        assert to_go[start] - to_go[end] == pytest.approx(reward[start:end].sum())


def test_empty_and_wrong_shape():
    assert returns_to_go(np.zeros(0)).tolist() == [0.0]
    with pytest.raises(ValueError, match=r"\[T\]"):
        returns_to_go(np.zeros((3, 1)))
