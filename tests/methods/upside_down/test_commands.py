"""What commands were fulfilled, what is left of them after a step, and what they are made of."""

import numpy as np
import pytest
import torch
from helpers.toys import make_episode

from lightning_rl.methods.upside_down.commands import Return, ReturnHorizon
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer, flatten


def return_horizon(max_return=320.0, last_few=2):
    return ReturnHorizon(max_return=max_return, last_few=last_few, horizon_scale=0.1)


def discounted(gamma, max_return=99.0, label_max=None):
    return Return(gamma=gamma, max_return=max_return, label_max=label_max)


def episodes():
    return flatten([make_episode([1.0, 2.0, 4.0]), make_episode([8.0])])


def test_what_was_obtained_to_the_end_by_hand():
    found = return_horizon().fulfilled(episodes())
    assert found.tolist() == [[7.0, 3.0], [6.0, 2.0], [4.0, 1.0], [8.0, 1.0]]
    assert discounted(0.5).fulfilled(episodes()).tolist() == [[3.0], [4.0], [4.0], [8.0]]
    limited = discounted(0.5, label_max=3.5).fulfilled(episodes())
    assert limited.flatten().tolist() == [3.0, 3.5, 3.5, 3.5]


def test_what_was_obtained_within_a_segment_by_hand():
    """Segments of 2 and 1 of rewards 1, 2, 4, and of 1 of reward 8."""
    step, length = torch.tensor([[0, 1, 3]]), torch.tensor([[2, 1, 1]])
    found = return_horizon().fulfilled_within(episodes(), step, length)
    assert found.tolist() == [[[3.0, 2.0], [2.0, 1.0], [8.0, 1.0]]]


def test_what_is_left_of_a_return_within_a_horizon_by_hand():
    command = np.array([[100.0, 5.0], [310.0, 1.0], [50.0, 2.0]])
    after = return_horizon().after(command, np.array([30.0, -40.0, 0.0]))
    assert after.tolist() == [[70.0, 4.0], [320.0, 1.0], [50.0, 1.0]]


def test_what_is_left_of_a_discounted_return_by_hand():
    command, reward = np.array([[10.0], [4.0]], np.float32), np.array([1.0, -2.0], np.float32)
    assert discounted(1.0).after(command, reward).tolist() == [[9.0], [6.0]]
    assert discounted(0.5, max_return=15.0).after(command, reward).tolist() == [[15.0], [12.0]]


def test_what_is_left_to_pay_may_be_less_than_the_best_episode_costs():
    """A corridor of four steps at -1 each: asked for -4, three are left after the first, and in
    the end none.
    """
    asked = np.array([[-4.0, 4.0], [-1.0, 1.0], [-0.5, 1.0], [-30.0, 20.0]])
    after = return_horizon(max_return=-4.0).after(asked, np.full(4, -1.0))
    assert after.tolist() == [[-3.0, 3.0], [0.0, 1.0], [0.0, 1.0], [-29.0, 19.0]]


def test_what_is_left_keeps_its_precision():
    command, reward = np.ones((4, 2), dtype=np.float32), np.ones(4, dtype=np.float32)
    assert return_horizon().after(command, reward).dtype == np.float32
    assert discounted(0.9, None).after(command[:, :1], reward).dtype == np.float32


def test_the_horizon_is_the_mean_length_of_the_best_episodes():
    """The best two of three have 1 and 4 steps, 2.5, which is rounded to the even number."""
    buffer = EpisodeBuffer(best=5)
    buffer.add([make_episode([9.0]), make_episode([2.0] * 4), make_episode([0.0] * 30)])
    assert return_horizon().following_numbers(buffer) == (2,)
    assert discounted(0.5).following_numbers(buffer) == ()


@pytest.mark.parametrize(
    ("command", "expected"),
    [(return_horizon(), True), (discounted(1.0), True), (discounted(0.9), False)],
)
def test_which_commands_begin_with_the_return_of_the_episode(command, expected):
    assert command.is_episode_return is expected
