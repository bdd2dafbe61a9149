"""Actions that are several discrete ones at once, MultiDiscrete: independent factors."""

import dataclasses
import math

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from helpers.methods import build
from helpers.runs import last, run_cli
from helpers.toys import FactoredTask, make_episode

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Request
from lightning_rl.envs.action_masks import checked_mask
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.critic import action_features
from lightning_rl.functional.factors import Factors
from lightning_rl.rollouts.episode_buffer import EpisodeBuffer
from lightning_rl.rollouts.player import Player
from lightning_rl.run.acting import LoadedAgent

pytestmark = pytest.mark.usefixtures("toy_games")
OF_FACTORS = {"gamename": "factored"}


def test_log_probabilities_and_entropies_are_sums_by_hand():
    factors = Factors((3, 2))
    logits = torch.tensor([[0.0, math.log(2), 0.0, math.log(3), 0.0]])  # 1/4 1/2 1/4, 3/4 1/4
    distribution = factors(logits)
    log_prob = distribution.log_prob(torch.tensor([[1, 1]]))
    torch.testing.assert_close(log_prob, torch.tensor([math.log(1 / 2 * 1 / 4)]))
    first = 2 / 4 * math.log(4) + 1 / 2 * math.log(2)
    second = 3 / 4 * math.log(4 / 3) + 1 / 4 * math.log(4)
    torch.testing.assert_close(distribution.entropy(), torch.tensor([first + second]))
    assert factors.max_entropy(5) == pytest.approx(math.log(6))
    assert distribution.sample(torch.zeros(5)).tolist() == [[1, 0]]
    assert distribution.sample(torch.tensor([3.0, 0, 0, 0, 2.0])).tolist() == [[0, 1]]
    action = torch.tensor([[2, 0], [1, 1]])
    assert action_features(action, (3, 2)).tolist() == [[0, 0, 1, 1, 0], [0, 1, 0, 0, 1]]


def test_uniform_actions_are_uniform_in_each_factor():
    requests = [Request("random", seed, "uniform") for seed in range(40)]
    episodes = Player(env_spec("factored"), build("UDRL", "factored").policy).play(requests)
    action = np.concatenate([episode.action for episode in episodes])
    assert action.shape == (400, 2)
    for factor, size in enumerate((3, 2)):
        shares = np.bincount(action[:, factor], minlength=size) / 400
        np.testing.assert_allclose(shares, 1 / size, atol=0.08)


@pytest.mark.parametrize(
    ("name", "settings"), [("AAC", {}), ("RCP-R", {"weights": "fitted_advantage"})]
)
def test_runs_resume_exactly(name, settings, tmp_path):
    for folder, stops in (("once", "2"), ("twice", "12")):
        for epochs in stops:
            game = {"implementation": name, **OF_FACTORS, **settings}
            assert run_cli(tmp_path / folder, "--resume", "--max_epochs", epochs, **game) == 0
    once, twice = (
        last(tmp_path / each, name, "factored")["state_dict"] for each in ("once", "twice")
    )
    assert all(torch.equal(once[key], twice[key]) for key in once)
    agent = lightning_rl.load(tmp_path / "once" / "factored" / "default" / name / "seed_25")
    assert lightning_rl.evaluate(agent, episodes=3)["sampled"]["return"]["max"] <= 10


AAC = {"num_episodes_per_iter": 8, "hidden": [32], "learning_rate": 0.05, "max_epochs": 20}
UDRL = {"learning_starts": 40, "replay_size": 40, "last_few": 10, "num_episodes_per_iter": 20}
UDRL |= {"hidden": [32, 32], "learning_rate": 0.02, "max_epochs": 40, "batch_size": 128}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("AAC", AAC),
        pytest.param("UDRL", {**UDRL, "num_updates_per_iter": 100}, marks=pytest.mark.slow),
    ],
)
def test_the_pair_that_pays_is_learned(name, settings, tmp_path):
    settings = {"eval_interval": settings["max_epochs"], **settings}
    where = {"logger": False, "num_workers": 0, "logdir": str(tmp_path), "eval_episodes": 2}
    run = lightning_rl.train(name, "factored", **where, **settings)
    assert run.method.scalars["eval_greedy/return_mean"] == 10


def test_agents_act_in_the_space_of_the_environment():
    space = FactoredTask.action_space
    agent = LoadedAgent(build("RCP-A", "factored").eval())
    assert space.contains(agent.act(np.zeros(2)))
    actions = agent.predict(np.random.default_rng(0).random((50, 2)))[0]
    assert (actions.min(0).tolist(), actions.max(0).tolist()) == ([1, 0], [3, 1])
    assert all(map(space.contains, actions))
    check_env(lightning_rl.make_env("factored"), skip_render_check=True)


def test_other_factors_of_the_same_number_are_refused():
    with pytest.raises(UserError, match=r"its actions are within .* those of gamename 'factored'"):
        lightning_rl.UDRL("factored", action_box=[[1.0, 0.0], [2.0, 2.0]])


def test_actions_of_a_dataset_or_of_a_checkpoint_have_to_be_in_the_space():
    spec = env_spec("factored")
    whole = make_episode([1.0, 0.0], obs_size=2)
    episode = dataclasses.replace(whole, action=np.array([[2, 1], [0, 0]]))
    method = lightning_rl.RCPR("factored", offline=True, num_updates_per_iter=1)
    batch = method.rollouts(dataset=[episode]).next_batch()
    assert batch.episodes.action.tolist() == [[2, 1], [0, 0]]
    buffer = EpisodeBuffer(best=1)
    buffer.add([episode])
    state = buffer.state_dict()
    buffer.load_state_dict(state, spec)
    assert buffer.episodes[0].action.tolist() == [[2, 1], [0, 0]]
    wrong = np.array([[2, 2], [0, 0]])
    with pytest.raises(ValueError, match="an action that is none of MultiDiscrete"):
        buffer.load_state_dict({**state, "action": torch.from_numpy(wrong)}, spec)
    with pytest.raises(UserError, match=r"its actions go from \[0 0\] to \[2 2\], .* to \[2 1\]"):
        method.rollouts(dataset=[dataclasses.replace(episode, action=wrong)])
    with pytest.raises(UserError, match=r"expected 2 x 2 whole numbers, .* has \(3, 2\) disc"):
        method.rollouts(dataset=[whole])


@pytest.mark.parametrize("name", ["DDQN", "PPO", "QL", "SE", "PCN"])
def test_methods_of_one_action_refuse_several(name):
    with pytest.raises(UserError, match=f"{name} does not fit .*MultiDiscrete.* take one of"):
        build(name, "factored")


def test_each_factor_needs_a_possible_action():
    space = gymnasium.spaces.MultiDiscrete([2, 3])
    mask = checked_mask((np.array([0, 1]), np.array([1, 0, 1])), space)
    assert mask.tolist() == [0, 1, 1, 0, 1]
    assert checked_mask([1, 1, 0, 0, 0], space) is None
