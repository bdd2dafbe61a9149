"""Pareto-conditioned networks: the parts by hand, and a run."""

import csv
import json

import gymnasium
import numpy as np
import pytest
import torch
from helpers.runs import cli, run_dir, train_cli
from helpers.toys import deep_sea_front

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.command_rule import Decrease
from lightning_rl.methods.pareto import PCN
from lightning_rl.methods.pareto.buffer import FrontBuffer, nearest_to_front, vector_returns
from lightning_rl.methods.pareto.command import fulfilled
from lightning_rl.methods.pareto.target import FrontTarget
from lightning_rl.nets.policies import Actor
from lightning_rl.rollouts.vector_player import VectorPlayer

DOWN, RIGHT = 1, 3


def episode(*rewards):
    """An episode that pays these vectors."""
    rewards = np.array(rewards, np.float32)
    count = len(rewards)
    obs, action = np.zeros((count + 1, 1), np.float32), np.zeros(count, np.int64)
    return Episode(obs, action, rewards.sum(1), True, False, rewards=rewards)


def test_what_a_step_fulfils_and_what_is_left():
    rows = fulfilled([episode([0, -1], [0, -1], [5, -1]), episode([2, -1])])
    assert rows.tolist() == [[5, -3, 3], [5, -2, 2], [5, -1, 1], [2, -1, 1]]
    command = np.array([[5, -3, 3], [5, -3, 1]], np.float32)
    left = Decrease()(command, np.array([[0, -1], [4, -2]], np.float32))
    assert left.tolist() == [[5, -2, 2], [1, -1, 1]]


def test_the_front_is_kept_first_then_its_copies_in_turn_then_what_is_near():
    front = [[0.0, 4.0], [2.0, 2.0], [4.0, 0.0]]
    points = np.array([*front, front[0], front[0], front[1], [1.9, 2.0], [0.0, 0.0]])
    kept = nearest_to_front(points, 7, crowding=0.0).tolist()
    assert set(kept[:3]) == {0, 1, 2}
    assert set(kept[3:5]) == {3, 5}  # second copies
    assert kept[5:] == [4, 6]  # a third one, then what is dominated


def test_what_is_crowded_counts_as_twice_as_far():
    points = np.array([[10.0], [7.2], [7.1], [7.0], [5.0], [0.0]])
    assert nearest_to_front(points, 6, crowding=0.0).tolist() == [0, 1, 2, 3, 4, 5]
    # the neighbours of 7.1 are 0.02 of the range apart: 0.29 of it away, it is as far as 0.58
    assert nearest_to_front(points, 6, crowding=0.1).tolist() == [0, 1, 3, 4, 2, 5]


def test_a_buffer_of_vectors_is_saved_and_loaded():
    spec = env_spec("deep-sea-treasure")
    played = [episode([0, -1], [8.2, -1]), episode([0.7, -1])]
    kept = FrontBuffer(5, 0.2)
    kept.add([_seen(each) for each in played])
    again = FrontBuffer(5, 0.2)
    again.load_state_dict(kept.state_dict(), spec)
    assert np.array_equal(vector_returns(again.episodes), vector_returns(kept.episodes))
    state = kept.state_dict()
    state["rewards"] = state["rewards"][:, :1]
    with pytest.raises(ValueError, match=r"buffer\.rewards"):
        again.load_state_dict(state, spec)


def _seen(each):
    """With observations of the deep sea."""
    return Episode(
        np.zeros((each.length + 1, 2), np.float32),
        each.action,
        each.reward,
        True,
        False,
        rewards=each.rewards,
    )


def test_commands_are_of_the_front_and_a_little_more_of_one_objective():
    target = FrontTarget(2, 10)
    returns = np.array([[1.0, -1.0], [1.0, -1.0], [5.0, -3.0], [4.0, -3.0]])
    target.update(returns, np.array([2, 1, 3, 3]))
    assert target.commands() == [(1.0, -1.0, 1.0), (5.0, -3.0, 3.0)]
    assert target.spread.tolist() == [2, 1]  # of 1 and 5, of -1 and -3
    drawn = np.array(target.draw(np.random.default_rng(0), 500))
    more = drawn[:, :2] - np.where(drawn[:, :1] < 3.5, [[1, -1]], [[5, -3]])
    assert ((more > 0).sum(1) == 1).all()
    assert (more < [2, 1]).all()
    assert more.max(0) == pytest.approx([2, 1], abs=0.1)
    assert (drawn[:, 2] == 1).all()  # two steps sooner, but at least one


def test_a_command_that_is_given_in_part_is_that_of_the_nearest_best_return():
    target = FrontTarget(2, 10)
    front = deep_sea_front("convex")
    target.update(front, -front[:, 1])
    assert target.nearest({0: 15.5}) == pytest.approx((15.1, -8, 8))
    assert target.nearest({1: -17.6}) == pytest.approx((22.4, -17, 17))
    # in ranges of 23 and 18: 0.42 and 0.33 away from the best of both
    assert target.nearest({}) == pytest.approx((14, -7, 7))


class Walker(Actor):
    """Goes right as often as the horizon of its command says, then down."""

    def act(self, obs, command, noise):
        return torch.where(command[:, -1] > 1, RIGHT, DOWN)


def test_each_episode_of_a_chunk_pays_for_its_own_command():
    spec = env_spec("deep-sea-treasure")
    player = VectorPlayer(spec, Walker(), 0, Decrease())
    asked = [(9.0, -9.0, horizon) for horizon in (3.0, 1.0, 2.0)]
    played = player.play([Request("one", seed, "greedy", each) for seed, each in enumerate(asked)])
    assert [each.length for each in played] == [5, 1, 3]
    assert vector_returns(played).tolist() == pytest.approx(
        np.array([[11.5, -5], [0.7, -1], [8.2, -3]])
    )
    for each in played:
        left = each.command[:, :2]
        assert left[0].tolist() == [9, -9]
        assert np.array_equal(left[1:], left[:-1] - each.rewards[:-1])
        assert np.array_equal(each.reward, each.rewards.sum(1))


class Rising(gymnasium.Env):
    """Each step pays another vector."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)
    reward_space = gymnasium.spaces.Box(-10, 10, (2,))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        vector = np.array([self.steps, -2.0 * self.steps])
        return np.zeros(1, np.float32), vector, self.steps == 3, False, {}


def test_a_command_is_reduced_by_what_the_latest_step_has_paid():
    lightning_rl.register_env("rising", Rising, horizon=3)
    player = VectorPlayer(env_spec("rising"), Walker(), 0, Decrease())
    (played,) = player.play([Request("one", 0, "greedy", (9.0, 0.0, 3.0))])
    assert played.rewards.tolist() == [[1, -2], [2, -4], [3, -6]]
    assert played.command.tolist() == [[9, 0, 3], [8, 2, 2], [6, 6, 1]]


def test_a_run_asks_resumes_exactly_and_draws_its_front(tmp_path, capsys):
    given = {"implementation": "PCN", "gamename": "deep-sea-treasure"}
    train_cli(tmp_path / "a", 6, **given)
    train_cli(tmp_path / "b", 3, **given)
    train_cli(tmp_path / "b", 6, "--resume", **given)
    runs = [run_dir(tmp_path / each, **given) for each in "ab"]
    a, b = (torch.load(run / "last.ckpt", weights_only=True) for run in runs)
    for name, value in a["state_dict"].items():
        assert torch.equal(value, b["state_dict"][name]), name
    kept, again = (each["ParetoRollouts"]["buffer"]["rewards"] for each in (a, b))
    assert torch.equal(kept, again)

    agent = lightning_rl.load(runs[0])
    env = lightning_rl.make_env("deep-sea-treasure")
    obs, _ = env.reset(seed=0)
    agent.reset(command={"treasure": 0.7})
    (command,) = agent._command
    assert agent.act(obs) in range(4)
    _, reward, _, _, info = env.step(DOWN)
    agent.act(obs, info["reward_vector"])
    treasure, time = info["reward_vector"]
    horizon = max(command[2] - 1, 1)
    assert agent._command[0] == pytest.approx([command[0] - treasure, command[1] - time, horizon])
    with pytest.raises(UserError, match="a finite number for each of treasure, time"):
        agent.act(obs, reward)
    report = lightning_rl.evaluate(agent, episodes=2)
    assert report["greedy"]["objectives"]["time"]["max"] < 0

    capsys.readouterr()
    assert cli("eval", runs[0], "--command", "sweep", "--episodes", "1", "--num_workers", "0") == 0
    rows = list(csv.DictReader((runs[0] / "sweep.csv").open()))
    report = json.loads((runs[0] / "sweep.json").read_text())
    assert len(rows) == len(report["rows"]) == int(a["state_dict"]["target.count"])
    assert "hypervolume" in capsys.readouterr().out
    assert cli("figures", "front", tmp_path / "front", f"{runs[0] / 'sweep.csv'}:six epochs") == 0
    assert (tmp_path / "front.png").is_file()
    assert cli("eval", runs[0], "--calibrate") == 2
    assert "PCN is asked for returns as they are" in capsys.readouterr().err


def test_a_reference_is_a_number_for_each_objective():
    with pytest.raises(UserError, match="has the objectives treasure, time"):
        PCN("deep-sea-treasure", seed=0, reference=[0.0])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_treasures_are_found_and_fetched(tmp_path):
    for gamename, volume in (("deep-sea-treasure", 994.3), ("deep-sea-treasure-concave", 4255)):
        flags = ("--implementation", "PCN", "--gamename", gamename, "--seed", 0)
        assert cli("train", *flags, "--logdir", tmp_path, "--set", "max_env_steps=15000") == 0
        run = run_dir(tmp_path, gamename, implementation="PCN", seed=0)
        assert cli("eval", run, "--command", "sweep", "--episodes", 1) == 0
        report = json.loads((run / "sweep.json").read_text())
        assert report["hypervolume"] == pytest.approx(volume)
