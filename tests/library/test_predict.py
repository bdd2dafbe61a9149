"""Agents that act on batches, as Stable-Baselines3's do."""

import gymnasium
import numpy as np
import pytest
import torch
from helpers.methods import build

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.run.acting import LoadedAgent


def acted(agent, obs, **asked):
    agent.reset(greedy=True, **asked)
    return agent.act(obs)


@pytest.mark.parametrize("name", ["RCP-A-lunarlander", "TD3-pendulum", "DDQN-cartpole"])
def test_a_batch_gets_the_actions_of_its_rows(name):
    agent = lightning_rl.load(name)
    obs = np.random.default_rng(0).normal(size=(20, agent.method.spec.obs_size))
    actions, state = agent.predict(obs, deterministic=True)
    assert state is None
    for row, action in zip(obs, actions, strict=True):
        np.testing.assert_allclose(acted(agent, row), action, rtol=1e-5)
        single, _ = agent.predict(row, deterministic=True)
        np.testing.assert_allclose(single, action, rtol=1e-5)
        assert agent._own_action.space.contains(single)


def test_actions_are_drawn_unless_they_are_to_be_the_best():
    agent = lightning_rl.load("AAC-beresheet")
    obs = np.tile(np.random.default_rng(1).normal(size=8), (2000, 1))
    best = agent.predict(obs, deterministic=True)[0]
    agent.reset(seed=3)
    drawn = agent.predict(obs)[0]
    agent.reset(seed=3)
    assert len(set(best.tolist())) == 1 < len(set(drawn.tolist()))
    np.testing.assert_array_equal(agent.predict(obs)[0], drawn)
    logits = agent.method.policy.distribution(torch.from_numpy(obs[:1]).float()).output
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, logits.softmax(-1)[0].tolist(), atol=0.04)


def test_each_row_may_be_asked_for_something_else():
    agent = lightning_rl.load("RCP-A-lunarlander")
    obs = np.random.default_rng(2).normal(size=(40, 8))
    asked = np.linspace(-200, 200, 40)
    actions, _ = agent.predict(obs, deterministic=True, command={"return": asked})
    expected = [
        acted(agent, row, command={"return": value}) for row, value in zip(obs, asked, strict=True)
    ]
    assert actions.tolist() == expected
    agent.reset(command={"return": -200})
    all_low = agent.predict(obs, deterministic=True)[0].tolist()
    assert all_low == agent.predict(obs, deterministic=True, command={"return": -200})[0].tolist()
    assert all_low != expected


def test_commands_go_on_step_by_step_and_begin_anew_with_an_episode():
    method = build("UDRL", "cartpole").eval()
    method.target.ask_for(torch.tensor([50.0, 20.0]))
    agent = LoadedAgent(method)
    obs = np.zeros((2, 4))
    _, (command,) = agent.predict(obs)
    assert command.tolist() == [[50, 20], [50, 20]]
    _, (command,) = agent.predict(obs, (command,), np.array([False, False]), reward=[3, 0])
    assert command.tolist() == [[47, 19], [50, 19]]
    _, (command,) = agent.predict(obs, (command,), np.array([False, True]), reward=[1, 1])
    assert command.tolist() == [[46, 18], [50, 20]]
    _, (command,) = agent.predict(obs, (command,), [False, False])  # no reward is known
    assert command.tolist() == [[46, 18], [50, 20]]
    agent.take_rewards({"rewards": np.array([6, 0])})
    _, (command,) = agent.predict(obs, (command,), [False, False])
    assert command.tolist() == [[40, 17], [50, 19]]
    asked = {"return": [10, 20], "horizon": 5}
    _, (command,) = agent.predict(obs, (command,), [True, False], command=asked, reward=[1, 1])
    assert command.tolist() == [[10, 5], [49, 18]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"obs": np.zeros((2, 5))}, "obs has 5 numbers; an observation of 'cartpole' has 4"),
        ({"obs": np.zeros((0, 4))}, "obs is an empty batch"),
        ({"obs": np.zeros((2, 4), dtype=str)}, "obs is no array of numbers"),
        ({"reward": [1, 2, 3]}, "reward .* a finite number for each of 2 observations"),
        ({"reward": [1, np.nan]}, "a finite number for each"),
        ({"episode_start": [True] * 3}, "episode_start .* each of 2 observations"),
        ({"state": (np.zeros((3, 2)),)}, r"state is of commands \[3, 2\], these are \[2, 2\]"),
        ({"command": {"return": "much"}}, "return 'much': give a finite number"),
        ({"command": {"retrun": 1}}, "did you mean 'return'"),
        ({"deterministic": "no"}, "it must be True or False"),
    ],
)
def test_what_cannot_be_predicted(given, message):
    method = build("UDRL", "cartpole").eval()
    method.target.ask_for(torch.tensor([50.0, 20.0]))
    usual = {"obs": np.zeros((2, 4)), "state": (np.zeros((2, 2)),)}
    with pytest.raises(UserError, match=message):
        LoadedAgent(method).predict(**{**usual, **given})


class Parts(gymnasium.Env):
    """Observations of several parts."""

    observation_space = gymnasium.spaces.Dict(
        {"place": gymnasium.spaces.Discrete(3), "speed": gymnasium.spaces.Box(-1, 1, (2,))}
    )
    action_space = gymnasium.spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(int(action))
        return self.observation_space.sample(), 1.0, False, False, {}


def test_observations_may_have_parts():
    lightning_rl.register_env("parts", Parts, horizon=10)
    agent = LoadedAgent(build("AAC", "parts").eval())
    space = Parts.observation_space
    rows = [space.sample() for _ in range(6)]
    batch = {name: np.stack([row[name] for row in rows]) for name in space}
    flat = np.stack([gymnasium.spaces.flatten(space, row) for row in rows])
    found = [agent.predict(each, deterministic=True)[0].tolist() for each in (batch, flat)]
    singles = [agent.predict(row, deterministic=True)[0] for row in rows]
    assert found == [singles, singles]
    assert set(singles) <= {5, 6}


def test_indices_are_a_batch_of_observations():
    agent = LoadedAgent(build("QL", "FrozenLake-v1").eval())
    actions, _ = agent.predict(np.arange(16))
    assert actions.shape == (16,)
    assert np.ndim(agent.predict(3)[0]) == np.ndim(agent.predict(np.eye(16)[3])[0]) == 0


def test_stable_baselines_evaluates_an_agent():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = lightning_rl.load("DDQN-cartpole")
    assert evaluate_policy(agent, make_vec_env("CartPole-v1", 4, seed=0), 8) == (500, 0)
    pendulum = make_vec_env("Pendulum-v1", 2, seed=0)
    assert evaluate_policy(lightning_rl.load("TD3-pendulum"), pendulum, 6)[0] > -400


@pytest.mark.parametrize(("asked", "low", "high"), [(-150, -230, -60), (200, 150, 280)])
def test_stable_baselines_obtains_what_it_asks_an_agent_for(asked, low, high):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = lightning_rl.load("UDRL-lunarlander")
    agent.reset(command={"return": asked}, seed=0)
    env = make_vec_env("LunarLander-v3", 4, seed=0)
    mean, _ = evaluate_policy(agent, env, 12, deterministic=False, callback=agent.take_rewards)
    assert low < mean < high
