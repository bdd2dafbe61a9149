"""Solutions of lesson 1, REINFORCE."""

import torch


def returns_to_go(reward, gamma):
    found, total = [], torch.zeros(())
    for each in reward.flip(0):
        total = each + gamma * total
        found.append(total)
    return torch.stack(found).flip(0)


def policy_loss(log_prob, weight):
    return -(weight * log_prob).mean()
