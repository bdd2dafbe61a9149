import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from lightning_rl.envs.adapters import FUNC_ENVS, FuncGymEnv, FuncVectorEnv


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNC_ENVS)
def test_gymnasium_accepts_it(name):
    check_env(FuncGymEnv(FUNC_ENVS[name]()), skip_render_check=True)


def test_registered_environments_are_made_with_a_time_limit():
    env = gymnasium.make("lightning_rl/cliff-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(3)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize("name", ["cartpole", "pendulum", "holeroom", "bandit10"])
def test_vector_environment_plays_by_the_rules_of_gymnasium(name):
    env = FUNC_ENVS[name]()
    vector = FuncVectorEnv(env, 6, max_episode_steps=40)
    vector.action_space.seed(0)
    first, _ = vector.reset(seed=3)
    again, _ = vector.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    assert first in vector.observation_space
    ended, length, ends = np.zeros(6, dtype=bool), np.zeros(6), 0
    for _ in range(200):
        state = vector.state
        obs, reward, terminated, truncated, _ = vector.step(vector.action_space.sample())
        assert obs in vector.observation_space
        assert (reward.shape, reward.dtype) == ((6,), np.float64)
        assert not (terminated & truncated).any()
        # the step after an end is the reset: reward 0, length 0, never an end
        assert (reward[ended] == 0).all()
        assert not (terminated | truncated)[ended].any()
        length = np.where(ended, 0, length + 1)
        np.testing.assert_array_equal(truncated, (length == 40) & ~terminated)
        assert not torch.equal(state, vector.state) or name in ("holeroom", "bandit10")
        ended = terminated | truncated
        ends += ended.sum()
    assert ends >= 12
    with pytest.raises(ValueError, match="seed it with one integer"):
        vector.reset(seed=[1] * 6)


def test_vector_and_single_environment_agree():
    env = FUNC_ENVS["cartpole"]()
    vector, single = FuncVectorEnv(env, 2, 500), FuncGymEnv(env)
    vector.reset(seed=1)
    single.reset(seed=1)
    single.state = vector.state[1]
    for action in (0, 1, 1, 0, 1):
        obs, reward, terminated, _, _ = vector.step(np.array([0, action]))
        one = single.step(action)
        np.testing.assert_allclose(obs[1], one[0], rtol=0, atol=1e-5)
        assert (reward[1], terminated[1]) == one[1:3]
