import dataclasses

import gymnasium
import numpy as np
from helpers import toy_policy

from lightning_rl.core.types import Request
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.spec import env_spec
from lightning_rl.rollouts.player import Collector, Player


def test_facts():
    spec = env_spec("beresheet")
    assert (spec.env, spec.horizon, spec.solved_return) == ("LunarLander-v3", 300, 200)


def test_lunarlander_but_for_the_time_limit():
    action = np.random.default_rng(0).integers(4, size=60).tolist()
    trajectories = []
    for gamename in ("beresheet", "lunarlander"):
        env = make_env(env_spec(gamename))
        trajectories.append([env.reset(seed=7)[0], *(env.step(a)[0] for a in action)])
    np.testing.assert_array_equal(*trajectories)


def test_a_worker_plays_the_episodes_that_this_process_plays():
    spec = env_spec("beresheet")
    requests = [Request(f"test {i}", i, "uniform") for i in range(4)]
    collector = Collector(spec, toy_policy(spec), 1, 2)
    played = collector.collect(requests, collector.behaviour.state_dict(), 0)
    collector.close()
    here = Player(spec, toy_policy(spec)).play(requests)
    assert [e.ret for e in played] == [e.ret for e in here]


class Hovering(gymnasium.Env):
    """Lands never."""

    observation_space, action_space = (
        gymnasium.spaces.Box(-1, 1, (8,), np.float32),
        gymnasium.spaces.Discrete(4),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(8, np.float32), {}

    def step(self, action):
        return np.zeros(8, np.float32), 0.0, False, False, {}


def test_episodes_end_at_300():
    spec = dataclasses.replace(env_spec("beresheet"), env=Hovering)
    (episode,) = Player(spec, toy_policy(spec)).play([Request("test", 0, "uniform")])
    assert (episode.length, episode.terminated, episode.truncated) == (300, False, True)
