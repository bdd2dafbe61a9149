"""TakeCover: an episode is a function of seed and actions, and nothing of a game outlives its
process.
"""

import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import ROOT

import lightning_rl.gym  # noqa: F401
from lightning_rl.core.errors import UserError
from lightning_rl.envs import doom
from lightning_rl.envs.takecover import TakeCover

vizdoom = pytest.importorskip("vizdoom")

SHARED_MEMORY = Path(doom.doom_keeper.SHARED_MEMORY)
ACTIONS = np.random.default_rng(0).integers(2, size=60).tolist()


@pytest.fixture
def make():
    made = []

    def one(**kwargs):
        made.append(TakeCover(**kwargs))
        return made[-1]

    yield one
    for env in made:
        env.close()


def begun(env, seed, actions=ACTIONS):
    """Plays an action at a time; what was seen and paid."""
    steps = [(env.reset(seed=seed)[0].tobytes(), 0.0)]
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        steps.append((obs.tobytes(), reward))
        yield steps
        if terminated or truncated:
            return


def played(env, seed, actions=ACTIONS):
    *_, steps = begun(env, seed, actions)
    return steps


def test_gymnasium_makes_it_by_its_id_and_has_nothing_to_say():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("lightning_rl/TakeCover-v0")
        check_env(env.unwrapped)
    env.close()
    assert (env.spec.max_episode_steps, env.spec.reward_threshold) == (2100, 750)


def test_an_episode_is_a_function_of_seed_and_actions(make):
    one, other = make(frame_skip=4), make(frame_skip=4)
    first = played(one, 3)
    assert played(one, 4) != first
    assert played(one, 3) == first
    *_, (beside, _) = zip(begun(other, 3), begun(one, 5), strict=False)
    assert beside == first[: len(beside)]
    assert len(beside) > 10


def test_episodes_that_no_seed_is_given_for_follow_from_the_first(make):
    episodes = []
    for seed in (3, 3, 4):
        env = make(frame_skip=8)
        env.reset(seed=seed)
        episodes.append([env.reset()[0].tobytes(), *(env.step(0)[0].tobytes() for _ in range(20))])
    assert episodes[0] == episodes[1] != episodes[2]


def in_fork(pipe, env):
    with pytest.raises(UserError, match=r"call reset\(\) first"):
        env.step(0)
    pipe.send(played(env, 3))
    env.close()


def test_a_forked_worker_plays_the_same_in_a_game_of_its_own(make):
    env = make(frame_skip=4)
    first = played(env, 3)
    with forked(in_fork, env) as (pipe, worker):
        assert pipe.recv() == first
        worker.join(10)
        assert worker.exitcode == 0
    env.step(0)  # the parent's game goes on
    assert played(env, 3) == first


def test_a_skip_is_the_action_taken_so_often(make):
    single, fourfold = make(), make(frame_skip=4)
    single.reset(seed=7)
    fourfold.reset(seed=7)
    for action in ACTIONS[:20]:
        one_by_one = [single.step(action) for _ in range(4)]
        obs, reward, _, _, info = fourfold.step(action)
        np.testing.assert_array_equal(obs, one_by_one[-1][0])
        assert reward == info["lightning_rl/steps"] == sum(step[1] for step in one_by_one) == 4


def test_each_tic_alive_pays_one_and_death_terminates(make):
    env = make(frame_skip=8)
    env.reset(seed=1)
    total, terminated = 0.0, False
    for _ in range(2100 // 8):
        obs, reward, terminated, truncated, info = env.step(0)
        assert reward == info["lightning_rl/steps"]
        assert not truncated
        total += reward
        if terminated:
            break
    assert terminated
    assert 50 < total < 2100
    assert obs.any()
    assert env.reset(seed=1)[0].any()


def test_it_is_truncated_after_2100_tics(make):
    env = make(frame_skip=8)
    env.reset(seed=1)
    env._games[0]._game.send_game_command("iddqd")
    steps = [env.step(0) for _ in range(263)]  # 262 of eight tics and one of four
    assert sum(step[1] for step in steps) == 2100
    assert [step[2:4] for step in steps] == [(False, False)] * 262 + [(False, True)]


def place(game):
    """What the chance of monsters and fireballs makes of the player."""
    names = (vizdoom.GameVariable.HEALTH, vizdoom.GameVariable.POSITION_Y)
    return [game._game.get_game_variable(name) for name in names]


def test_a_film_is_of_the_same_episode(make):
    plain, filmed = make(frame_skip=4), make(frame_skip=4, render_mode="rgb_array")
    assert filmed.metadata["render_fps"] == 35 / 4
    actions = ACTIONS * 9
    for steps in begun(filmed, 3, actions):
        seen = steps
        shown = place(filmed._games[1])
        assert shown == place(filmed._games[0])
    assert shown[0] <= 0  # until death
    assert seen == played(plain, 3, actions)
    picture = filmed.render()
    assert (picture.shape, picture.dtype) == ((480, 640, 3), np.uint8)
    red, green, blue = picture[200:260].mean((0, 1))  # of the wall
    assert red > green > blue


@pytest.fixture
def left(tmp_path, monkeypatch):
    """What there is of games that are started here: processes, folders, shared memory."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    instances = set()

    def look():
        processes = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline")]
        ours = {path.name: words(path) for path in processes if str(folder) in words(path)}
        instances.update(re.findall(r"\+viz_instance_id (\w+)", " ".join(ours.values())))
        shared = [
            path.name
            for path in SHARED_MEMORY.glob("ViZDoom*")
            if path.name.endswith(tuple(instances))
        ]
        return [*ours, *shared, *folder.iterdir()]

    return look


def words(process):
    """The command line of a process."""
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:  # it has gone
        return ""


def until(condition):
    waiting = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < waiting
        time.sleep(0.05)


def without_handlers(work, *arguments):
    """Does the work in a process that a SIGTERM ends, whatever tests before have set."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    work(*arguments)


@contextlib.contextmanager
def forked(work, *arguments):
    """Does the work in a worker, to which the pipe leads."""
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    worker = context.Process(target=without_handlers, args=(work, there, *arguments))
    worker.start()
    try:
        yield here, worker
    finally:
        worker.kill()
        worker.join()


def plays(pipe, folder=None, end="killed"):
    if folder is not None:
        os.chdir(folder)
        os.environ["HOME"] = str(folder)
    env = TakeCover(render_mode="rgb_array")
    env.reset(seed=0)
    env.step(1)
    pipe.send("plays")
    if end == "killed":
        time.sleep(100)
    elif end == "closed":
        env.close()


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="this system does not show what is left")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_worker_that_is_killed(left, number):
    with forked(plays) as (pipe, worker):
        assert pipe.recv() == "plays"
        assert len(left()) == 12  # two games, each with a keeper, a folder, and three names there
        os.kill(worker.pid, number)
        worker.join(10)
        assert worker.exitcode == -number
    until(lambda: not left())


@pytest.mark.parametrize("end", ["closed", "left"])
def test_it_writes_nothing_that_stays(tmp_path, left, end):
    home = tmp_path / "home"
    home.mkdir()
    with forked(plays, home, end) as (pipe, worker):
        assert pipe.recv() == "plays"
        worker.join(10)
        assert worker.exitcode == 0
    assert not list(home.iterdir())
    until(lambda: not left())


def test_nothing_is_left_of_a_program_that_does_not_close_it(left):
    code = """
import os, sys
from lightning_rl.envs.takecover import TakeCover
env = TakeCover()
env.reset()
os.fork() or sys.exit()
os.wait()
input()
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen([sys.executable, "-c", code], env=env, stdin=subprocess.PIPE)
    until(lambda: len(left()) == 6)
    program.communicate(b"\n", timeout=60)
    assert program.returncode == 0
    assert not left()


def is_interrupted(pipe, close):
    os.setsid()
    signal.signal(signal.SIGINT, lambda *_: pipe.send("handled"))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    env = TakeCover()
    env.reset()
    if close:
        env.close()
    pipe.send("plays")
    until(lambda: pipe.poll() or None)
    env.reset()
    pipe.send(env.step(0)[1])


@pytest.mark.parametrize("close", [False, True])
def test_signals_stay_with_the_program(close):
    """Ctrl-C goes to all processes of a terminal: the game plays on."""
    with forked(is_interrupted, close) as (pipe, worker):
        assert pipe.recv() == "plays"
        os.killpg(worker.pid, signal.SIGTERM)
        os.killpg(worker.pid, signal.SIGINT)
        assert pipe.recv() == "handled"
        pipe.send("go on")
        assert pipe.recv() == 1


def test_a_game_that_somebody_ends_starts_again(make, left):
    env = make()
    first = played(env, 3)
    (game,) = (
        name
        for name in left()
        if str(name).isdecimal() and "keeper" not in words(Path("/proc", name))
    )
    os.kill(int(game), signal.SIGKILL)
    with pytest.raises(Exception, match="unexpectedly"):
        env.step(0)
    assert played(env, 3) == first
    assert len(left()) == 6


def test_a_game_that_cannot_start_is_one_line(make, left, monkeypatch):
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # as where a disk has no programs
    with pytest.raises(
        UserError, match=r"no program may run in .*; let TMPDIR name another folder"
    ):
        make().reset()
    monkeypatch.setattr(doom, "_SHARED_BYTES", 2**60)
    with pytest.raises(
        UserError, match=r"/dev/shm has \d+ MiB left, a game takes .* fewer workers"
    ):
        make().reset()
    assert not left()


def test_wrong_arguments_are_one_line(make):
    for frame_skip in (0, 2.5, "4", 2101):
        with pytest.raises(UserError, match="TakeCover: frame_skip"):
            make(frame_skip=frame_skip)
    with pytest.raises(UserError, match="render_mode 'human'"):
        make(render_mode="human")
    with pytest.raises(UserError, match="make it with render_mode='rgb_array'"):
        make().render()
    env = make(render_mode="rgb_array")
    for ask in (env.render, lambda: env.step(0)):
        with pytest.raises(UserError, match=r"call reset\(\) first"):
            ask()
