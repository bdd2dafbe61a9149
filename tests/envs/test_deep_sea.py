"""Deep Sea Treasure, and environments that pay a vector."""

import gymnasium
import numpy as np
import pytest
from helpers.toys import deep_sea_front

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.envs.spec import env_spec

DOWN, RIGHT = 1, 3


@pytest.mark.parametrize("front", ["convex", "concave"])
def test_every_treasure_is_reached_in_its_fewest_steps(front):
    env = gymnasium.make("lightning_rl.gym:lightning_rl/DeepSeaTreasure-v0", front=front)
    for column, best in enumerate(deep_sea_front(front)):
        env.reset(seed=0)
        total, over = np.zeros(2), False
        for action in [RIGHT] * column + [DOWN] * 11:
            if over:
                break
            _, reward, over, _, info = env.step(action)
            assert reward == info["reward_vector"].sum()
            total += info["reward_vector"]
        assert over
        assert total == pytest.approx(best)


def test_edges_and_rock_stop_a_move():
    env = gymnasium.make("lightning_rl.gym:lightning_rl/DeepSeaTreasure-v0").unwrapped
    env.reset(seed=0)
    for action in (0, 2):  # up, left
        assert env.step(action)[0].tolist() == [0, 0]
    for action in [RIGHT] * 6 + [DOWN] * 6 + [2]:  # to the left of the sixth column it is rock
        obs, *_ = env.step(action)
    assert obs.tolist() == pytest.approx([0.6, 0.6])


@pytest.mark.parametrize(("front", "name"), [("convex", ""), ("concave", "-concave")])
def test_ours_is_that_of_mo_gymnasium(front, name):
    """Where it is installed (the extra multi): the same treasures at the same places."""
    pytest.importorskip("mo_gymnasium")
    theirs = gymnasium.make(f"mo_gymnasium:deep-sea-treasure{name}-v0", disable_env_checker=True)
    ours = gymnasium.make("lightning_rl.gym:lightning_rl/DeepSeaTreasure-v0", front=front)
    rng = np.random.default_rng(0)
    for seed in range(200):
        ours.reset(seed=seed)
        theirs.reset(seed=seed)
        over = False
        while not over:
            action = rng.choice(4, p=[0.1, 0.3, 0.1, 0.5])
            obs, _, over, truncated, info = ours.step(action)
            seen, vector, found, late, _ = theirs.step(action)
            assert (obs * 10).round().tolist() == seen.tolist()
            assert info["reward_vector"] == pytest.approx(vector)
            assert (over, truncated) == (found, late)
            over = over or truncated


class Paid(gymnasium.Env):
    """Pays a vector as its reward, or beside it."""

    def __init__(self, vector=(1.0, -2.0), beside=False, space=True):
        self.observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        if space:
            self.reward_space = gymnasium.spaces.Box(-1, 1, (2,))
        self.vector, self.beside = np.array(vector), beside

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        obs = np.zeros(1, np.float32)
        if self.beside:
            return obs, 0.25, True, False, {"reward_vector": self.vector}
        return obs, self.vector, True, False, {}


@pytest.mark.parametrize(("beside", "reward"), [(False, -1.0), (True, 0.25)])
def test_a_vector_is_the_reward_or_beside_it(beside, reward):
    kwargs = {"beside": beside, "space": not beside}
    names = ("good", "bad") if beside else ()
    lightning_rl.register_env("paid", Paid, horizon=3, kwargs=kwargs, objectives=names)
    assert env_spec("paid").objectives == (names or ("objective_1", "objective_2"))
    env = lightning_rl.make_env("paid")
    env.reset(seed=0)
    _, paid, _, _, info = env.step(0)
    assert paid == reward
    assert info["reward_vector"].tolist() == [1, -2]


@pytest.mark.parametrize("vector", [(1.0,), (1.0, np.nan), (1e16, 0.0)])
def test_a_wrong_vector_is_named(vector):
    lightning_rl.register_env("paid", Paid, horizon=3, kwargs={"vector": vector})
    env = lightning_rl.make_env("paid")
    env.reset(seed=0)
    with pytest.raises(UserError, match=r"expected 2 finite numbers.*Paid at .*test_deep_sea.py"):
        env.step(0)


def test_as_many_names_as_rewards():
    lightning_rl.register_env("paid", Paid, horizon=3, objectives=("good",))
    with pytest.raises(UserError, match="objectives good are 1, its reward_space has 2"):
        env_spec("paid")
