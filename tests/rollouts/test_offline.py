"""Datasets: what is refused, what is made of what fits, and the epochs that learn from it."""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.methods import quiet_trainer
from helpers.toys import make_episode, same_episodes

import lightning_rl as lrl
from lightning_rl.core.errors import UserError
from lightning_rl.envs.spec import env_spec
from lightning_rl.rollouts.offline import best_episodes, checked_dataset, distinct

TINY = {
    "hidden": [8, 8],
    "num_updates_per_iter": 3,
    "batch_size": 16,
    "eval_episodes": 2,
    "eval_interval": 100,
}
LEARNS = {
    **TINY,
    "hidden": [32, 32],
    "num_updates_per_iter": 200,
    "batch_size": 64,
    "learning_rate": 3e-3,
    "tau": 0.02,
}
CRITIC = {"num_critic_updates_per_iter": 2, "critic_hidden": [8]}


def some_episodes(count=10):
    """Of cartpole, of different lengths and returns."""
    return [make_episode([1.0] * (3 + number)) for number in range(count)]


def changed(**values):
    return [dataclasses.replace(make_episode([1.0, 2.0]), **values)]


@pytest.mark.parametrize(
    ("episodes", "words"),
    [
        ([], "has no episodes; give another"),
        ([3], "3 is no episode; give a list of lightning_rl.Episode"),
        ([make_episode([1.0], obs_size=8)], r"shape \[2, 8\], expected \[2, 4\]"),
        (changed(obs=np.zeros((2, 4))), r"shape \[2, 4\], expected \[3, 4\] of its 2 steps"),
        (changed(action=np.array([0, 2])), "from 0 to 2, those of 'cartpole' from 0 to 1"),
        (changed(action=np.array([0, -1])), "from -1 to 0, those of 'cartpole' from 0 to 1"),
        (changed(action=np.zeros((2, 1))), "float64 .*expected 2 whole numbers"),
        (changed(action=np.array([0.0, 0.5])), "float64 .*expected 2 whole numbers"),
        (changed(reward=np.array([1.0, np.nan])), "1 of the 2 numbers of its rewards"),
        (changed(reward=np.array([1.0, 1e20])), "a reward is 1e.20"),
        (changed(reward=np.zeros(0)), r"rewards have the shape \[0\]"),
        (changed(obs=np.full((3, 4), 1e300)), "12 of the 12 numbers of its observations"),
        (changed(obs=np.array(["a"])), "its observations are no numbers"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(episodes, words):
    with pytest.raises(UserError, match=words) as refusal:
        checked_dataset("mine", episodes, env_spec("cartpole"))
    assert "\n" not in str(refusal.value)
    assert "mine" in str(refusal.value) or episodes == [3]


def test_discrete_actions_do_not_fit_a_box():
    with pytest.raises(UserError, match=r"actions have the shape \[2\], expected \[2, 1\]"):
        checked_dataset("mine", [make_episode([1.0, 2.0], obs_size=3)], env_spec("pendulum"))


def test_episodes_become_those_that_are_played_here():
    plain = lrl.Episode([[0] * 4, [1] * 4, [2] * 4], [True, False], [1, 2], False, False)
    (episode,) = checked_dataset("mine", [plain], env_spec("cartpole")).episodes
    assert [a.dtype for a in (episode.obs, episode.action, episode.reward)] == [
        np.float32,
        np.int64,
        np.float32,
    ]
    assert (episode.ret, episode.env_steps) == (3.0, 2)
    assert episode.cut_off


def test_a_task_that_pays_at_the_end_pays_what_was_paid_before():
    spec = env_spec("lunarlander-sparse")
    episodes = [make_episode([1.0, 2.0, -0.5], obs_size=8)]
    (episode,) = checked_dataset("mine", episodes, spec).episodes
    assert episode.reward.tolist() == [0.0, 0.0, 2.5]


def test_the_best_episodes_are_those_of_highest_return_in_their_order():
    episodes = [make_episode([value]) for value in (3.0, 1.0, 5.0, 4.0, 2.0)]
    assert [e.ret for e in best_episodes(episodes, 0.6)] == [3.0, 5.0, 4.0]
    assert [e.ret for e in best_episodes(episodes, 0.01)] == [5.0]
    assert best_episodes(episodes, 1.0) == episodes


def test_equal_episodes_count_once_and_make_equal_digests():
    spec = env_spec("cartpole")
    a, b = make_episode([1.0, 1.0]), make_episode([1.0, 2.0])
    assert same_episodes(distinct([a, b, make_episode([1.0, 1.0])]), [a, b])
    digests = [
        checked_dataset("x", episodes, spec).digest
        for episodes in (
            [a, b],
            [make_episode([1.0, 1.0]), b],
            [b, a],
            [a, dataclasses.replace(b, terminated=False)],
        )
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_an_epoch_sees_all_of_it_and_counts_it_once():
    method = lrl.UDRL("cartpole", offline=True, num_held_out_episodes_per_iter=2, **TINY)
    data = method.rollouts(dataset=some_episodes())
    first, second = data.next_batch(), data.next_batch()
    assert (first.env_steps + first.held_out_env_steps, first.num_episodes) == (75, 8)
    assert (second.env_steps, second.num_episodes, second.held_out_env_steps) == (0, 0, 0)
    assert first.env_steps == len(first.episodes)
    assert len(first.held_out) == first.held_out_env_steps > 0
    assert first.index["policy"].shape == (3, 16)
    assert not torch.equal(first.index["policy"], second.index["policy"])
    again = lrl.UDRL("cartpole", offline=True, num_held_out_episodes_per_iter=2, **TINY)
    same = again.rollouts(dataset=some_episodes()).next_batch()
    assert torch.equal(same.index["policy"], first.index["policy"])
    assert torch.equal(same.held_out.obs, first.held_out.obs)


def test_a_share_of_it_still_counts_as_all_that_was_played():
    method = lrl.RCPR("cartpole", preset="cloning", best_share=0.3, **TINY)
    assert method.critic is None
    batch = method.rollouts(dataset=some_episodes()).next_batch()
    assert (len(batch.episodes.first), len(batch.episodes)) == (3, 12 + 11 + 10)
    assert (batch.env_steps, batch.num_episodes) == (75, 10)


@pytest.mark.parametrize("name", ["UDRL", "RCPR", "RCPA"])
def test_a_plain_trainer_learns_without_playing(name, monkeypatch):
    settings = TINY | (CRITIC if name != "UDRL" else {})
    method = getattr(lrl, name)("cartpole", offline=True, max_epochs=2, anneal_from=0.0, **settings)
    data = method.rollouts(dataset=some_episodes())
    monkeypatch.setattr(data.collector, "start", None)  # nothing may call it
    quiet_trainer(2).fit(method, datamodule=data)
    assert (method.env_steps, method.episodes) == (75, 10)
    assert method.num_updates == (6 if name == "UDRL" else 10)
    assert method.budget_share() == 1.0
    assert method.optimizers()[0].param_groups[0]["lr"] == 0.0
    assert method.scalars["buffer/episodes"] == 10


def test_what_is_missing_or_contradicts_is_refused():
    with pytest.raises(UserError, match=r"give rollouts\(dataset=episodes\)"):
        lrl.UDRL("cartpole", offline=True).rollouts()
    with pytest.raises(UserError, match="goes with offline=True"):
        lrl.UDRL("cartpole").rollouts(dataset=some_episodes())
    with pytest.raises(UserError, match="10 episodes 3 are used"):
        lrl.RCPR(
            "cartpole", preset="cloning", best_share=0.3, num_held_out_episodes_per_iter=3
        ).rollouts(dataset=some_episodes())
    with pytest.raises(UserError, match="'steps_per_iter': offline nothing is played"):
        lrl.RCPR("cartpole", offline=True, steps_per_iter=30)
    with pytest.raises(UserError, match=r"'max_env_steps': .* max_epochs is the budget"):
        lrl.RCPR("cartpole", offline=True, max_env_steps=30)
    with pytest.raises(UserError, match="'best_share': it is of a dataset"):
        lrl.RCPR("cartpole", best_share=0.5)


def test_values_for_datasets_lie_above_the_environments_and_below_the_presets():
    plain, offline = (lrl.UDRL("lunarlander", offline=value).cfg for value in (False, True))
    assert (plain.num_updates_per_iter, plain.max_epochs) == (200, 2000)
    assert (offline.num_updates_per_iter, offline.max_epochs) == (1000, 100)
    assert offline.learning_rate == plain.learning_rate == 1e-3
    preset = lrl.RCPR("lunarlander", offline=True, preset="returns").cfg
    assert (preset.num_updates_per_iter, preset.max_env_steps) == (150, None)


def sides(good, count=40, length=20):
    """Episodes in which the action is that of the side that the pole leans to, or the other; the
    right one pays 1.
    """
    rng = np.random.default_rng(good)
    for _ in range(count):
        obs = rng.uniform(-1, 1, (length + 1, 4)).astype(np.float32)
        action = ((obs[:-1, 2] > 0) == good).astype(np.int64)
        yield lrl.Episode(obs, action, np.full(length, float(good)), True, False)


def right_share(method, command):
    obs = torch.from_numpy(np.random.default_rng(9).uniform(-1, 1, (500, 4))).float()
    asked = torch.tensor([command]).expand(500, -1)
    action = method.policy.act(obs, asked, torch.zeros(500, 2))
    return float((action == (obs[:, 2] > 0)).float().mean())


def test_the_best_half_alone_is_cloned():
    method = lrl.RCPR("cartpole", preset="cloning", best_share=0.5, **LEARNS)
    quiet_trainer(3).fit(method, datamodule=method.rollouts(dataset=[*sides(False), *sides(True)]))
    assert right_share(method, method.first_command()) > 0.95
    assert right_share(method, [0.0]) > 0.95  # it sees no command


def test_what_is_asked_for_decides_which_half_is_followed():
    method = lrl.UDRL("cartpole", offline=True, **LEARNS)
    quiet_trainer(3).fit(method, datamodule=method.rollouts(dataset=[*sides(False), *sides(True)]))
    assert method.first_command() == (20.0, 20.0)
    assert right_share(method, [20.0, 20.0]) > 0.9
    assert right_share(method, [0.0, 20.0]) < 0.1
