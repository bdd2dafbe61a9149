import math

import pytest
import torch

from lightning_rl.functional import evolution as es

# Scores, mean score of the center, and the weights of each transform in order (reference of the
# earlier code, three digits).
VECTORS = [
    (
        [1, 0, 5],
        1.0,
        [[0.2, 0, 1], [0.5, 0, 1], [-0.292, -0.708, 1], [0.2435, 0, 1], *[[0, 0, 1]] * 4],
    ),
    (
        [0.6, 0.9, 0.75, 0.95],
        0.7,
        [
            [0, 0.857, 0.429, 1],
            [0, 0.667, 0.333, 1],
            [-0.520, 0.041, -0.520, 1],
            [0, 0.369, 0, 1],
            [0, 0, 0, 1],
            [0, 0, 0, 1],
            [0, 0.8, 0.2, 1],
            [0, 0.4, 0.1, 0.5],
        ],
    ),
]


@pytest.mark.parametrize(("scores", "baseline", "expected"), VECTORS)
@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_transforms_match_the_reference(scores, baseline, expected, number, dtype):
    if dtype == torch.int64 and baseline != 1:
        pytest.skip("fractional scores")
    transform = list(es.TRANSFORMS.values())[number]
    weights = transform(torch.tensor(scores, dtype=dtype), baseline)
    assert weights.tolist() == pytest.approx(expected[number], abs=6e-4)


def test_transforms_of_sixteen():
    scores = -torch.arange(16.0)
    best = [1, 0.685, 0.5, 0.369, 0.268, 0.185, 0.114, 0.054]
    assert es.nes_unnormalised(scores, 0).tolist() == pytest.approx([*best, *[0] * 8], abs=5e-4)
    assert es.nes_unnormalised(scores, 0).sum().item() == pytest.approx(3.174, abs=5e-4)
    assert es.nes(scores, 0)[8:].tolist() == pytest.approx([-0.247] * 8, abs=5e-4)
    assert es.nes_unnormalised(scores, 0).norm().item() == pytest.approx(1.406, abs=1e-3)
    assert es.nes_utilities(scores).sum().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", es.TRANSFORMS)
def test_order_does_not_matter_and_ties_share(name):
    scores = torch.tensor([9.4, 200, 9.4, 200, 50, 9.4, 200])
    weights = es.TRANSFORMS[name](scores, 20.0)
    for value in scores.unique():
        assert len(weights[scores == value].unique()) == 1
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    torch.testing.assert_close(es.TRANSFORMS[name](scores[order], 20.0), weights[order])


@pytest.mark.parametrize("name", ["single_better", "all_better_max", "all_better_sum"])
def test_nothing_better_gives_no_step(name):
    assert es.TRANSFORMS[name](torch.tensor([1.0, 2, 3]), 3.0).tolist() == [0, 0, 0]


def test_best_of_pair_keeps_plus_on_a_tie():
    kept, sign = es.best_of_pair(torch.tensor([1.0, 5, 2]), torch.tensor([3.0, 4, 2]))
    assert kept.tolist() == [3, 5, 2]
    assert sign.tolist() == [-1, 1, 1]


def test_weighted_noise_by_hand():
    noise = torch.tensor([[1.0, 0], [0, 2]])
    assert es.weighted_noise(torch.tensor([0.5, 1.0]), noise).tolist() == [0.5, 2.0]


def test_antithetic_gradient_is_that_of_a_linear_function():
    """f(x) = g x: every pair gives (g z) z, whose mean over many z is g."""
    z = es.standard_noise(0, 0, range(20_000), 3)
    g = torch.tensor([1.0, -2.0, 0.5])
    estimate = es.antithetic_gradient(0.1 * z @ g, -0.1 * z @ g, z, 0.1)
    torch.testing.assert_close(estimate, g, atol=0.06, rtol=0)


def test_snes_directions_by_hand():
    mean, log_std = es.snes_directions(
        torch.tensor([0.5, -0.5]), torch.tensor([[1.0, 2], [-1, 0]]), torch.tensor([0.1, 0.2])
    )
    assert mean.tolist() == pytest.approx([0.1, 0.2])
    assert log_std.tolist() == pytest.approx([0, 0.5 * (0.5 * 3 + 0.5)])
    assert es.snes_std_rate(100) == pytest.approx((3 + math.log(100)) / 50)


def test_noise_depends_on_seed_generation_and_member_alone():
    some = es.standard_noise(3, 5, [4, 1], 7)
    assert torch.equal(some, es.standard_noise(3, 5, [0, 1, 4], 7)[[2, 1]])
    assert not torch.equal(some, es.standard_noise(3, 6, [4, 1], 7))
    many = es.standard_noise(0, 0, range(50), 400)
    assert abs(many.mean()) < 0.03
    assert abs(many.std() - 1) < 0.02


def test_one_utility_moves_the_log_deviation_by_the_excess_of_its_square():
    mean, log_std = es.snes_directions(
        torch.tensor([1.0]), torch.tensor([[2.0, -1, 0]]), torch.ones(3)
    )
    assert mean.tolist() == [2.0, -1.0, 0.0]
    assert log_std.tolist() == [1.5, 0.0, -0.5]


def test_equal_scores_share_their_weights_equally():
    """Ranks 1 and 2/3 of the two best, and all of the weight of the single best."""
    scores = torch.tensor([7.0, 1.0, 7.0, 0.0])
    assert es.rank(scores, 0.0).tolist() == pytest.approx([5 / 6, 1 / 3, 5 / 6, 0.0])
    assert es.single_best(scores, 0.0).tolist() == [0.5, 0.0, 0.5, 0.0]
