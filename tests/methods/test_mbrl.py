import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers.runs import run_cli, run_dir, train_cli

import lightning_rl as lrl
from lightning_rl.envs.proxies import read_proxy
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.supervised_model import collect


def test_a_model_of_cartpole_learns_the_task_and_resumes_exactly(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    settings = {"data_steps": 300, "batch_size": 64, "hidden": [32], "eval_interval": 10}
    train_cli(whole, 20, implementation="MBRL", **settings)
    for epochs in ("10", "20"):
        train_cli(parts, epochs, "--resume", implementation="MBRL", **settings)
    first, second = (
        read_proxy(run_dir(folder, implementation="MBRL") / "proxy.pt") for folder in (whole, parts)
    )
    assert torch.equal(first[1], second[1])
    assert first[2]["score"] > -0.6  # less the held-out losses of state, reward and end
    assert first[0].done == "classifier"
    curve = read_scalar(run_dir(parts, implementation="MBRL"), "model/state_loss")
    assert len(curve.value) == 20  # one for each pass over the data, also after resuming
    assert curve.value[-1] < curve.value[0]


def test_agents_without_memory_are_refused(tmp_path, capsys):
    assert run_cli(tmp_path, implementation="MBRL", agent="PPO") == 2
    assert (
        "agent PPO keeps no transitions to learn from; use one of: DDQN" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"agent": "{DDQN: {gamma: 0.0}}"},
            "agent DDQN, gamma 0: its transitions do not tell ends from steps; use more than 0",
        ),
        (
            {"data_agents": 1, "data_steps": 1},
            "data_steps 1 of one agent: it judges the model, and none is left to learn from",
        ),
    ],
)
def test_data_that_say_nothing_are_refused(tmp_path, capsys, settings, message):
    assert run_cli(tmp_path, implementation="MBRL", **settings) == 2
    assert message in capsys.readouterr().err


def test_an_agent_that_diverges_is_named_before_the_model_learns(tmp_path, capsys):
    """Physics never sees its actions, which would be nan."""
    agent = "{TD3: {learning_rate: 1.0e+30, learning_starts: 1, hidden: [4], batch_size: 8}}"
    settings = {"data_agents": 1, "data_steps": 400, "max_epochs": 1, "agent": agent}
    assert run_cli(tmp_path, implementation="MBRL", gamename="pendulum", **settings) == 2
    assert (
        "agent TD3 diverged while it collected transitions; use a lower --set agent.TD3.learning"
        in capsys.readouterr().err
    )


class Brief(gym.Env):
    """Most episodes end at once."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.high, 1.0, bool(self.np_random.random() < 0.7), False, {}


def test_data_of_agents_whose_episodes_all_ended_at_once_are_kept():
    lrl.register_env("brief", Brief, horizon=100)
    for steps in (1, 3):
        own = {"agent": {"DDQN": {"hidden": [4], "batch_size": 2}}}
        method = lrl.MBRL("brief", seed=0, data_agents=8, data_steps=steps, **own)
        data = collect(method.cfg, method.spec, 0, torch.device("cpu"))
        assert len(data.reward) == 8 * steps
        assert data.terminated.mean() > 0.5
