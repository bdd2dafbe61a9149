"""World-model losses by numbers worked by hand."""

import math

import torch
from torch import tensor

from lightning_rl.functional.world_model import (
    bits_loss,
    bits_sample,
    categorical_kl,
    categorical_sample,
    continuation_loss,
    gaussian_kl,
    imagined_weights,
    reward_loss,
    softmax_pullback,
)
from lightning_rl.nets.gaussian_latent import std_and_slope


def close(a, b, tolerance=1e-6):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype), rtol=0, atol=tolerance)


def slopes(loss, *inputs):
    """The derivatives of the sum of a loss, by autograd."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(loss(*leaves).sum(), leaves)


def test_reward_loss():
    """(1 - 3)^2 / 2 + ln(2 pi) / 2 = 2 + 0.9189385."""
    loss, slope = reward_loss(tensor([1.0, 2.0]), tensor([3.0, 2.0]))
    close(loss, [2.9189385, 0.9189385])
    close(slope, [2.0, 0.0])


def test_continuation_loss():
    """At logit ln 3 the probability of going on is 3/4."""
    loss, slope = continuation_loss(tensor([1.0, 0.0]), torch.full((2,), math.log(3)))
    close(loss, [math.log(4 / 3), math.log(4)])
    close(slope, [-0.25, 0.75])


def test_bits_loss_sums_over_the_bits():
    """Probabilities 1/2 and 3/4 for bits 1 and 0: ln 2 + ln 4."""
    bits, logits = tensor([[1.0, 0.0]] * 2), tensor([[0.0, math.log(3)]] * 2)
    loss, slope = bits_loss(bits, logits, tensor([1.0, 0.5]))
    close(loss, [math.log(8), math.log(8) / 2])
    close(slope, [[-0.5, 0.75], [-0.25, 0.375]])


def test_categorical_kl():
    """p = (1/2, 1/2), q = (1/4, 3/4): ln(2)/2 + ln(2/3)/2 = 0.1438410; two such variables twice
    that.
    """
    p, q = tensor([0.5, 0.5]).log(), tensor([0.25, 0.75]).log()
    close(categorical_kl(p[None], q[None])[0], 0.1438410)
    close(
        categorical_kl(p.expand(2, 2), q.expand(2, 2) + 5)[0], 0.2876821
    )  # logits are free up to a constant
    close(categorical_kl(q[None], q[None])[0], 0.0)
    p, q = torch.randn(5, 2, 3), torch.randn(5, 2, 3)
    _, *found = categorical_kl(p, q)
    for slope, expected in zip(
        found, slopes(lambda p, q: categorical_kl(p, q)[0], p, q), strict=True
    ):
        close(slope, expected)


def test_gaussian_kl():
    """p = N(1, 1), q = N(0, 2): ln 2 + (1 + 1) / 8 - 1/2 = 0.4431472."""
    one, zero = torch.ones(1), torch.zeros(1)
    close(gaussian_kl(one, one, zero, 2 * one)[0], 0.4431472)
    close(gaussian_kl(one, 2 * one, one, 2 * one)[0], 0.0)
    normal = torch.distributions.Normal
    numbers = torch.randn(5, 4), torch.rand(5, 4) + 0.1, torch.randn(5, 4), torch.rand(5, 4) + 0.1

    def reference(a, b, c, d):
        return torch.distributions.kl_divergence(normal(a, b), normal(c, d)).sum(-1)

    kl, found = gaussian_kl(*numbers)
    torch.testing.assert_close(kl, reference(*numbers))
    torch.testing.assert_close(found, slopes(reference, *numbers), rtol=1e-4, atol=1e-5)


def test_gradients_of_a_sample_pass_straight_through_to_the_logits():
    logits, weight = tensor([0.2, -0.4, 1.0]), tensor([1.0, 2.0, 5.0])
    (expected,) = slopes(lambda x: weight * x.softmax(-1), logits)
    close(softmax_pullback(logits.softmax(-1), weight), expected)


def test_categorical_sample_inverts_the_distribution():
    logits = tensor([0.2, 0.5, 0.3]).log() + 7
    noise = tensor([0.0, 0.19, 0.21, 0.69, 0.71, 0.9999999])
    assert categorical_sample(logits.expand(6, 3), noise).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_class_without_probability_is_never_sampled():
    logits = tensor([-math.inf, 0.0, -math.inf])
    assert categorical_sample(logits.expand(3, 3), tensor([0.0, 0.5, 0.9999999])).tolist() == [
        1,
        1,
        1,
    ]


def test_bits_are_sampled_by_their_probability():
    """At logit 0.5 it is 0.6225."""
    logits, noise = tensor([0.5, 0.5, 0.5, -1.0, 1.1]), tensor([0.49, 0.55, 0.63, 0.26, 0.999])
    assert bits_sample(logits, noise).tolist() == [1, 1, 0, 1, 0]


def test_imagined_weights():
    close(imagined_weights(tensor([0.5, 0.2, 0.9])), [1.0, 0.5, 0.1])
    close(
        imagined_weights(tensor([[1.0, 0.0, 1.0, 1.0]])), [[1.0, 1.0, 0.0, 0.0]]
    )  # the second step terminates


def test_standard_deviations():
    value, slope = std_and_slope(tensor([0.0, 2.0]))
    close(value, [1.0, 1.4621172])
    (expected,) = slopes(lambda x: std_and_slope(x)[0], tensor([0.0, 2.0]))
    close(slope, expected)
