import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from lightning_rl.envs.adapters import FUNC_ENVS
from lightning_rl.envs.func_gym import FuncGymEnv


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNC_ENVS)
def test_gymnasium_accepts_it(name):
    check_env(FuncGymEnv(FUNC_ENVS[name]()), skip_render_check=True)


@pytest.mark.parametrize(("options", "limit"), [({}, 50), ({"max_episode_steps": 3}, 3)])
def test_registered_environments_are_made_with_a_time_limit(options, limit):
    env = gymnasium.make("lightning_rl.gym:lightning_rl/cliff-v0", **options)
    env.reset(seed=0)
    assert [env.step(3)[2:4] for _ in range(limit)] == [(False, False)] * (limit - 1) + [
        (False, True)
    ]
