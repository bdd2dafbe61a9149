"""Solutions of lesson 3, actor-critic."""

import torch


def td_errors(reward, discount, value, next_value):
    return reward + discount * next_value - value


def advantages(error, decay):
    found, total = [], torch.zeros(())
    for each in error.flip(0):
        total = each + decay * total
        found.append(total)
    return torch.stack(found).flip(0)


def critic_loss(value, target):
    return (value - target.detach()).square().mean()
