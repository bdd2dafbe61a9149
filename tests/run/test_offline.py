"""Runs that learn from datasets, by the command line and from Python; what is recorded for others,
read back by them.
"""

import json
import warnings

import gymnasium
import numpy as np
import pytest
import torch
import yaml
from gymnasium import spaces
from helpers.runs import cli, refused, run_dir, train_cli
from helpers.toys import make_episode

import lightning_rl as lrl
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.envs.gym import rollout_env
from lightning_rl.run.asking import full_command
from lightning_rl.run.datasets import read_dataset

TINY = {
    "hidden": [8, 8],
    "num_updates_per_iter": 3,
    "batch_size": 16,
    "eval_episodes": 2,
    "eval_interval": 2,
    "checkpoint_interval": 2,
}
CRITIC = {"num_critic_updates_per_iter": 2, "critic_hidden": [8]}
OTHERS = [make_episode([1.0] * (3 + number)) for number in range(10)]


def train(logdir, implementation="UDRL", dataset=OTHERS, max_epochs=4, **options):
    settings = TINY if implementation == "UDRL" else TINY | CRITIC
    options = {**settings, "logdir": logdir, "num_workers": 0, "max_epochs": max_epochs, **options}
    options = {"gamename": "cartpole", **options}
    return lrl.train(implementation, dataset=dataset, **options)


def train_words(logdir, source, *flags, implementation="UDRL", gamename="cartpole"):
    what = ["train", "--implementation", implementation, "--gamename", gamename]
    settings = [f"--set={key}={value}" for key, value in TINY.items()]
    where = ["--dataset", source, "--num_workers", "0", "--logdir", logdir, "--max_epochs", "2"]
    return cli(*what, *where, *settings, *flags)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run that has played."""
    logdir = tmp_path_factory.mktemp("played")
    train_cli(logdir, 3)
    return run_dir(logdir)


@pytest.mark.parametrize("implementation", ["UDRL", "RCP-R", "RCP-A"])
def test_a_resumed_run_is_the_one_that_was_never_stopped(implementation, tmp_path):
    whole = train(tmp_path / "whole", implementation)
    assert (whole.method.env_steps, whole.trainer.current_epoch) == (75, 4)
    assert whole.metrics["eval/return_mean"] > 0
    train(tmp_path / "parts", implementation, max_epochs=2)
    parts = train(tmp_path / "parts", implementation, resume=True)
    for name, value in whole.method.state_dict().items():
        assert torch.equal(value, parts.method.state_dict()[name]), name
    content = torch.load(whole.path / "last.ckpt", weights_only=True)
    assert content["OfflineRollouts"].keys() == {"epoch", "dataset"}  # not the episodes
    assert (
        "10 episodes, 75 steps"
        in yaml.safe_load((whole.path / "config.yaml").read_text())["dataset"]
    )


def test_another_dataset_is_another_run(tmp_path):
    train(tmp_path, max_epochs=2)
    with pytest.raises(UserError, match="learned from other episodes than those of 'episodes'"):
        train(tmp_path, dataset=OTHERS[1:], resume=True)
    with pytest.raises(UserError, match=r"offline is False now but True.*give its --dataset again"):
        lrl.train("UDRL", "cartpole", logdir=tmp_path, resume=True)


def test_what_a_run_has_played_teaches_another(played, tmp_path, capsys):
    assert train_words(tmp_path, played, "--preset", "cloning", implementation="RCP-R") == 0
    buffer = torch.load(played / "last.ckpt", weights_only=True)["UpsideDownRollouts"]["buffer"]
    out = capsys.readouterr().out
    assert f"{len(buffer['lengths'])} episodes, {sum(buffer['lengths'])} steps, returns" in out
    assert f"finished at 6 updates on {sum(buffer['lengths'])} steps of data" in out
    method = lrl.load(run_dir(tmp_path, implementation="RCP-R")).method
    assert method.env_steps == sum(buffer["lengths"])
    returns = [e.ret for e in lrl.load_dataset(played, "cartpole").episodes]
    assert sorted(returns) == sorted(
        part.sum().item() for part in buffer["reward"].split(buffer["lengths"])
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--implementation", "DDQN"], "DDQN learns from what it plays; leave it out, or choose"),
        (["--set=learning_starts=5"], "'learning_starts': offline nothing is played"),
        (["--set=offline=false"], "--dataset contradicts offline"),
        (["--gamename", "acrobot"], "has episodes of 'cartpole', not of 'acrobot'"),
        (["--dataset", "nowhere"], "'nowhere' is not there; give a folder"),
        (["--dataset", "nothing-v7"], "'nothing-v7' is not in "),
        (["--dataset", "RCP-A-lunarlander"], "'RCP-A-lunarlander' is not there"),
    ],
)
def test_refusals(words, said, played, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    given = ["--dataset", played, "--gamename", "cartpole", "--logdir", tmp_path, *words]
    assert said in refused(capsys, cli("train", *given))


def test_offline_alone_is_refused(tmp_path, capsys):
    words = ["train", "--implementation", "RCP-R", "--logdir", tmp_path, "--preset", "cloning"]
    assert "give --dataset SOURCE" in refused(capsys, cli(*words))


def test_an_environment_that_cannot_be_played_needs_no_more_than_spaces(tmp_path, monkeypatch):
    class Elsewhere(gymnasium.Env):
        observation_space = spaces.Box(-1, 1, (4,))
        action_space = spaces.Discrete(2)

    monkeypatch.setitem(GAMES, "elsewhere", Game(Elsewhere, horizon=10))
    run = train(tmp_path, gamename="elsewhere", max_epochs=2, eval_interval=3)
    assert not run.metrics
    assert (run.path / "last.ckpt").is_file()


def test_an_offline_run_is_no_dataset(tmp_path):
    run = train(tmp_path, max_epochs=2)
    with pytest.raises(UserError, match="keeps no episodes"):
        lrl.load_dataset(run.path, "cartpole")


def test_a_command_beyond_the_data_is_said_to_be_so(tmp_path):
    method = train(tmp_path, max_epochs=2).method
    with pytest.warns(UserWarning, match=r"return=200 is beyond the data .* 3 \.\. 12"):
        full_command(method, {"return": 200})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        full_command(method, {"return": 7})
        full_command(method, {})
        full_command(lrl.UDRL("cartpole"), {"return": 200})


# Minari


class Odd(gymnasium.Env):
    """Its observations are a Dict, its actions in a box of its own."""

    observation_space = spaces.Dict(
        {"where": spaces.Box(-9, 9, (2,)), "room": spaces.Discrete(3, start=1)}
    )
    action_space = spaces.Box(np.array([-2.0, 0.0]), np.array([2.0, 1.0]), dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.where = 0, self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.seen(), {}

    def seen(self):
        return {"where": self.where, "room": 1 + self.count % 3}

    def step(self, action):
        assert self.action_space.contains(action)
        self.where += action  # in place
        self.count += 1
        return self.seen(), float(action.sum()), bool(self.where[0] > 3), False, {}


@pytest.fixture
def minari(monkeypatch, tmp_path):
    package = pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "shared"))
    return package


def record(agent, out, *words):
    assert cli("record", agent, "--out", out, "--episodes", "5", *words) == 0


def test_frames_are_made_of_pictures_as_in_play(minari, tmp_path):
    playing = {"learning_starts": 2, "num_episodes_per_iter": 2, "frame_stack": 2, **TINY}
    run = lrl.train(
        "UDRL", "square", logdir=tmp_path, num_workers=0, max_epochs=1, frame_skip=1, **playing
    )
    record(run.path, tmp_path / "square-v0")
    data = minari.MinariDataset(tmp_path / "square-v0" / "data")
    assert data.observation_space == run.method.spec.observation_space
    env, spec = rollout_env(run.method.spec), run.method.spec
    seeds = [each["seed"] for each in data.storage.get_episode_metadata(range(5))]
    episodes = read_dataset(str(tmp_path / "square-v0"), spec).episodes
    for theirs, ours, seed in zip(data.iterate_episodes(), episodes, seeds, strict=True):
        obs = [env.reset(seed=seed)[0], *(env.step(action)[0] for action in theirs.actions)]
        np.testing.assert_array_equal(ours.obs, obs)
        assert (ours.obs.dtype, ours.stack) == (np.uint8, 2)
    for name, source in (("minari", tmp_path / "square-v0"), ("run", run.path)):
        train(
            tmp_path, dataset=source, gamename="square", exp_name=name, max_epochs=1, frame_stack=2
        )


def test_others_read_what_is_recorded_and_play_it_again(minari, played, tmp_path):
    record(played, "minari:ours/cartpole-v0")
    data = minari.load_dataset("ours/cartpole-v0")
    assert list(minari.list_local_datasets()) == ["ours/cartpole-v0"]
    assert (data.total_episodes, data.env_spec.id) == (5, "CartPole-v1")
    env = data.recover_environment()
    seeds = [each["seed"] for each in data.storage.get_episode_metadata(range(5))]
    assert len(set(seeds)) == 5
    for episode, seed in zip(data.iterate_episodes(), seeds, strict=True):
        obs, rewards = [env.reset(seed=seed)[0]], []
        for action in episode.actions:
            answer, reward, terminated, truncated, _ = env.step(action)
            obs.append(answer)
            rewards.append(reward)
        np.testing.assert_array_equal(episode.observations, obs)
        np.testing.assert_array_equal(episode.rewards, rewards)
        assert (episode.terminations[-1], episode.truncations[-1]) == (terminated, truncated)
        assert not (episode.terminations | episode.truncations)[:-1].any()
    loaded = lrl.load_dataset("ours/cartpole-v0", "cartpole").episodes
    assert [e.length for e in loaded] == [len(e) for e in data.iterate_episodes()]


@pytest.mark.parametrize("game", ["pendulum", "lunarlander-sparse"])
def test_actions_and_rewards_are_the_environments_own(game, minari, tmp_path, monkeypatch):
    run = lrl.train(
        "UDRL",
        game,
        logdir=tmp_path,
        num_workers=0,
        max_epochs=1,
        learning_starts=2,
        num_episodes_per_iter=2,
        **TINY,
    )
    monkeypatch.chdir(tmp_path)
    record(run.path, "some-v0", "--actions", "uniform")
    data = minari.MinariDataset(tmp_path / "some-v0" / "data")
    spec = run.method.spec
    (own,) = {episode.actions.dtype for episode in data.iterate_episodes()}
    assert own == spec.action_space.dtype
    assert all(
        spec.action_space.contains(action)
        for each in data.iterate_episodes()
        for action in each.actions
    )
    episodes = lrl.load_dataset(tmp_path / "some-v0", game).episodes
    for theirs, ours in zip(data.iterate_episodes(), episodes, strict=True):
        assert ours.ret == pytest.approx(theirs.rewards.sum(), rel=1e-5)
        if spec.sparse:
            assert (ours.reward[:-1] == 0).all()
            assert (theirs.rewards[:-1] != 0).any()  # the task itself pays at each step
        else:
            assert np.abs(theirs.actions).max() > 1.5  # its box goes to 2
            np.testing.assert_allclose(ours.action * 2, theirs.actions, atol=1e-5)
            assert ours.cut_off
    assert train_words(tmp_path, tmp_path / "some-v0", gamename=game, implementation="RCP-R") == 0


def test_a_users_own_environment_with_parts(minari, tmp_path, monkeypatch):
    monkeypatch.setitem(GAMES, "odd", Game(Odd, horizon=7))
    run = lrl.train(
        "UDRL",
        "odd",
        logdir=tmp_path,
        num_workers=0,
        max_epochs=1,
        learning_starts=2,
        num_episodes_per_iter=2,
        **TINY,
    )
    record(run.path, tmp_path / "odd-v0")
    data = minari.MinariDataset(tmp_path / "odd-v0" / "data")
    assert data.env_spec is None
    assert data.observation_space == Odd.observation_space
    episodes = lrl.load_dataset(tmp_path / "odd-v0", "odd").episodes
    env = lrl.make_env("odd")
    seeds = [each["seed"] for each in data.storage.get_episode_metadata(range(5))]
    for theirs, ours, seed in zip(data.iterate_episodes(), episodes, seeds, strict=True):
        obs = [env.reset(seed=seed)[0], *(env.step(action)[0] for action in theirs.actions)]
        np.testing.assert_array_equal(ours.obs, obs)
        assert ours.terminated != ours.truncated
        assert ours.truncated == (ours.length == 7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"terminations": [True, False]}, "episode 1: it goes on after its end; split it there"),
        ({"actions": [[0.5], [2.5]]}, r"actions go from 0\.5 to 2\.5, out of Box\(-2\.0, 2\.0"),
        ({"rewards": [0.0, np.inf]}, "episode 1: 1 of the 2 numbers of its rewards are not finite"),
        ({"observations": np.zeros((2, 3))}, r"shape \[2, 3\], expected \[3, 3\]"),
    ],
)
def test_episodes_of_others_that_do_not_hold_together(change, said, minari, tmp_path):
    write_others(minari, "pendulum/bad-v0", change)
    with pytest.raises(UserError, match=said):
        lrl.load_dataset("pendulum/bad-v0", "pendulum")


def write_others(minari, name, change=None, **spaces_of_it):
    """A dataset of pendulum that Minari itself has written, whose second episode is changed."""
    from minari.data_collector import EpisodeBuffer

    good = {
        "observations": np.zeros((3, 3), np.float32),
        "actions": np.zeros((2, 1), np.float32),
        "rewards": np.array([0.0, -1.0]),
        "terminations": np.array([False, False]),
        "truncations": np.array([False, True]),
        "infos": {},
    }
    bad = {key: np.asarray(value) for key, value in (change or {}).items()}
    buffers = [EpisodeBuffer(**good), EpisodeBuffer(**good | bad)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(name, buffers, env="Pendulum-v1", **spaces_of_it)


@pytest.mark.parametrize(
    ("game", "given", "said"),
    [
        (
            "cartpole",
            {},
            r"its actions are Box.*, those of 'cartpole' Discrete\(2\); .*--gamename Pendulum-v1",
        ),
        (
            "pendulum",
            {"action_space": spaces.Box(-1, 1, (1,))},
            r"its actions are within .*-1\.0.* record it without rescaling",
        ),
    ],
)
def test_datasets_of_other_actions(game, given, said, minari, tmp_path):
    write_others(minari, "pendulum/other-v0", **given)
    with pytest.raises(UserError, match=said):
        lrl.load_dataset("pendulum/other-v0", game)


def test_a_damaged_dataset_runs_no_code(minari, tmp_path):
    write_others(minari, "pendulum/good-v0")
    path = tmp_path / "shared/pendulum/good-v0/data/metadata.json"
    content = json.loads(path.read_text())
    assert len(lrl.load_dataset("pendulum/good-v0", "pendulum").episodes) == 2
    evil = content["env_spec"].replace("gymnasium.envs.classic_control.pendulum", "nothing.there")
    path.write_text(
        json.dumps(
            {
                "env_spec": evil,
                **{
                    key: value
                    for key, value in content.items()
                    if key not in ("env_spec", "action_space")
                },
            }
        )
    )
    with pytest.raises(UserError, match="cannot be read as a Minari dataset: lacks 'action_space'"):
        lrl.load_dataset("pendulum/good-v0", "pendulum")


def test_a_dataset_is_not_written_over_nor_under_a_name_without_a_version(
    minari, played, tmp_path, capsys
):
    (tmp_path / "mine-v0").mkdir()
    line = refused(capsys, cli("record", played, "--out", tmp_path / "mine-v0"))
    assert "is there already; choose another name or version" in line
    line = refused(capsys, cli("record", played, "--out", tmp_path / "mine"))
    assert "ends with its version" in line
