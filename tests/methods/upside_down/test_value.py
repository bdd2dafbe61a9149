"""Commands of expected returns: the label by hand, what is refused, and no luck in them."""

import pytest
import torch
from helpers.toys import make_episode

import lightning_rl as lrl
from lightning_rl.core.errors import UserError
from lightning_rl.methods.upside_down.critic import JudgedEpisodes
from lightning_rl.methods.upside_down.value import Value
from lightning_rl.rollouts.episode_buffer import flatten

ASKED_FOR_VALUE = {
    "command": "value",
    "gae_lambda": 0.0,
    "weights": "none",
    "target_labels": "episode",
}


def judged():
    """V is 1, 2, 3 and, of the second episode, 4; Q - V is 10, 20, 40 and 80."""
    flat = flatten([make_episode([5.0, 6.0, 7.0]), make_episode([8.0])])
    value = torch.tensor([1.0, 2.0, 3.0, 99.0, 4.0, 99.0])
    advantage = torch.tensor([10.0, 20.0, 40.0, 80.0])
    return JudgedEpisodes(
        **vars(flat), value=value, discount=torch.ones(4), fitted_advantage=advantage
    )


@pytest.mark.parametrize(
    ("gae_lambda", "label_max", "expected"),
    [
        (0.0, None, [11.0, 22.0, 43.0, 84.0]),  # Q
        (1.0, None, [1 + 10 + 10 + 10.0, 2 + 20 + 20.0, 43.0, 84.0]),  # halved at each step
        (1.0, 40.0, [31.0, 40.0, 40.0, 40.0]),
    ],
)
def test_what_is_expected_by_hand(gae_lambda, label_max, expected):
    keys = {"gamma": 0.5, "label_max": label_max, "max_return": None}
    command = Value(gae_lambda=gae_lambda, **keys)
    assert command.fulfilled(judged()).flatten().tolist() == expected
    assert not command.is_episode_return


def test_a_buffer_of_lucky_episodes_is_refused():
    with pytest.raises(UserError, match=r"keeps lucky episodes.*; set buffer=newest"):
        lrl.RCPR("cartpole", config={"command": "value", "buffer": "both"})


@pytest.mark.slow
def test_who_is_asked_for_the_most_that_can_be_expected_does_not_gamble(tmp_path):
    """The highest return is 5, of a gamble that loses 5 on average; the sure action pays 1."""
    run = lrl.train("RCP-R", "gamble", seed=1, logdir=tmp_path, logger=False, **ASKED_FOR_VALUE)
    low, high = run.method.command_limits()
    assert high == pytest.approx(1, abs=0.3)
    assert low < -1
    report = lrl.evaluate(run, episodes=50, command={"return": high})
    assert report["sampled"]["return"]["mean"] > 0.5
