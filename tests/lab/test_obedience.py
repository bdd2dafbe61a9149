"""What is asked and what is obtained: the measure, calibration, and commands that mean returns."""

import json
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from helpers.budgets import tiny_settings
from helpers.runs import cli, run_dir, train_cli
from torch import nn

import lightning_rl
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES
from lightning_rl.core.limits import within
from lightning_rl.lab.calibration import (
    CALIBRATION_EPISODES,
    GUIDANCES,
    Trials,
    calibrate,
    calibrate_checkpoint,
    table,
)
from lightning_rl.lab.obedience import obedience
from lightning_rl.nets.command import Calibration
from lightning_rl.run.asking import full_command
from lightning_rl.run.state import owned


def test_the_measure_worked_by_hand():
    perfect = obedience([0.0, 10.0], [[-1.0, 1.0], [9.0, 11.0]])
    assert perfect == {
        "episode_error": 1.0,
        "within_25": 1.0,
        "within_75": 1.0,
        "worst_asked": 0.0,
        "worst_episode_error": 1.0,
        "error": 0.0,
        "error_share": 0.0,
        # sd sqrt(2) of two episodes: sqrt(2 / pi) of it, over sqrt(2)
        "floor": pytest.approx(0.7979, abs=1e-4),
        "slope": 1.0,
        "rank_correlation": pytest.approx(0.8944, abs=1e-4),
        "highest": 10.0,
    }
    half = obedience([100.0, 200.0, 300.0], [[150.0], [200.0], [240.0]])
    assert half == {
        "episode_error": pytest.approx(110 / 3),
        "within_25": pytest.approx(1 / 3),
        "within_75": 1.0,
        "worst_asked": 300.0,
        "worst_episode_error": 60.0,
        "error": pytest.approx(110 / 3),
        "error_share": pytest.approx(11 / 60),
        "floor": 0.0,
        "slope": 0.45,
        "rank_correlation": pytest.approx(1.0),
        "highest": 240.0,
    }
    assert obedience([0.0, 100.0], [[200.0], [0.0]])["slope"] == -2.0
    deaf = obedience([0.0, 100.0], [[50.0, 50.0], [50.0, 50.0]])
    names = ("error", "error_share", "floor", "slope", "rank_correlation", "highest")
    assert [deaf[name] for name in names] == [50.0, 0.5, 0.0, 0.0, 0.0, 50.0]


def test_means_obey_where_no_single_episode_does():
    """Asked for 100, one episode lands with 250 and one crashes with -50; -200 is all but met."""
    found = obedience([-200.0, 100.0], [[-225.0, -125.0], [250.0, -50.0]])
    names = ("error", "episode_error", "worst_asked", "worst_episode_error")
    assert [found[name] for name in names] == [12.5, 100.0, 100.0, 150.0]
    assert (found["within_25"], found["within_75"]) == (0.25, 0.5)  # both ends count


def test_the_fit_is_monotone_and_finds_the_mean_return_of_each_command():
    rng, trials = np.random.default_rng(0), Trials()
    trials.first = rng.permutation(np.repeat(np.linspace(-3, 3, 61), 40)).tolist()
    trials.returns = [100 * np.tanh(c) + rng.normal(0, 60) for c in trials.first]
    first, level = trials.fit()
    assert (np.diff(first) > 0).all()
    assert (np.diff(level) > 0).all()
    asked = np.linspace(-80, 80, 9)
    np.testing.assert_allclose(100 * np.tanh(np.interp(asked, level, first)), asked, atol=25)


@pytest.mark.parametrize(("episodes", "together"), [(60, 48), (1000, 100)])
def test_a_mean_is_of_48_episodes_or_of_a_tenth_of_all(episodes, together):
    first, level = Trials(list(range(episodes)), [2.0 * c for c in range(episodes)]).fit()
    assert len(first) == episodes - together + 1
    assert (first[0], level[0]) == pytest.approx(((together - 1) / 2, together - 1))


def test_each_return_is_asked_for_with_the_least_guidance_that_reaches_it():
    def trials(low, high):
        return Trials(list(np.linspace(-1, 1, 500)), list(np.linspace(low, high, 500)))

    tried = {1.0: trials(-500.0, 100.0), 0.0: trials(50.0, 98.0), 0.5: trials(-100.0, 100.0)}
    asked, first, guidance = table(tried, floor=-300.0)
    assert asked[0] == -300.0
    # the ends of the means are those of the outer episodes
    assert asked[-1] == pytest.approx(95, abs=5)
    assert set(guidance[asked < -90]) == {1.0}
    assert set(guidance[(asked > -90) & (asked < 50)]) == {0.5}
    assert set(guidance[(asked > 56) & (asked < 92)]) == {0.0}
    assert first[np.abs(asked + 100).argmin()] == pytest.approx(1 / 3, abs=0.05)


def test_a_return_that_no_guidance_reaches_is_asked_for_as_the_nearest_one():
    def trials(low, high):
        return Trials(list(np.linspace(1, 3, 500)), list(np.linspace(low, high, 500)))

    asked, first, guidance = table({0.0: trials(0.0, 10.0), 2.0: trials(90.0, 100.0)}, floor=-300.0)
    assert (guidance[asked < 49] == 0.0).all()  # of the gap, each half has the nearer end
    assert (guidance[asked > 51] == 2.0).all()
    assert first[(asked > 10) & (asked < 49)] == pytest.approx(3, abs=0.2)
    assert first[(asked > 51) & (asked < 90)] == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("floor", [120.0, 100.0, -500.0])
def test_where_random_actions_obtain_more_every_return_of_the_policy_can_be_asked_for(floor):
    """Also where the policy obtains more than they do, whatever it is asked for."""
    tried = {0.0: Trials(list(np.linspace(1, 3, 500)), list(np.linspace(-200, 100, 500)))}
    calibration = Calibration()
    calibration.set(*table(tried, floor))
    assert calibration.limits == pytest.approx((-200, 100), abs=20)
    assert calibration.command(-50.0)[0] == pytest.approx(2, abs=0.05)


def test_between_two_entries_of_the_table_lies_a_line_but_not_between_two_guidances():
    calibration = Calibration()
    assert calibration.limits is None
    asked, guidance = np.arange(33.0), np.array([0.5] * 10 + [0.0] * 23)
    calibration.set(asked, np.where(guidance == 0.5, asked, 100 - asked), guidance)
    assert calibration.limits == (0.0, 32.0)
    assert calibration.command(4.25) == (4.25, 0.5)
    assert calibration.command(20.5) == (79.5, 0.0)
    assert calibration.command(9.4) == (9.0, 0.5)
    assert calibration.command(9.6) == (90.0, 0.0)
    calibration.clear()
    assert calibration.limits is None


class Ones(gymnasium.Env):
    """Twenty steps; each pays the number of the action."""

    observation_space, action_space = Box(0, 1, (1,)), Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.left = 20
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.zeros(1, np.float32), float(action), self.left == 0, False, {}


class Answer(nn.Module):
    """Action 1 has the logit ``c / 2 + 1``: the policy answers its command c, though less than
    it might.
    """

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor([0.0, 0.5]))

    def forward(self, obs, command):
        return command * self.slope + torch.tensor([0.0, 1.0])


@pytest.fixture
def answering():
    lightning_rl.register_env("ones", Ones, horizon=20, max_return=20.0)
    method = lightning_rl.RCPA("ones", seed=0, networks={"policy": Answer()}, tau=1.0)
    method.target.numbers.copy_(torch.tensor([1.0, 0.5, -3.0, 3.0]))
    yield method
    del GAMES["ones"]


def test_a_calibrated_policy_obtains_what_it_is_asked_for(answering):
    with pytest.raises(
        UserError, match="unknown name 'return'; this checkpoint knows: advantage; it can be asked"
    ):
        full_command(answering, {"return": 10.0})
    played = []
    calibration = calibrate(answering, advance=lambda count, now: played.append(count))
    low, high = calibration.limits
    assert 5 < low < 9  # what uniformly random actions get, less a standard deviation
    assert 18.5 < high <= 20
    assert sum(played) == CALIBRATION_EPISODES
    answering.calibration.load_state_dict(calibration.state_dict())
    for asked in (9.0, 12.0, 15.0, 18.0):
        report = lightning_rl.evaluate(answering, episodes=200, command={"return": asked})
        assert report["sampled"]["return"]["mean"] == pytest.approx(asked, abs=1.0)
        assert report["command"].keys() == {"advantage", "guidance"}
    for asked in (high + 1, low - 1, float("nan")):
        with pytest.raises(UserError, match=r"^command return="):
            full_command(answering, {"return": asked})


@pytest.mark.parametrize(("name", "lowest"), [("return", -10.0), ("advantage", -2.0)])
def test_what_a_calibration_plays(name, lowest, monkeypatch):
    """A quarter of the range further down than training saw; a return as low as uniform actions
    get. Each episode is another.
    """
    monkeypatch.setattr("lightning_rl.lab.calibration._ROUNDS", 2)
    played = []

    def collect(requests, parameters, version):
        played.append(requests)
        return [
            SimpleNamespace(request=r, ret=r.command[0] if r.command else -10.0) for r in requests
        ]

    method = SimpleNamespace(
        command_limits=lambda: (0.0, 8.0),
        first_command=lambda: (5.0, 20.0),
        command_names=(name, "horizon"),
        seed=3,
        policy=nn.Linear(1, 1),
        collector=lambda workers: SimpleNamespace(collect=collect, close=lambda: None),
    )
    calibrate(method)
    uniform, coarse, *fine = played
    assert {request.mode for request in uniform} == {"uniform"}
    assert len(fine) == 2
    asked = [request for requests in (coarse, *fine) for request in requests]
    assert {request.mode for request in asked} == {"sampled"}
    assert len({request.seed for request in asked}) == len(asked)
    first, horizon = np.array([request.command for request in coarse]).T
    guidance = [request.guidance for request in coarse]
    assert (first.min(), first.max(), set(horizon), set(guidance)) == (
        lowest,
        8.0,
        {20.0},
        set(GUIDANCES),
    )


def test_training_on_makes_a_calibration_void(tmp_path, capsys, monkeypatch):
    # less accurate, which does not matter here
    monkeypatch.setattr("lightning_rl.lab.calibration._ROUNDS", 1)
    monkeypatch.setattr("lightning_rl.lab.calibration._COARSE_EPISODES", 4)
    monkeypatch.setattr("lightning_rl.lab.calibration._FINE_EPISODES", 6)
    train_cli(tmp_path, 2, implementation="RCP-A")
    last = run_dir(tmp_path, implementation="RCP-A") / "last.ckpt"
    capsys.readouterr()
    flags = ["--num_workers", "0", "--eval_episodes", "2"]
    assert cli("--eval_agent", last, "--calibrate", *flags) == 0
    shown = capsys.readouterr().out
    assert "can be asked for" in shown
    assert "commanded return" in shown
    assert "single episodes miss by" in shown
    assert last.with_name("sweep.png").exists()
    report = json.loads(last.with_name("sweep.json").read_text())
    assert report["calibrated"]
    assert report["highest"] == report["rows"][-1]["obtained_mean"]
    low, high = lightning_rl.load(last).method.calibration.limits
    agent = lightning_rl.load(last)
    agent.reset(command={"return": (low + high) / 2})
    assert agent.act(np.zeros(4)) in (0, 1)
    assert agent.act(np.zeros(4), 1.0) in (0, 1)
    assert cli("--eval_agent", last, "--eval_command", f"return={high + 5}", *flags) == 2
    assert f"{within(low, high)} on average" in capsys.readouterr().err
    train_cli(tmp_path, 3, "--resume", implementation="RCP-A")
    assert lightning_rl.load(last).method.calibration.limits is None


def test_a_calibration_is_kept_by_the_weights_that_it_is_of_alone(tmp_path, monkeypatch):
    """Not where a run is at work, which may write meanwhile, nor in a file that has become
    another.
    """
    train_cli(tmp_path, 2)
    path = run_dir(tmp_path) / "last.ckpt"
    with (
        owned(path.parent),
        pytest.raises(UserError, match=r"a run is at work in .*; wait until it has ended, or copy"),
    ):
        calibrate_checkpoint(path, 0)

    def train_on(method, num_workers, advance):
        train_cli(tmp_path, 3, "--resume")
        found = Calibration()
        found.set(*np.ones((3, 33)).cumsum(1))
        return found

    monkeypatch.setattr("lightning_rl.lab.calibration.calibrate", train_on)
    with pytest.raises(
        UserError, match="has other weights than those that were played; copy the checkpoint"
    ):
        calibrate_checkpoint(path, 0)
    assert lightning_rl.load(path).method.calibrated() is None


def test_only_policies_that_take_commands_are_calibrated(tmp_path, capsys):
    train_cli(tmp_path, 2, implementation="REINFORCE")
    last = run_dir(tmp_path, implementation="REINFORCE") / "last.ckpt"
    capsys.readouterr()
    assert cli("--eval_agent", last, "--calibrate", "--num_workers", "0") == 2
    assert "--calibrate: the policy of" in capsys.readouterr().err


def test_a_return_means_one_thing_and_the_rest_is_raw():
    """A calibrated policy translates it, another takes it as it is."""
    method = lightning_rl.UDRL("cartpole", config=tiny_settings("UDRL"))
    method.target.horizon.fill_(20.0)
    assert full_command(method, {"return": 50.0}) == ((50.0, 20.0), None)
    assert full_command(method, {"raw_return": 50.0, "horizon": 9.0}) == ((50.0, 9.0), None)
    with pytest.raises(UserError, match="return and raw_return are the same here; leave one out"):
        full_command(method, {"return": 50.0, "raw_return": 50.0})
    table = np.linspace(0.0, 100.0, Calibration.POINTS)
    method.calibration.set(table, 2 * table, np.full(Calibration.POINTS, 0.5))
    assert full_command(method, {"return": 50.0}) == ((100.0, 20.0), 0.5)
    assert full_command(method, {"raw_return": 50.0, "raw_horizon": 9.0}) == ((50.0, 9.0), None)
    assert full_command(method, {}) == ((0.0, 20.0), None)
    with pytest.raises(UserError, match="return goes without horizon; leave one out, or give raw"):
        full_command(method, {"return": 50.0, "horizon": 9.0})


def test_returns_that_do_not_follow_commands_are_known():
    rng = np.random.default_rng(0)
    asked = np.linspace(0, 1, 900)
    noise = rng.standard_normal(900)
    assert not Trials(asked.tolist(), noise.tolist()).follow()
    assert Trials(asked.tolist(), (noise + asked).tolist()).follow()
    assert not Trials(asked.tolist(), [3.0] * 900).follow()
