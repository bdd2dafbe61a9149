import dataclasses

import numpy as np
import pytest
from helpers.budgets import GAMES
from helpers.toys import same_episodes, toy_policy

from lightning_rl.core.errors import RolloutError
from lightning_rl.core.types import Request
from lightning_rl.envs.spec import env_spec
from lightning_rl.rollouts.player import Player


def requests(count: int, mode="sampled", command=(100.0, 50.0), start: int = 0) -> list[Request]:
    return [Request(f"test {i}", 1000 + i, mode, command) for i in range(start, start + count)]


@pytest.mark.parametrize("gamename", GAMES)
def test_an_episode_is_a_pure_function_of_policy_and_request(gamename):
    spec = env_spec(gamename)
    player = Player(spec, toy_policy(spec))
    first = player.play(requests(3))
    player.play(requests(3, start=7))  # leaves other states behind in the environments
    assert same_episodes(first, player.play(requests(3)))
    assert not same_episodes(first, player.play(requests(3, start=1)))


def test_shapes_and_ends():
    for gamename, dtype in (("cartpole", np.int64), ("lunarlander-continuous", np.float32)):
        spec = env_spec(gamename)
        for episode in Player(spec, toy_policy(spec)).play(requests(4)):
            t = episode.length
            assert episode.obs.shape == (t + 1, spec.obs_size)
            assert episode.action.shape == ((t, spec.action_size) if spec.continuous else (t,))
            assert episode.action.dtype == dtype
            assert episode.command is not None
            assert episode.command.shape == (t, 2)
            assert episode.terminated or episode.truncated
            assert t <= spec.horizon
            assert episode.ret == pytest.approx(float(episode.reward.sum()), rel=1e-5)


def test_repeated_actions_count_as_environment_steps():
    spec = dataclasses.replace(env_spec("pendulum"), repeat=3)
    (episode,) = Player(spec, toy_policy(spec)).play(requests(1))
    assert (episode.length, episode.env_steps) == (67, 200)
    plain = env_spec("pendulum")
    assert Player(plain, toy_policy(plain)).play(requests(1))[0].env_steps == 200


def test_lock_step_equals_replaying_the_actions_alone():
    from lightning_rl.envs.gym import make_env

    spec = env_spec("lunarlander")
    for episode in Player(spec, toy_policy(spec)).play(requests(4)):
        env = make_env(spec)
        obs = [env.reset(seed=episode.request.seed % 2**31)[0]]
        rewards = []
        for action in episode.action.tolist():
            o, r, *_ = env.step(action)
            obs.append(o)
            rewards.append(r)
        np.testing.assert_array_equal(episode.obs, np.stack(obs))
        np.testing.assert_array_equal(episode.reward, np.array(rewards, dtype=np.float32))


@pytest.mark.parametrize("gamename", ["acrobot", "pendulum"])
def test_uniform_mode_is_uniform(gamename):
    spec = env_spec(gamename)
    played = Player(spec, toy_policy(spec)).play(requests(4, "uniform", None))
    actions = np.concatenate([e.action for e in played])
    if spec.continuous:
        assert abs(actions.mean()) < 0.1
        assert actions.std() == pytest.approx(3**-0.5, abs=0.05)
        assert np.abs(actions).max() <= 1
    else:
        assert np.bincount(actions, minlength=3) / len(actions) == pytest.approx(
            np.full(3, 1 / 3), abs=0.05
        )


def test_an_environment_that_raises_is_named(toy_games):
    spec = env_spec("raising")
    with pytest.raises(
        RolloutError, match=r"ValueError: the ground gave way.*step 3.*test 0.*request seed 1000"
    ):
        Player(spec, toy_policy(spec)).play(requests(2))
