import copy
import math
import pickle
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.budgets import PLAYABLE
from moviepy import VideoFileClip
from moviepy.video.io.ffmpeg_writer import FFMPEG_VideoWriter

from lightning_rl.core.errors import RolloutError, UserError
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.envs.films import filming_env
from lightning_rl.envs.gym import make_env, rollout_env
from lightning_rl.envs.spec import EnvSpec, env_spec


@pytest.mark.parametrize("gamename", PLAYABLE)
def test_spec_says_the_truth(gamename):
    spec = env_spec(gamename)
    env = make_env(spec)
    assert math.prod(env.observation_space.shape) == spec.obs_size
    if spec.continuous:
        assert env.unwrapped.action_space.shape == (spec.action_size,)
    else:
        assert env.action_space.n == spec.action_size
    env.reset(seed=0)
    steps, over = 0, False
    while not over:
        over = any(env.step(env.action_space.sample())[2:4])
        steps += 1
    assert steps <= spec.horizon


@pytest.mark.parametrize("seed", range(5))
def test_sparse_pays_the_same_total_at_the_end(seed):
    returns = []
    for gamename in ("lunarlander", "lunarlander-sparse"):
        env, rng, rewards, over = (
            make_env(env_spec(gamename)),
            np.random.default_rng(seed),
            [],
            False,
        )
        env.reset(seed=seed)
        while not over:
            _, reward, terminated, truncated, _ = env.step(int(rng.integers(4)))
            rewards.append(reward)
            over = terminated or truncated
        returns.append(sum(rewards))
    assert returns[0] == pytest.approx(returns[1])
    assert not any(rewards[:-1])


def test_sparse_pays_truncated_episodes_and_starts_anew():
    spec = EnvSpec("p", "Pendulum-v1", 3, 1, True, 200, 0.0, None, sparse=True)
    env, paid = rollout_env(spec), []
    for _ in range(2):
        env.reset(seed=3)
        paid.append([env.step(np.zeros(1, np.float32))[1] for _ in range(200)])
    assert paid[0][-1] < -1
    assert paid[0] == paid[1]


def test_continuous_actions_are_rescaled_and_clipped():
    env = rollout_env(env_spec("pendulum"))  # box [-2, 2]
    after = []
    for action in (1.0, 5.0):
        env.reset(seed=1)
        after.append(env.step(np.array([action], np.float32))[0])
    raw = gymnasium.make("Pendulum-v1")
    raw.reset(seed=1)
    np.testing.assert_array_equal(after[0], raw.step(np.array([2.0], np.float32))[0])
    np.testing.assert_array_equal(after[0], after[1])


class Pump(gymnasium.Env):
    """Checks, as many do, that an action is of its space."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, low, high, dtype):
        self.action_space = gymnasium.spaces.Box(low, high, (1,), dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return action.astype(np.float32), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0.2, 0.9, np.float32),
        (-3, -1.9, np.float32),
        (-3, 0.1, np.float32),
        (-1, 2, np.float16),
        (0.1, 0.3, np.float64),
    ],
)
def test_rescaled_actions_are_of_the_space(monkeypatch, low, high, dtype):
    """Also at the edges, where policies that are clipped are most: single precision rounds 0.2
    to just below.
    """
    kwargs = (("low", low), ("high", high), ("dtype", dtype))
    monkeypatch.setitem(GAMES, "pump", Game(Pump, horizon=10, kwargs=kwargs))
    env = rollout_env(env_spec("pump"))
    env.reset(seed=1)
    reached = [float(env.step(np.array([action], np.float32))[0][0]) for action in (-1, 0, 1, 5)]
    assert reached == pytest.approx([low, (low + high) / 2, high, high], rel=2e-3)


class Dial(gymnasium.Env):
    """Its actions count from 1, its observations are a Dict."""

    observation_space = gymnasium.spaces.Dict(
        at=gymnasium.spaces.Discrete(3, start=1), x=gymnasium.spaces.Box(-1, 1, (2,))
    )
    action_space = gymnasium.spaces.Discrete(3, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"at": 1, "x": np.zeros(2, np.float32)}, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return (
            {"at": int(action), "x": np.full(2, action / 3, np.float32)},
            float(action),
            False,
            False,
            {},
        )


def test_users_meet_the_environments_own_actions(monkeypatch):
    monkeypatch.setitem(GAMES, "dial", Game(Dial, horizon=4))
    env = make_env("dial")
    assert env.action_space == Dial.action_space
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (1, 2, 3)] == [1, 2, 3]
    assert make_env("pendulum").action_space == gymnasium.make("Pendulum-v1").action_space
    assert rollout_env(env_spec("dial")).action_space == gymnasium.spaces.Discrete(3)


@pytest.mark.parametrize("gamename", ["dial", "pendulum", "lunarlander-sparse"])
def test_what_make_env_gives_is_copied_whole(monkeypatch, gamename):
    """By its spec, by pickle and by deepcopy, where the task itself can be."""
    monkeypatch.setitem(GAMES, "dial", Game(Dial, horizon=4))
    env = make_env(gamename)
    ways = [lambda: env.spec.make(), lambda: gymnasium.make(env.spec)]
    if gamename != "lunarlander-sparse":  # Box2D's worlds are not
        ways += [lambda: pickle.loads(pickle.dumps(env)), lambda: copy.deepcopy(env)]
    for way in ways:
        other = way()
        assert str(other) == str(env)
        outcomes = []
        for each in (env, other):
            each.reset(seed=2)
            each.action_space.seed(2)
            outcomes.append(each.step(each.action_space.sample())[:2])
        np.testing.assert_array_equal(*(obs for obs, _ in outcomes))
        assert outcomes[0][1] == outcomes[1][1]


@pytest.mark.filterwarnings(
    "ignore:.*different from the unwrapped version", "ignore:.*builtin type"
)
@pytest.mark.parametrize(
    "gamename", ["lunarlander-continuous", "mountaincar-continuous", "cliff", "dial"]
)
def test_other_libraries_take_what_make_env_gives(monkeypatch, gamename):
    monkeypatch.setitem(GAMES, "dial", Game(Dial, horizon=4))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
        check_env(make_env(gamename), skip_render_check=True)
        if gamename != "dial":  # Stable-Baselines3 knows no actions that count from 1
            pytest.importorskip("stable_baselines3.common.env_checker").check_env(
                make_env(gamename), skip_render_check=True
            )


@pytest.mark.parametrize(
    "gamename", ["cliff", "procmaze-3", "buttongrid-3", "panflute-3", "bandit10"]
)
def test_a_discrete_action_is_any_integer(gamename):
    paths = []
    for kind in (np.int64, np.int32, np.uint8, int):
        env = make_env(gamename)
        env.reset(seed=0)
        paths.append([env.step(kind(action))[:2] for action in (1, 0, 1)])
        env.close()
    for path in paths[1:]:
        for (obs, reward), (other, paid) in zip(paths[0], path, strict=True):
            assert np.array_equal(obs, other)
            assert reward == paid


def test_film_is_written_whole(tmp_path):
    path = tmp_path / "deep" / "film.mp4"
    with filming_env(env_spec("cartpole"), path) as env:
        env.reset(seed=0)
        for _ in range(5):
            env.step(1)
    assert path.stat().st_size > 500
    assert path.read_bytes()[4:8] == b"ftyp"
    assert [p.name for p in path.parent.iterdir()] == ["film.mp4"]


def test_a_film_that_the_encoder_could_not_write_is_said(tmp_path, monkeypatch):
    """It ends with an exit code where its folder is full."""
    from moviepy.video.io.ffmpeg_writer import FFMPEG_VideoWriter

    close = FFMPEG_VideoWriter.close

    def failing(self):
        encoder = self.proc
        close(self)
        if encoder is not None:
            encoder.returncode = 228

    monkeypatch.setattr(FFMPEG_VideoWriter, "close", failing)
    path = tmp_path / "film.mp4"
    film = filming_env(env_spec("cartpole"), path)
    film.__enter__().reset(seed=0)
    with pytest.raises(UserError, match=r"could not be encoded in .*; free space there, or let"):
        film.__exit__(None, None, None)
    assert not path.exists()


def test_frames_of_a_film_are_encoded_as_they_are_drawn_and_kept_nowhere(tmp_path, monkeypatch):
    encoded, write_frame = [], FFMPEG_VideoWriter.write_frame
    monkeypatch.setattr(
        FFMPEG_VideoWriter,
        "write_frame",
        lambda self, frame: (encoded.append(0), write_frame(self, frame)),
    )
    path = tmp_path / "film.mp4"
    with filming_env(env_spec("cartpole"), path) as env:
        for step in range(8):
            env.step(step % 2) if step else env.reset(seed=0)
            assert len(encoded) == step + 1
    with VideoFileClip(str(path)) as clip:
        assert (round(clip.duration, 2), clip.fps, clip.size[0]) == (58 / 50, 50, 600)
    assert len(encoded) == 8 + 50  # the last one stays for a second


def test_an_episode_that_fails_leaves_no_film(tmp_path):
    def fails():
        with filming_env(env_spec("cartpole"), tmp_path / "film.mp4") as env:
            env.reset(seed=0)
            env.step(2)

    with pytest.raises(RolloutError, match="invalid"):
        fails()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gamename", ["lunarlander", "halfcheetah"])
def test_films_without_a_display(tmp_path, gamename):
    spec = env_spec(gamename)
    with filming_env(spec, tmp_path / "film.mp4") as env:
        env.reset(seed=0)
        for _ in range(3):
            env.step(np.zeros(spec.action_size, np.float32) if spec.continuous else 0)
    assert (tmp_path / "film.mp4").stat().st_size > 500


def test_mujoco_starts_without_a_word(tmp_path, monkeypatch, capfd):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    make_env(env_spec("halfcheetah")).close()
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())  # nor MUJOCO_LOG.TXT


def test_time_limit_truncates():
    env = make_env(env_spec("pendulum"))
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(200)]
    assert ends[-1] == (False, True)
    assert not any(any(end) for end in ends[:-1])
