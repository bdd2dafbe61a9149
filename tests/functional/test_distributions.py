import copy
import math

import numpy as np
import pytest
import torch

from lightning_rl.functional.distributions import Categorical, Gaussian
from lightning_rl.methods.agents import GreedyActor
from lightning_rl.nets.policies import Policy


def test_categorical_by_hand():
    dist = Categorical(torch.tensor([[0.0, math.log(3.0)]]))  # probabilities 1/4, 3/4
    assert dist.log_prob(torch.tensor([0])).item() == pytest.approx(math.log(0.25))
    assert dist.entropy().item() == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))


def test_categorical_gumbel_sampling_has_the_right_frequencies():
    logits = torch.log(torch.tensor([0.1, 0.2, 0.7]))
    noise = torch.from_numpy(Categorical.draw_noise(np.random.default_rng(0), (40_000, 3)))
    counts = (
        torch.bincount(Categorical(logits.expand(40_000, 3)).sample(noise), minlength=3) / 40_000
    )
    assert counts.tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.01)


def test_zero_noise_is_greedy():
    logits = torch.randn(50, 4)
    assert torch.equal(Categorical(logits).sample(torch.zeros(50, 4)), logits.argmax(-1))
    gaussian = Gaussian(torch.randn(50, 6))
    assert torch.equal(gaussian.sample(torch.zeros(50, 3)), gaussian.mean)


def test_gaussian_agrees_with_torch():
    output, action = torch.randn(7, 6), torch.randn(7, 3)
    ours = Gaussian(output)
    theirs = torch.distributions.Independent(
        torch.distributions.Normal(output[:, :3].tanh(), ours.log_std.exp()), 1
    )
    torch.testing.assert_close(ours.log_prob(action), theirs.log_prob(action))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())


def test_gaussian_samples_have_the_deviation_of_the_clamped_logarithm():
    """Log standard deviations -1, 5 (at most 1/2) and -9 (at least -3), mean tanh(0.3)."""
    gaussian = Gaussian(torch.tensor([0.3, 0.3, 0.3, -1.0, 5.0, -9.0]))
    sample = gaussian.sample(torch.tensor([1.0, 2.0, -1.0]))
    assert (sample - math.tanh(0.3)).tolist() == pytest.approx(
        [math.exp(-1), 2 * math.exp(0.5), -math.exp(-3)], rel=1e-5
    )


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(ValueError, match="does not fit"):
        Categorical(torch.zeros(5, 3)).log_prob(torch.zeros(5, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match="does not fit"):
        Gaussian(torch.zeros(5, 4)).log_prob(torch.zeros(5, 1))


def test_a_sample_outside_the_box_is_learned_as_the_action_that_was_executed():
    """The best actions are at the edge: their fit is narrow and near 1. Fitted to the samples, 1
    and beyond, it would be wide.
    """
    sample = 1 + torch.rand(500, 1, generator=torch.Generator().manual_seed(0))
    net = torch.nn.Linear(1, 2)
    for parameter in net.parameters():
        torch.nn.init.zeros_(
            parameter
        )  # at random, the deviation may start where it is clamped and has no gradient
    policy, raw = Policy(net, Gaussian, 1), Policy(copy.deepcopy(net), Gaussian, 1)
    obs = torch.ones(500, 1)
    losses = {
        policy: lambda: -policy.executed_log_prob(obs, None, sample).mean(),
        raw: lambda: -raw.distribution(obs).log_prob(sample).mean(),
    }
    for each, loss in losses.items():
        optimizer = torch.optim.Adam(each.parameters(), lr=0.05)
        for _ in range(200):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    narrow, wide = (each.distribution(obs) for each in losses)
    assert narrow.mean.min() > 0.97
    assert narrow.log_std.exp().max() < 0.06
    assert wide.log_std.exp().min() > 0.5
    assert torch.equal(Categorical.executed(torch.tensor([0, 3])), torch.tensor([0, 3]))
    assert Gaussian.executed(torch.tensor([-1.5, -0.5, 0.25, 1.5])).tolist() == [
        -1.0,
        -0.5,
        0.25,
        1.0,
    ]


def test_a_greedy_actor_takes_the_best_action_whatever_the_noise():
    values, outputs = (
        torch.tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]),
        torch.tensor([[0.0, 0.5], [2.0, -1.0]]),
    )
    best, squashed = (
        GreedyActor(torch.nn.Identity(), continuous=False),
        GreedyActor(torch.nn.Identity(), continuous=True),
    )
    noise = torch.from_numpy(best.draw_noise(np.random.default_rng(0), (2, best.noise_size)))
    assert noise.shape == (2, 0)
    assert best.act(values, None, noise).tolist() == [1, 0]  # a tie goes to the lowest index
    expected = [[0.0, math.tanh(0.5)], [math.tanh(2), math.tanh(-1)]]
    torch.testing.assert_close(squashed.act(outputs, None, noise), torch.tensor(expected))
