"""Shared by the tests that write an update out in plain torch: networks as lists of tensors, and
gradient descent.
"""

import torch


def leaves(module):
    """A copy of the parameters."""
    return [p.detach().clone().requires_grad_() for p in module.parameters()]


def descend(parameters, loss, rate, clip=None):
    """One step down the loss; its gradient is scaled to the norm ``clip`` if it is longer."""
    grads = torch.autograd.grad(loss, parameters)
    norm = torch.cat([grad.flatten() for grad in grads]).norm()
    factor = 1.0 if clip is None else min(1.0, clip / float(norm))
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.data -= rate * factor * grad


def assert_close(module, parameters):
    for ours, theirs in zip(module.parameters(), parameters, strict=True):
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-5, atol=1e-6)


def relu_net(parameters, x):
    """Layers ``W x + b`` with ReLUs between them; parameters: W, b, W, b, .."""
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        x = torch.relu(x @ weight.T + bias)
    return x @ parameters[-2].T + parameters[-1]


def log_softmax_of(logits, action):
    return logits.log_softmax(-1)[torch.arange(len(action)), action]


def squashed_gaussian(output):
    """Mean and log standard deviation."""
    mean, log_std = output.chunk(2, -1)
    return mean.tanh(), log_std.clamp(-3, 0.5)
