"""What the written-out reference updates share: plain networks over flat parameters, given
noise, random batches.
"""

import itertools

import torch

from lightning_rl.agents.base import Transition


class Given:
    """Noise that is told: ``values[step]`` at a step. Stands in for a ``MemberNoise``."""

    def __init__(self, values):
        self.values = values

    def at(self, step):
        return self.values[step]


def perceptron(params, sizes, x, activation):
    """A network of linear layers between ``sizes``; params ``[D]`` holds each one's weight
    ``[in, out]`` and bias in turn.
    """
    place = 0
    for number, (fan_in, out) in enumerate(itertools.pairwise(sizes)):
        weight = params[place : place + fan_in * out].view(fan_in, out)
        bias = params[place + fan_in * out : place + fan_in * out + out]
        place += fan_in * out + out
        x = x @ weight + bias
        if number < len(sizes) - 2:
            x = activation(x)
    return x


def count(sizes):
    """Parameters of such a network."""
    return sum(fan_in * out + out for fan_in, out in itertools.pairwise(sizes))


def leaf(params):
    """A copy that autograd and an optimizer know."""
    return params.detach().clone().requires_grad_()


def descend(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def random_batch(seed, members, size, obs_size, num_actions=0, action_size=0):
    """Transitions ``[N, B]`` of which every third terminates."""
    g = torch.Generator().manual_seed(seed)
    obs, next_obs = torch.randn(2, members, size, obs_size, generator=g)
    action = torch.randint(num_actions, (members, size), generator=g) if num_actions else None
    if action is None:
        action = 2 * torch.rand(members, size, action_size, generator=g) - 1
    discount = torch.full((members, size), 0.9)
    discount[:, ::3] = 0
    return Transition(obs, action, torch.randn(members, size, generator=g), discount, next_obs)


def of_member(batch, n, size=None):
    """One member's transitions ``[B]``."""
    return Transition(*(x[n, :size] for x in batch))


def close(ours, reference):
    torch.testing.assert_close(ours, reference.detach(), rtol=1e-4, atol=1e-5)


def close_to_adam(ours, n, optimizer, params):
    """The moments of member n: they show the scale of the gradients, which Adam's steps do not."""
    states = [optimizer.state[p] for p in params]
    for name in ("exp_avg", "exp_avg_sq"):
        reference = torch.cat([state[name] for state in states])
        close(ours.moments[name][n, : len(reference)], reference)
