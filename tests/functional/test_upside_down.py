import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from lightning_rl.functional.upside_down import (
    NOISES,
    SEGMENTS,
    Target,
    draw_targets,
    effective_sample_share,
    explained_variance,
    exponential_weights,
    max_target,
    next_command,
    quantile_target,
    quantiles,
    range_target,
    rank_correlation,
    standardise,
    tilted_target,
)

TARGETS = {
    "range": lambda x: range_target(x, 1e9),
    "tilted": lambda x: tilted_target(x, exponential_weights(standardise(x, math.inf), 1.0, 20.0)),
    "quantile": lambda x: quantile_target(x, 0.9),
    "max": max_target,
}


def test_range_by_hand():
    # mean 20, population standard deviation sqrt((100 + 0 + 100) / 3)
    target = range_target(torch.tensor([30.0, 20.0, 10.0]), max_return=100.0)
    assert target == pytest.approx((20.0, math.sqrt(200 / 3), 10.0, 30.0))


def test_range_is_capped_and_survives_equal_returns():
    assert range_target(torch.tensor([90.0, 110.0]), max_return=95.0)[:2] == (95.0, 0.0)
    assert range_target(torch.tensor([80.0, 100.0]), max_return=95.0)[:2] == (90.0, 5.0)
    assert range_target(torch.tensor([7.0, 7.0]), max_return=50.0)[:2] == (7.0, 0.0)


def test_drawn_commands_fill_the_range():
    drawn = draw_targets(
        Target(10.0, 20.0, 0.0, 15.0),
        1.0,
        NOISES["range"](np.random.default_rng(0), 2000),
        limited=False,
    )
    assert drawn.shape == (2000,)
    assert 10.0 <= drawn.min() < 10.1
    assert 29.9 < drawn.max() <= 30.0
    assert float(drawn.mean()) == pytest.approx(20.0, abs=0.5)


def test_next_command_by_hand():
    command = np.array([[100.0, 5.0], [310.0, 1.0], [50.0, 2.0]])
    after = next_command(command, np.array([30.0, -40.0, 0.0]), gamma=1.0, max_return=320.0)
    assert after.tolist() == [[70.0, 4.0], [320.0, 1.0], [50.0, 1.0]]


def test_a_discounted_return_without_a_horizon_by_hand():
    command, reward = np.array([[10.0], [4.0]], np.float32), np.array([1.0, -2.0], np.float32)
    assert next_command(command, reward, 1.0, 99.0).tolist() == [[9.0], [6.0]]
    assert next_command(command, reward, 0.5, 15.0).tolist() == [[15.0], [12.0]]


def test_the_guidance_of_a_command_stays():
    reward = np.array([2.0], dtype=np.float32)
    assert next_command(np.array([[10.0, 5.0, 0.5]]), reward, 1.0, 99.0).tolist() == [
        [8.0, 4.0, 0.5]
    ]
    assert next_command(np.array([[10.0, 5.0]]), reward, 1.0, 99.0, size=1).tolist() == [[8.0, 5.0]]


def test_what_is_left_to_pay_may_be_less_than_the_best_episode_costs():
    """A corridor of four steps at -1 each: asked for -4, three are left after the first, and in
    the end none.
    """
    asked = np.array([[-4.0, 4.0], [-1.0, 1.0], [-0.5, 1.0], [-30.0, 20.0]])
    after = next_command(asked, np.full(4, -1.0), gamma=1.0, max_return=-4.0)
    assert after.tolist() == [[-3.0, 3.0], [0.0, 1.0], [0.0, 1.0], [-29.0, 19.0]]


def test_next_command_keeps_float32_and_refuses_broadcasting():
    command = np.ones((4, 2), dtype=np.float32)
    assert next_command(command, np.ones(4, dtype=np.float32), 1.0, 9.0).dtype == np.float32
    with pytest.raises(ValueError, match=r"reward \[B\]"):
        next_command(command, np.ones((4, 1)), 1.0, 9.0)


def test_segments():
    left, uniform = np.repeat([10, 7, 1], 1000), np.random.default_rng(0).random(3000)
    assert (SEGMENTS["trailing"](left, uniform) == left).all()
    steps = SEGMENTS["any"](left, uniform)
    assert steps.dtype == left.dtype
    assert set(steps[left == 7]) == set(range(1, 8))
    assert set(steps[left == 1]) == {1}


def labels(count: int = 20_000) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_weights_hand_worked():
    z = torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    low, high = math.exp(-0.5), math.exp(0.5)
    expected = torch.tensor([low, low, high, high], dtype=torch.float64) / ((low + high) / 2)
    torch.testing.assert_close(exponential_weights(z, 2.0, 20.0), expected)


def test_weights_do_not_see_scale_and_offset_and_have_mean_one():
    x = labels()
    weight = exponential_weights(standardise(x, 5.0), 1.0, 20.0)
    torch.testing.assert_close(
        weight, exponential_weights(standardise(300 * x - 50, 5.0), 1.0, 20.0), rtol=1e-3, atol=1e-3
    )
    assert float(weight.mean()) == pytest.approx(1)
    assert (weight[x.argsort()].diff() >= 0).all()


def test_weights_are_clipped_before_they_are_scaled():
    weight = exponential_weights(torch.tensor([0.0, 0.0, 0.0, 31.0]), 1.0, 20.0)
    torch.testing.assert_close(weight, torch.tensor([1.0, 1.0, 1.0, 20.0]) * 4 / 23)


@pytest.mark.parametrize("value", [0.0, -7.0, 1e8])
def test_constant_labels_are_harmless(value):
    x = torch.full((10,), value)
    torch.testing.assert_close(standardise(x, 5.0), torch.zeros(10), atol=1e-6, rtol=0)
    torch.testing.assert_close(exponential_weights(standardise(x, 5.0), 1.0, 20.0), torch.ones(10))
    for make in TARGETS.values():
        assert make(x) == pytest.approx(Target(value, 0.0, value, value), abs=1e-5)


def test_standardise_hand_worked():
    z = standardise(torch.tensor([0.0, 0.0, 0.0, 100.0]), 1.5)
    torch.testing.assert_close(
        z, torch.tensor([-0.5774, -0.5774, -0.5774, 1.5]), rtol=1e-4, atol=1e-4
    )


def test_shares_hand_worked():
    assert float(effective_sample_share(torch.ones(8))) == 1.0
    assert float(effective_sample_share(torch.tensor([0.0, 0.0, 0.0, 5.0]))) == 0.25
    assert float(effective_sample_share(torch.tensor([1.0, 3.0]))) == pytest.approx(16 / 20)


def test_explained_variance_hand_worked():
    target = torch.tensor([0.0, 2.0, 4.0])
    assert float(explained_variance(target + 3, target)) == pytest.approx(
        1
    )  # an offset is no variance
    assert float(explained_variance(torch.zeros(3), target)) == pytest.approx(0)
    assert float(explained_variance(-target, target)) == pytest.approx(-3)
    assert float(explained_variance(torch.ones(3), torch.ones(3))) == 1  # nothing varies
    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        explained_variance(torch.zeros(3, 1), target)


def test_tilting_a_normal_distribution_by_exp_z_moves_its_mean_by_one():
    z = labels()
    target = tilted_target(z, exponential_weights(z, 1.0, 1e9))
    assert target.mean == pytest.approx(1, abs=0.05)
    assert target.sd == pytest.approx(1, abs=0.05)


def test_tilted_target_hand_worked():
    target = tilted_target(torch.tensor([0.0, 4.0]), torch.tensor([1.0, 3.0]))
    assert target == Target(3.0, pytest.approx(math.sqrt(3)), 0.0, 4.0)


def test_quantiles_of_more_values_than_torch_sorts_are_the_nearest_of_them():
    many = torch.arange(2**24 + 2, dtype=torch.float64).flip(0)
    assert quantiles(many, [0.0, 0.25, 1.0]).tolist() == [0.0, round(0.25 * (2**24 + 1)), 2**24 + 1]
    few = torch.randn(3, 5)
    assert torch.equal(quantiles(few, [0.1, 0.9]), torch.quantile(few, torch.tensor([0.1, 0.9])))
    assert quantile_target(many, 0.5)[0] == round(0.5 * (2**24 + 1))


def test_quantile_and_max_hand_worked():
    z = torch.arange(11.0)
    assert quantile_target(z, 0.8) == Target(8.0, pytest.approx(math.sqrt(2 / 3)), 0.0, 10.0)
    assert max_target(z) == Target(10.0, pytest.approx(math.sqrt(10)), 0.0, 10.0)
    minibatches = torch.tensor([[0.0, 4.0, 8.0], [1.0, 1.0, 10.0]])
    assert max_target(minibatches) == Target(
        10.0, pytest.approx(math.sqrt(18)), 0.0, 10.0
    )  # of the second alone


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0])
def test_commands_stay_among_labels_that_were_seen(name, spread):
    z = labels().exp()  # skewed
    target = TARGETS[name](z)
    drawn = draw_targets(target, spread, labels(5000).float())
    assert float(z.min()) * (1 - 1e-6) <= float(drawn.min())
    assert float(drawn.max()) <= float(z.max()) * (1 + 1e-6)
    assert target.mean >= float(z.mean())


def test_draws_hand_worked():
    target, noise = Target(1.0, 2.0, -1.5, 3.0), torch.tensor([-1.0, 0.0, 0.5, 9.0, -9.0])
    assert draw_targets(target, 0.5, noise).tolist() == [0.0, 1.0, 1.5, 3.0, -1.5]
    assert draw_targets(target, 0.0, noise).tolist() == [1.0] * 5


def test_rank_correlation_is_spearmans_and_says_nothing_of_what_does_not_vary():
    rng = np.random.default_rng(0)
    asked, obtained = (
        np.repeat([-2.0, 0.5, 3.0], 10),
        rng.integers(0, 12, 30).astype(float),
    )  # ties in both
    assert rank_correlation(asked, obtained) == pytest.approx(spearmanr(asked, obtained).statistic)
    assert rank_correlation(np.arange(5), np.exp(np.arange(5))) == pytest.approx(1.0)
    assert (
        rank_correlation(np.ones(5), np.arange(5))
        == rank_correlation(np.arange(5), np.ones(5))
        == 0.0
    )
