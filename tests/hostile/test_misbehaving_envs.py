"""A user's environment that misbehaves is named in one line, with the file and line of its own
code, by every family.
"""

import dataclasses
import math
import multiprocessing
import re
import signal
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from helpers.runs import run_cli
from helpers.toys import toy_policy

from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES, Game
from lightning_rl.core.types import Request
from lightning_rl.envs.gym import make_env
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.rollouts.player import Collector

FAMILIES = ("UDRL", "REINFORCE", "DDQN")
HERE = re.escape(__file__)
LINES = Path(__file__).read_text().splitlines()
OBS = np.zeros(3, np.float32)
HANGS = multiprocessing.get_context("fork").Event()


def line(text, after="class Task"):
    start = next(number for number, each in enumerate(LINES) if each.startswith(after))
    return next(number + 1 for number, each in enumerate(LINES) if number >= start and text in each)


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Task(gymnasium.Env):
    """Right but for the fourth step of every episode, which answers as ``kind`` says."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, kind, render_mode=None):
        self.kind = kind
        if kind == "constructor":
            raise KeyError("no such level")
        if kind == "leaves at once":
            sys.exit("no licence")
        if kind == "start":
            self.action_space = gymnasium.spaces.Discrete(2, start=5)
        if kind == "narrow":
            self.action_space = gymnasium.spaces.Box(0, 1e-40, (2,), np.float32)
        if kind == "metadata":
            self.metadata = None
        if kind == "infinite":
            self.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        if self.kind == "reset leaves":
            sys.exit(1)
        return OBS if self.kind == "old reset" else (OBS, {})

    def step(self, action):
        self.steps += 1
        reward = float(action not in (5, 6)) if self.kind == "start" else 0.0
        right = (OBS, reward, self.steps == 10, False, {})
        return right if self.steps < 4 else self.answer(right)

    def answer(self, right):
        while self.kind == "hangs":
            HANGS.set()
        if self.kind == "raises":
            raise ValueError("the ground gave way\nand more")
        if self.kind == "mute":
            raise MuteError
        if self.kind == "says nothing":
            raise StopIteration
        if self.kind == "leaves":
            sys.exit(0)
        return {
            "steps": (OBS, 0.0, False, {}),
            **{k: (*a, *right[len(a) :]) for k, a in ANSWERS.items()},
        }.get(self.kind, right)


ANSWERS = {
    "wide": (np.zeros(4),),
    "broadcast": (np.zeros(1),),
    "ragged": ([[1.0], [1.0, 2.0]],),
    "words": (["a", "b", "c"],),
    "none": (OBS, None),
    "nan": (OBS, math.nan),
    "infinite reward": (OBS, -math.inf),
    "large reward": (OBS, 1e16),
    "lost": (np.array([0, np.nan, 0], np.float32),),
    "large": (np.array([0, 1e39, 0]),),
    "string": (OBS, "1.0"),
    "info": (OBS, 0.0, False, False, None),
    "two ends": (OBS, 0.0, np.array([True, False])),
    "odd end": (OBS, 0.0, 2),
    "no end": (OBS, 0.0, False, None),
}

STEP = rf"Task at {HERE}:{line('def step')} \(gamename bad, seed \d+, step 3\)"
TOLD = {
    "raises": r"ValueError: the ground gave way\\nand more -- raised in step\(\) of Task at "
    rf"{HERE}:{line('raise ValueError')} ",
    "mute": r"MuteError: \(its text cannot be had\) -- raised in step\(\) of Task at "
    rf"{HERE}:{line('raise MuteError')} ",
    "says nothing": r"StopIteration -- raised in step\(\) of Task at "
    rf"{HERE}:{line('raise StopIteration')} ",
    "wide": r"step\(\) gave an observation of shape \(4,\), its space says \(3,\) numbers -- from "
    rf"{STEP}",
    "broadcast": r"step\(\) gave an observation of shape \(1,\), its space says \(3,\) numbers -- "
    rf"from {STEP}",
    "ragged": r"step\(\) gave the observation \[\[1.0\], \[1.0, 2.0\]\], which is no array -- "
    rf"from {STEP}",
    "words": r"step\(\) gave an observation of shape \(3,\) of <U1, its space says \(3,\) numbers "
    rf"-- from {STEP}",
    "none": rf"step\(\) gave the reward None, expected a finite number of .* -- from {STEP}",
    "nan": rf"step\(\) gave the reward nan, expected a finite number of .* -- from {STEP}",
    "infinite reward": r"step\(\) gave the reward -inf, expected a finite number of .* -- from "
    rf"{STEP}",
    "large reward": r"step\(\) gave the reward 1e\+16, expected a finite number of at most 1e\+15 "
    rf"-- from {STEP}",
    "lost": r"step\(\) gave the observation array\(\[ 0\., nan,  0\.\].*, expected finite numbers "
    rf".* -- from {STEP}",
    "large": r"step\(\) gave the observation array\(\[0\.e\+00, 1\.e\+39, .*, expected finite "
    rf"numbers .* -- from {STEP}",
    "string": rf"step\(\) gave the reward '1.0', expected a finite number of .* -- from {STEP}",
    "info": rf"step\(\) gave the info None, expected a dict -- from {STEP}",
    "two ends": r"step\(\) gave terminated array\(\[ True, False\]\), expected True or False -- "
    rf"from {STEP}",
    "odd end": rf"step\(\) gave terminated 2, expected True or False -- from {STEP}",
    "no end": rf"step\(\) gave truncated None, expected True or False -- from {STEP}",
    "steps": r"step\(\) returned 4 values, expected \(obs, reward, terminated, truncated, info\) "
    rf"-- from {STEP}",
    "old reset": rf"reset\(\) returned an array of float32 \[3\], expected \(obs, info\) "
    rf"-- from Task at {HERE}:{line('def reset')} .*, step 0\)",
    "leaves": rf"SystemExit: 0 -- raised in step\(\) of Task at {HERE}:{line('sys.exit(0)')} "
    r"\(gamename bad, seed \d+, step 3\)",
    "reset leaves": r"SystemExit: 1 -- raised in reset\(\) of Task at "
    rf"{HERE}:{line('sys.exit(1)')} \(gamename bad",
    "leaves at once": r"cannot make 'bad-v0' for gamename 'bad': SystemExit: no licence at "
    rf"{HERE}:{line('sys.exit(')}$",
    "constructor": r"cannot make 'bad-v0' for gamename 'bad': KeyError: 'no such level' at "
    rf"{HERE}:{line('raise KeyError')}$",
}


@pytest.fixture
def bad(monkeypatch):
    """Makes ``Task(kind)`` the environment of gamename ``bad``."""

    def register(kind):
        monkeypatch.setitem(GAMES, "bad", Game(Task, horizon=10, kwargs=(("kind", kind),)))
        return EnvSpec("bad", Task, 3, 2, False, 10, kwargs=(("kind", kind),))

    return register


@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_an_environment_does_wrong_is_one_line_with_its_place(
    family, kind, bad, tmp_path, capsys
):
    bad(kind)
    assert run_cli(tmp_path, gamename="bad", implementation=family) == 2
    (told,) = (each for each in capsys.readouterr().err.splitlines() if each.startswith("error"))
    assert re.search(f"^error: {TOLD[kind]}", told), told


def test_an_environment_that_leaves_ends_a_worker_no_other_way(bad, tmp_path, capsys):
    bad("leaves")
    assert run_cli(tmp_path, "--num_workers", "1", gamename="bad", implementation="UDRL") == 2
    (told,) = (each for each in capsys.readouterr().err.splitlines() if each.startswith("error"))
    assert re.search(f"^error: {TOLD['leaves']}", told), told


@pytest.mark.parametrize("family", FAMILIES)
def test_discrete_actions_begin_where_the_space_does(family, bad, tmp_path, capsys):
    """Discrete(2, start=5) is given 5 and 6; any other action is paid."""
    bad("start")
    assert run_cli(tmp_path, gamename="bad", implementation=family, max_env_steps=40) == 0
    assert re.search(r"\beval 0\.0", capsys.readouterr().out)


def test_what_is_unusual_but_right_is_taken(bad, monkeypatch):
    """A list of numbers is an observation, a whole number or one of numpy's is a reward."""
    env = make_env(bad("unusual"))
    most = np.full(3, np.finfo(np.float32).max)
    for answer, reward in (
        (([1, 2, 3], np.float32(2.0)), 2.0),
        ((np.ones(3), 3), 3.0),
        ((most, -1e15), -1e15),
    ):
        monkeypatch.setitem(ANSWERS, "unusual", answer)
        env.reset(seed=1)
        for _ in range(4):
            obs, paid, *_ = env.step(1)
        np.testing.assert_array_equal(obs, answer[0])
        assert paid == reward


def test_ends_may_be_numbers_or_arrays_of_one(bad, monkeypatch):
    env = make_env(bad("unusual"))
    for end, meant in (
        (1, True),
        (0, False),
        (np.array([True]), True),
        (np.bool_(False), False),
        (np.array(1.0), True),
    ):
        monkeypatch.setitem(ANSWERS, "unusual", (OBS, 0.0, end, end))
        env.reset(seed=1)
        for _ in range(4):
            *_, terminated, truncated, _ = env.step(1)
        assert (terminated, truncated) == (meant, meant)


def test_an_action_box_without_bounds_is_refused(bad):
    bad("infinite")
    with pytest.raises(
        UserError,
        match=r"action space of bad-v0 is Box\(-inf, inf, \(2,\), float32\), .* give it finite "
        r"bounds",
    ):
        make_env("bad")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("narrow", "without bounds or width"), ("metadata", "metadata None is no dict")],
)
def test_what_cannot_be_played_is_refused_before_it_is(kind, words, bad):
    bad(kind)
    with pytest.raises(UserError, match=words):
        make_env("bad")


def test_a_name_that_means_other_actions_by_now_is_not_played(bad):
    spec = bad("start")
    with pytest.raises(UserError, match="has become another environment: its actions are"):
        make_env(dataclasses.replace(spec, action_space=gymnasium.spaces.Discrete(2)))


def test_closing_ends_workers_that_hang_in_a_step(bad, monkeypatch):
    monkeypatch.setattr(
        "torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.3
    )  # seconds that torch waits for them
    spec = bad("hangs")
    c = Collector(spec, toy_policy(spec), 1, 1)
    c.start([Request("0", 0, "uniform")], c.behaviour.state_dict(), 0)
    worker = c._loader._iterator._workers[0]
    assert HANGS.wait(20)
    c.close()
    worker.join(5)
    assert worker.exitcode == -signal.SIGKILL
