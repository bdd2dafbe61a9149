"""Weights by hand."""

import math

import pytest
import torch
from helpers.toys import make_episode

from lightning_rl.functional.upside_down import (
    effective_sample_share,
    exponential_weights,
    standardise,
)
from lightning_rl.methods.upside_down.weightings import AllAlike, ByEpisodeReturn, ByReturnToGo
from lightning_rl.rollouts.episode_buffer import flatten

EPISODES = flatten([make_episode([1.0, 2.0, 4.0]), make_episode([8.0])])
KEYS = {"temperature": 0.5, "max_weight": 20.0, "label_max": None}


def labels(count: int = 20_000) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_labels_by_hand():
    assert ByReturnToGo(gamma=0.5, **KEYS).label(EPISODES).tolist() == [3.0, 4.0, 4.0, 8.0]
    assert ByEpisodeReturn(**KEYS).label(EPISODES).tolist() == [7.0, 7.0, 7.0, 8.0]
    assert AllAlike().weights(EPISODES) is None


def test_a_label_above_the_limit_counts_as_the_limit():
    """3, 4, 4 and 4: standardised -sqrt(3) and 1 / sqrt(3)."""
    weight = ByReturnToGo(gamma=0.5, **{**KEYS, "label_max": 4.0}).weights(EPISODES)
    low, high = math.exp(-2 * math.sqrt(3)), math.exp(2 / math.sqrt(3))
    expected = torch.tensor([low, high, high, high]) * 4 / (low + 3 * high)
    torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-4)


def test_weights_hand_worked():
    z = torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    low, high = math.exp(-0.5), math.exp(0.5)
    expected = torch.tensor([low, low, high, high], dtype=torch.float64) / ((low + high) / 2)
    torch.testing.assert_close(exponential_weights(z, 2.0, 20.0), expected)


def test_weights_do_not_see_scale_and_offset_and_have_mean_one():
    x = labels()
    weight = exponential_weights(standardise(x), 1.0, 20.0)
    moved = exponential_weights(standardise(300 * x - 50), 1.0, 20.0)
    torch.testing.assert_close(weight, moved, rtol=1e-3, atol=1e-3)
    assert float(weight.mean()) == pytest.approx(1)
    assert (weight[x.argsort()].diff() >= 0).all()


def test_weights_are_clipped_before_they_are_scaled():
    weight = exponential_weights(torch.tensor([0.0, 0.0, 0.0, 31.0]), 1.0, 20.0)
    torch.testing.assert_close(weight, torch.tensor([1.0, 1.0, 1.0, 20.0]) * 4 / 23)


@pytest.mark.parametrize("value", [0.0, -7.0, 1e8])
def test_constant_labels_are_harmless(value):
    z = standardise(torch.full((10,), value), 5.0)
    torch.testing.assert_close(z, torch.zeros(10), atol=1e-6, rtol=0)
    torch.testing.assert_close(exponential_weights(z, 1.0, 20.0), torch.ones(10))


def test_standardise_hand_worked():
    z = standardise(torch.tensor([0.0, 0.0, 0.0, 100.0]), 1.5)
    expected = torch.tensor([-0.5774, -0.5774, -0.5774, 1.5])
    torch.testing.assert_close(z, expected, rtol=1e-4, atol=1e-4)


def test_shares_hand_worked():
    assert float(effective_sample_share(torch.ones(8))) == 1.0
    assert float(effective_sample_share(torch.tensor([0.0, 0.0, 0.0, 5.0]))) == 0.25
    assert float(effective_sample_share(torch.tensor([1.0, 3.0]))) == pytest.approx(16 / 20)
