import math

import numpy as np
import torch

from lightning_rl.functional.deterministic import BestAction, TanhAction


def test_the_best_action_has_all_probability():
    best = BestAction(torch.tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]))
    assert best.sample(torch.ones(2, 3)).tolist() == [1, 0]  # a tie goes to the lowest index, and noise changes nothing
    assert best.log_prob(torch.tensor([1, 2])).tolist() == [0.0, -math.inf]
    assert best.entropy().tolist() == [0.0, 0.0]
    assert BestAction.max_entropy(3) == 0.0
    assert BestAction.output_size(3) == 3


def test_a_deterministic_action_is_the_tanh_of_the_output():
    action = TanhAction(torch.tensor([[0.0, 0.5], [2.0, -1.0]]))
    expected = [[0.0, math.tanh(0.5)], [math.tanh(2), math.tanh(-1)]]
    torch.testing.assert_close(action.sample(torch.ones(2, 2)), torch.tensor(expected))
    near = action.sample(torch.zeros(2, 2)) + torch.tensor([[0.0, 0.0], [0.0, 0.1]])
    assert action.log_prob(near).tolist() == [math.inf, -math.inf]  # a density: every component has to fit
    assert action.entropy().tolist() == [-math.inf, -math.inf]
    assert not TanhAction.draw_noise(np.random.default_rng(0), (3, 2)).any()
