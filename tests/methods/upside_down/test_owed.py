"""What is owed: by hand, kept in checkpoints, refused, and obeyed in single episodes."""

import dataclasses
import functools

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from helpers.budgets import tiny_settings
from helpers.toys import make_episode

import lightning_rl as lrl
from lightning_rl.core.errors import UserError
from lightning_rl.envs.spec import env_spec
from lightning_rl.methods.upside_down.critic import JudgedEpisodes
from lightning_rl.methods.upside_down.owed import AskedBuffer, Between, JudgedAskedEpisodes, Owed

OBEDIENT = {
    "command": "owed",
    "command_rule": "decrease",
    "target": "between",
    "target_labels": "episode",
    "target_spread": 1.0,
    "target_limit": False,
    "bootstrap_truncated": False,
    "lowest": 0.0,
}


def asked_for(episode, *command):
    return dataclasses.replace(
        episode, request=dataclasses.replace(episode.request, command=command)
    )


def buffer():
    """10 was asked of the first episode, which obtains 18; nothing of the second."""
    kept = AskedBuffer(newest=None)
    kept.add([asked_for(make_episode([5.0, 6.0, 7.0]), 10.0, 1.0), make_episode([8.0])])
    return kept


def test_what_is_owed_and_what_obeying_pays_by_hand():
    episodes = buffer().flat()
    assert episodes.owed.tolist() == [10, 5, -1, -8, 8, 0]
    task = episodes.of_obeying(scale=10.0)
    assert task.reward.tolist() == [5, 4, -7, 8]
    assert task.obs[:, -1].tolist() == pytest.approx([1, 0.5, -0.1, -0.8, 0.8, 0])
    assert torch.equal(task.obs[:, :-1], episodes.obs)


def test_a_step_is_taught_what_was_owed_and_how_much_better_it_was_than_others():
    flat = buffer().flat()
    value = torch.zeros(6)
    judged = JudgedEpisodes(**vars(flat.of_obeying(10.0)), value=value, discount=torch.zeros(4))
    command = Owed(gae_lambda=1.0, label_max=None)
    found = command.fulfilled(JudgedAskedEpisodes(**vars(judged), owed=flat.owed))
    assert found[:, 0].tolist() == [10, 5, -1, 8]
    pays = np.array([5.0, 4.0, -7.0, 8.0])
    assert found[:, 1].tolist() == pytest.approx((pays - pays.mean()) / pays.std(), rel=1e-4)
    after = command.after(np.array([[10.0, 1.0], [2.0, 1.0]]), np.array([3.0, 5.0]))
    assert after.tolist() == [[7, 1], [-3, 1]]


def test_a_range_is_asked_for_and_of_some_episodes_its_end():
    target = Between(lowest=-300.0, max_return=100.0, highest_share=0.25)
    assert [float(x) for x in target.fit(torch.zeros(3))] == [100, 400]
    noise = target.draw_noise(np.random.default_rng(0), 4000)
    assert float((noise == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(noise[noise < 0].mean()) == pytest.approx(-0.5, abs=0.02)
    assert -1 <= noise.min() < -0.99
    of_all = dataclasses.replace(target, highest_share=1.0)
    assert of_all.draw_noise(np.random.default_rng(0), 9).tolist() == [0.0] * 9
    for lowest, highest in ((None, 100.0), (0.0, float("inf")), (5.0, 5.0)):
        with pytest.raises(UserError, match="are no range of returns; set both"):
            dataclasses.replace(target, lowest=lowest, max_return=highest).fit(torch.zeros(3))


def test_a_checkpoint_keeps_what_was_asked():
    state, resumed = buffer().state_dict(), AskedBuffer(newest=None)
    resumed.load_state_dict(state, env_spec("cartpole"))
    assert torch.equal(resumed.flat().owed, buffer().flat().owed)
    with pytest.raises(ValueError, match=r"buffer\.asked"):
        AskedBuffer(newest=None).load_state_dict(
            {**state, "asked": state["asked"][:1]}, env_spec("cartpole")
        )


@pytest.mark.parametrize("wrong", [{"command_rule": "hold"}, {"normalise_obs": True}])
def test_what_it_does_not_go_with_is_refused(wrong):
    settings = {**tiny_settings("RCP-A"), **OBEDIENT, **wrong}
    with pytest.raises(UserError, match="command owed is what is left of a return that was asked"):
        lrl.RCPA("cartpole", config=settings)


class Taps(gymnasium.Env):
    """Eight steps; each pays 1 where the action is 1."""

    observation_space, action_space = Box(-1, 1, (1,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.left = 8
        return np.ones(1, dtype=np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.ones(1, dtype=np.float32), float(action), self.left == 0, False, {}


@pytest.mark.slow
def test_single_episodes_obtain_what_they_are_asked_for(tmp_path):
    """The observation says nothing: only what is owed tells how many taps are left."""
    lrl.register_env("taps", Taps, horizon=8, max_return=8.0)
    train = functools.partial(lrl.train, "RCP-A", "taps", logdir=tmp_path, logger=False, seed=1)
    run = train(
        max_env_steps=8000, steps_per_iter=400, window_steps=2000, num_updates_per_iter=40,
        num_critic_updates_per_iter=80, learning_rate=1e-3, tau=0.05, hidden=[32, 32], gamma=1.0,
        critic_hidden=[32], value_scale=4.0, **OBEDIENT,
    )  # fmt: skip
    for asked in (1.0, 4.0, 7.0):
        report = lrl.evaluate(run, episodes=20, command={"return": asked})
        assert report["sampled"]["return"]["mean"] == pytest.approx(asked, abs=0.5)
        assert report["sampled"]["return"]["sd"] < 1
