import math

import pytest
import torch

from lightning_rl.functional.relaxation import annealed, gumbel_softmax
from lightning_rl.functional.value_learning import (
    double_q_target,
    dueling_q,
    epsilon_after,
    epsilon_greedy,
    q_learning_target,
    sarsa_target,
    smoothing_noise,
    twin_target,
    weighted_squared_error,
)

R, D = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.0])
Q = torch.tensor([[3.0, 4.0], [5.0, 1.0]])


def test_targets_by_hand():
    assert q_learning_target(R, D, Q).tolist() == [1 + 0.5 * 4, 2]
    assert sarsa_target(R, D, Q, torch.tensor([0, 0])).tolist() == [1 + 0.5 * 3, 2]
    # the online values choose action 1 and 0, the target values say what these are worth
    assert double_q_target(
        R, torch.tensor([0.5, 0.5]), Q, torch.tensor([[9.0, 2.0], [4.0, 8.0]])
    ).tolist() == [2, 4]
    assert twin_target(R[None], D[None], torch.tensor([[[6.0, 1.0], [4.0, 2.0]]])).tolist() == [
        [1 + 0.5 * 4, 2]
    ]


def test_dueling_mean_is_per_sample():
    value, advantage = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[1.0, 3.0], [0.0, 8.0]]])
    assert dueling_q(value, advantage).tolist() == [[[0, 2], [-2, 6]]]
    assert torch.equal(
        dueling_q(value, advantage)[:, :1], dueling_q(value[:, :1], advantage[:, :1])
    )


def test_squared_error_with_padding():
    weight = torch.tensor([[0.5, 0.5, 0.0]])
    assert weighted_squared_error(
        torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[0.0, 4.0, 0.0]]), weight
    ).tolist() == [2.5]
    with pytest.raises(ValueError, match="does not fit"):
        weighted_squared_error(torch.zeros(2, 3), torch.zeros(2, 1), weight)


def test_epsilon_schedule_is_the_iterated_one():
    episodes = torch.arange(80)
    epsilon = epsilon_after(episodes, 0.809, 0.0371, 0.961).tolist()
    expected = [0.809]
    for _ in range(79):
        expected.append(max(expected[-1] * 0.961, 0.0371))
    assert epsilon == pytest.approx(expected, rel=1e-4)
    assert epsilon_after(episodes[:3], 0.1, 0.1, 0).tolist() == pytest.approx([0.1] * 3)
    assert epsilon_after(episodes[:2], 0.1, 0.5, 0.9).tolist() == pytest.approx([0.1, 0.5])


def test_epsilon_greedy_by_hand():
    q = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    noise = torch.tensor([[0.5, 0.99], [0.05, 0.4], [0.05, 0.999999]])
    assert epsilon_greedy(q, torch.full((3,), 0.1), noise).tolist() == [
        0,
        1,
        2,
    ]  # a tie goes to the lowest index
    noise = torch.rand(30_000, 2)
    actions = epsilon_greedy(
        torch.tensor([0.0, 1.0, 0.0]).expand(30_000, 3), torch.full((30_000,), 0.3), noise
    )
    assert torch.bincount(actions).tolist() == pytest.approx([3000, 24_000, 3000], rel=0.07)


def test_smoothing_noise_is_clipped():
    assert smoothing_noise(torch.tensor([-9.0, 1.0, 9.0]), 0.2, 0.5).tolist() == pytest.approx(
        [-0.5, 0.2, 0.5]
    )


def test_gumbel_softmax_by_hand_and_in_frequency():
    logits, gumbel = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -0.5])
    assert gumbel_softmax(logits, gumbel, 1.0, hard=False).tolist() == pytest.approx([0.5, 0.5])
    odds = math.exp((2.5 - 1.0) / 0.5)
    soft = gumbel_softmax(torch.tensor([1.0, 3.0]), torch.tensor([0.0, -0.5]), 0.5, hard=False)
    assert soft[1].item() == pytest.approx(odds / (1 + odds))
    logits = torch.tensor([0.0, 1.0, 2.0])
    noise = -torch.log(-torch.log(torch.rand(50_000, 3).clamp(1e-7, 1 - 1e-7)))
    hard = gumbel_softmax(logits.expand(50_000, 3), noise, 2.0, hard=True)
    assert hard.mean(0).tolist() == pytest.approx(logits.softmax(0).tolist(), abs=0.01)


def test_hard_samples_have_the_gradient_of_soft_ones():
    grads = []
    for hard in (False, True):
        logits = torch.tensor([0.3, -0.2, 0.9], requires_grad=True)
        sample = gumbel_softmax(logits, torch.tensor([0.1, 0.2, -0.3]), 0.7, hard)
        (sample * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
        grads.append(logits.grad)
        assert sample.sum().item() == pytest.approx(1)
    assert sorted(sample.tolist()) == pytest.approx([0, 0, 1], abs=1e-6)
    assert torch.equal(*grads)


def test_annealing():
    assert annealed(torch.tensor([0, 1000, 2000, 9000]), 1.0, 0.05, 2000).tolist() == pytest.approx(
        [1, 0.525, 0.05, 0.05]
    )
