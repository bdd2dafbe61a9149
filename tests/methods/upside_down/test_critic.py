"""What a critic learns, and the advantages over it."""

import dataclasses

import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.methods import attach
from helpers.toys import make_episode

import lightning_rl as lrl
from lightning_rl.functional.critic import (
    action_features,
    critic_loss,
    explained_variance,
    fitted_advantage,
)
from lightning_rl.methods.upside_down.critic import Advantage, ByAdvantage
from lightning_rl.rollouts.episode_buffer import flatten


def judged(rewards, truncated=False, **settings):
    """Episodes judged by a critic that says 10 everywhere."""
    method = lrl.RCPA("cartpole", config={**tiny_settings("RCP-A"), "gamma": 0.5, **settings})
    attach(method)
    for parameter in method.critic.parameters():
        parameter.data.zero_()
    method.critic[-1].bias.data[0] = 10 / method.cfg.value_scale
    episodes = [
        dataclasses.replace(make_episode(each), terminated=not truncated, truncated=truncated)
        for each in rewards
    ]
    return method.critic_fit.judge(method, flatten(episodes))


@pytest.mark.parametrize(
    ("truncated", "bootstrap", "last"),
    [(False, True, 4.0), (True, True, 9.0), (True, False, 4.0)],
)
def test_advantages_bootstrap_where_truncated(truncated, bootstrap, last):
    """The last step is worth its reward, and gamma * 10 if the episode goes on."""
    episodes = judged([[1.0, 4.0]], truncated, bootstrap_truncated=bootstrap)
    assert episodes.sampled_advantage(0.0).tolist() == pytest.approx([1 + 5 - 10, last - 10])
    assert episodes.sampled_advantage(1.0).tolist() == pytest.approx([1 + last / 2 - 10, last - 10])


def test_commands_and_weights_by_advantage_are_limited_alike():
    """Advantages 1 + 5 - 10 = -4 and 8 - 10 = -2, of which -3 is the most that counts."""
    episodes = judged([[1.0, 8.0]])
    keys = {"gae_lambda": 0.0, "label_max": -3.0}
    assert Advantage(**keys).fulfilled(episodes).tolist() == [[-4.0], [-3.0]]
    weighting = ByAdvantage(**keys, temperature=1.0, max_weight=20.0)
    assert weighting.label(episodes).tolist() == [-4.0, -2.0]
    ratio = weighting.weights(episodes)[1] / weighting.weights(episodes)[0]
    assert float(ratio.log()) == pytest.approx(2.0, rel=1e-3)  # of -1 and 1 deviations


def test_the_values_of_continuous_actions_are_quadratic_in_them():
    """V = 3; Q(a) = 1 + 2 a - a^2 at a = 2 and -1: 1 and -2; to targets 2 and 1."""
    output = torch.tensor([[3.0, 1.0, 2.0, -1.0]]).repeat(2, 1)
    features, target = action_features(torch.tensor([[2.0], [-1.0]]), [1]), torch.tensor([2.0, 1.0])
    assert fitted_advantage(output, features).tolist() == [-2.0, -5.0]
    assert float(critic_loss(output, target, features)) == (1 + 4) / 2 + (1 + 9) / 2
    assert float(critic_loss(output[:, :1], target)) == 2.5


def test_explained_variance_hand_worked():
    target = torch.tensor([0.0, 2.0, 4.0])
    for prediction, expected in ((target + 3, 1), (torch.zeros(3), 0), (-target, -3)):
        assert float(explained_variance(prediction, target)) == pytest.approx(expected)
    assert float(explained_variance(torch.ones(3), torch.ones(3))) == 1  # nothing varies
    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        explained_variance(torch.zeros(3, 1), target)
