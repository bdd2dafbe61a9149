"""Solutions of lesson 8, model or replay."""

import torch


def q_target(reward, discount, next_q):
    return reward + discount * next_q.amax(-1)


def imagine(table, state, action):
    dial = torch.arange(state.shape[-1])
    return table[dial, state, action[:, None]]
